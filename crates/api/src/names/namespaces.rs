//! Namespaces and reserved names.

/// Namespace of the operators and of the bootstrap service account.
pub const OPERATOR: &str = "open-cluster-management";
/// Namespace of the hub's components.
pub const HUB: &str = "open-cluster-management-hub";
/// Default namespace of the agent on the managed cluster.
pub const AGENT: &str = "open-cluster-management-agent";
/// Default namespace of add-ons on the managed cluster.
pub const AGENT_ADDON: &str = "open-cluster-management-agent-addon";

/// Cluster set that clusters without a set belong to.
pub const DEFAULT_CLUSTER_SET: &str = "default";
/// Cluster set of all clusters.
pub const GLOBAL_CLUSTER_SET: &str = "global";

/// ClusterClaims that are reported before all others and do not count towards the limit.
pub const RESERVED_CLUSTER_CLAIMS: [&str; 4] = [
    "id.k8s.io",
    "kubeversion.open-cluster-management.io",
    "platform.open-cluster-management.io",
    "product.open-cluster-management.io",
];
