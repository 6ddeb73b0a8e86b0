//! Group `work.open-cluster-management.io`: what is to run on a managed cluster, and what does.

pub mod v1;
pub mod v1alpha1;

/// The API group of everything in this module.
pub const GROUP: &str = "work.open-cluster-management.io";
