//! Group `operator.open-cluster-management.io`: what the operators install.

pub mod v1;

/// The API group of everything in this module.
pub const GROUP: &str = "operator.open-cluster-management.io";
