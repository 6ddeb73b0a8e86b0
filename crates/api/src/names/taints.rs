//! Keys of the taints the hub puts on clusters, both with effect `NoSelect` and no value.

/// The cluster's API server is not healthy: condition Available is False.
pub const UNAVAILABLE: &str = "cluster.open-cluster-management.io/unavailable";

/// The cluster is unreachable: condition Available is Unknown or absent.
pub const UNREACHABLE: &str = "cluster.open-cluster-management.io/unreachable";
