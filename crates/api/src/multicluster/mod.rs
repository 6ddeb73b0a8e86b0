//! Group `multicluster.x-k8s.io`: clusters as tools of other projects see them, after Kubernetes' multicluster interest
//! group.

pub mod v1alpha1;

/// The API group of everything in this module.
pub const GROUP: &str = "multicluster.x-k8s.io";
