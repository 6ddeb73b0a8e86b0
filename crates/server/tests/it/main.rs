//! Hub and agent together, on real control planes.
//!
//! One hub (in this process, under its own service account) and two managed clusters serve all tests; each test joins
//! clusters with names of its own. A test that breaks a control plane starts its own.

mod access;
mod addon_token;
mod addon_world;
mod admission;
mod auto_approval;
mod bad_input;
mod cluster_profile;
mod commands;
mod connections;
mod faults;
mod flags;
mod fleet;
mod hubs;
mod idle;
mod join;
mod killed;
mod leader;
mod lifetime;
mod logins;
mod outage;
mod placement_debug;
mod preflight;
mod program;
mod recovery;
mod restart;
mod serving;
mod webhook;
mod works;
mod world;
