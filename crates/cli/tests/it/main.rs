//! `clusteradm` against a real hub.

mod accept;
mod accept_faults;
mod addon;
mod admission;
mod check_cluster;
mod check_hub;
mod clusters;
mod connection;
mod deploy;
mod explain;
mod hub;
mod placements;
mod token;
