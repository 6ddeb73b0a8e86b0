//! Tests of the API types against OCM's own definitions, and of what they keep of an object.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod convert;
mod crds;
mod kinds;
mod properties;
mod round_trip;
mod upstream;
