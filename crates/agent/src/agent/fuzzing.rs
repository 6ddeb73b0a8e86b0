//! What fuzz targets reach of reading kubeconfigs for the hub. Only builds by cargo-fuzz have it.

use kube::config::Kubeconfig;

use super::hub_kubeconfig::{Connection, compare};

/// The kubeconfig that the agent makes of its bootstrap kubeconfig, or why it makes none.
///
/// # Errors
/// What the bootstrap kubeconfig lacks.
pub fn hub_kubeconfig(bootstrap: &Kubeconfig) -> Result<String, String> {
    Connection::of(bootstrap)?.render().map_err(|error| error.to_string())
}

/// Checks that two kubeconfigs are for one hub.
///
/// # Errors
/// What one of them lacks, or what differs.
pub fn check_hub(own: &Kubeconfig, bootstrap: &Kubeconfig) -> Result<(), String> {
    compare(&Connection::of(own)?, &Connection::of(bootstrap)?).map_err(|error| error.to_string())
}
