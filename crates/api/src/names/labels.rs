//! Label keys and values.

/// On everything the hub keeps for a cluster: namespace, lease, roles, bindings, CSRs. Value: the cluster's name, or empty
/// on the two cluster roles that all clusters share. The hub's caches hold only what carries it.
pub const CLUSTER_NAME: &str = "open-cluster-management.io/cluster-name";

/// On what belongs to an add-on. Value: the add-on's name. CSRs that carry it are not the cluster's own.
pub const ADDON_NAME: &str = "open-cluster-management.io/addon-name";

/// On a ManagedCluster. Value: the one exclusive cluster set it belongs to.
pub const CLUSTER_SET: &str = "cluster.open-cluster-management.io/clusterset";

/// On a ClusterClaim that stays on the managed cluster. Any value.
pub const SPOKE_ONLY: &str = "open-cluster-management.io/spoke-only";

/// On a ClusterRole of the managed cluster, value `true`: its rules are aggregated into the work agent's role.
pub const AGGREGATE_TO_WORK: &str = "open-cluster-management.io/aggregate-to-work";

/// On a ManifestWork made for a ManifestWorkReplicaSet. Value: `<namespace>.<name>` of the set.
pub const MANIFEST_WORK_REPLICA_SET: &str = "work.open-cluster-management.io/manifestworkreplicaset";

/// Prefix of the label on a ManagedCluster that says how an add-on fares there; the add-on's name follows.
pub const ADDON_FEATURE_PREFIX: &str = "feature.open-cluster-management.io/addon-";

/// Prefix of the label on namespaces of the managed cluster that a cluster set wants there.
const MANAGED_NAMESPACE_PREFIX: &str = "clusterset.open-cluster-management.io/";

/// The longest name part of a label key, in bytes.
const LABEL_NAME_MAX: usize = 63;

/// The key on a namespace of the managed cluster that cluster sets of this hub manage: the value is `true` while they do
/// and `false` when they no longer do. `hub_hash` is the hex SHA-256 of the hub's URL; the key holds its first 63
/// characters.
pub fn managed_namespace(hub_hash: &str) -> String {
    let short = hub_hash.get(..LABEL_NAME_MAX).unwrap_or(hub_hash);
    format!("{MANAGED_NAMESPACE_PREFIX}{short}")
}
