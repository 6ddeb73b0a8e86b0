//! Group `cluster.open-cluster-management.io`: managed clusters, sets of them, claims about them, choices among them.

pub mod v1;
pub mod v1alpha1;
pub mod v1beta1;
pub mod v1beta2;

/// The API group of everything in this module.
pub const GROUP: &str = "cluster.open-cluster-management.io";
