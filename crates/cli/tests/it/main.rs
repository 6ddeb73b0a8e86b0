//! `clusteradm` against a real hub.

mod accept;
mod clusters;
mod connection;
mod deploy;
mod hub;
mod token;
