//! Group `about.k8s.io`: what a cluster states about itself, after Kubernetes' multicluster interest group.

pub mod v1alpha1;

/// The API group of everything in this module.
pub const GROUP: &str = "about.k8s.io";
