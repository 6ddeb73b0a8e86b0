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

/// On a ManifestWorkReplicaSet: the hub first deletes its works.
pub const MANIFEST_WORK_REPLICA_SET: &str = "work.open-cluster-management.io/manifest-work-cleanup";

/// On a ManagedClusterAddOn: its pre-delete hooks run first, on the managed cluster.
pub const ADDON_PRE_DELETE: &str = "addon.open-cluster-management.io/addon-pre-delete";
/// On a ManagedClusterAddOn: its pre-delete hooks run first, on the hosting cluster.
pub const ADDON_HOSTING_PRE_DELETE: &str = "addon.open-cluster-management.io/hosting-addon-pre-delete";
/// On a ManagedClusterAddOn: what it has on the hosting cluster is deleted first.
pub const ADDON_HOSTING_MANIFESTS: &str = "addon.open-cluster-management.io/hosting-manifests-cleanup";
/// Finalizers of old versions on ManagedClusterAddOns, which are only removed.
pub const ADDON_DEPRECATED: [&str; 3] = [
    "cluster.open-cluster-management.io/addon-pre-delete",
    "cluster.open-cluster-management.io/hosting-addon-pre-delete",
    "cluster.open-cluster-management.io/hosting-manifests-cleanup",
];

/// On a ClusterManager: the operator first removes the hub.
pub const CLUSTER_MANAGER: &str = "operator.open-cluster-management.io/cluster-manager-cleanup";
/// On a Klusterlet: the operator first removes the agent.
pub const KLUSTERLET: &str = "operator.open-cluster-management.io/klusterlet-cleanup";
/// On a Klusterlet whose agent is hosted: the operator first removes what the agent has on the managed cluster.
pub const KLUSTERLET_HOSTED: &str = "operator.open-cluster-management.io/klusterlet-hosted-cleanup";
