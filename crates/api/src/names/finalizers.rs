//! Finalizers. Each belongs to one controller, which alone removes it.

/// On an accepted ManagedCluster: the hub first removes the cluster's roles and waits for its works to go.
pub const CLUSTER_API_RESOURCE_CLEANUP: &str = "cluster.open-cluster-management.io/api-resource-cleanup";

/// On every ManagedCluster: the hub first deletes what lives in the cluster's namespace.
pub const CLUSTER_RESOURCE_CLEANUP: &str = "cluster.open-cluster-management.io/resource-cleanup";

/// On a ManifestWork: the agent first deletes what it applied. Also on the RoleBinding that lets the agent read its works,
/// so that the agent can still do so while the cluster's namespace is deleted.
pub const MANIFEST_WORK: &str = "cluster.open-cluster-management.io/manifest-work-cleanup";

/// On an AppliedManifestWork: the agent first deletes the objects it lists.
pub const APPLIED_MANIFEST_WORK: &str = "cluster.open-cluster-management.io/applied-manifest-work-cleanup";
