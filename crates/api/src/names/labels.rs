//! Label keys and values.

/// On everything the hub keeps for a cluster: namespace, lease, roles, bindings, CSRs. Value: the cluster's name, or empty
/// on the two cluster roles that all clusters share. The hub's caches hold only what carries it.
pub const CLUSTER_NAME: &str = "open-cluster-management.io/cluster-name";

/// On what belongs to an add-on. Value: the add-on's name. CSRs that carry it are not the cluster's own.
pub const ADDON_NAME: &str = "open-cluster-management.io/addon-name";

/// On a ManagedCluster. Value: the one exclusive cluster set it belongs to.
pub const CLUSTER_SET: &str = "cluster.open-cluster-management.io/clusterset";

/// On a ClusterClaim or ClusterProperty that stays on the managed cluster. Any value.
pub const SPOKE_ONLY: &str = "open-cluster-management.io/spoke-only";

/// On a ClusterRole of the managed cluster, value `true`: its rules are aggregated into the work agent's role.
pub const AGGREGATE_TO_WORK: &str = "open-cluster-management.io/aggregate-to-work";

/// On a ManifestWork made for a ManifestWorkReplicaSet. Value: `<namespace>.<name>` of the set.
pub const MANIFEST_WORK_REPLICA_SET: &str = "work.open-cluster-management.io/manifestworkreplicaset";

/// On a ManifestWork made for a ManifestWorkReplicaSet. Value: name of the placement that chose its cluster.
pub const PLACEMENT_NAME: &str = "work.open-cluster-management.io/placementname";

/// On a PlacementDecision. Value: name of its placement.
pub const PLACEMENT: &str = "cluster.open-cluster-management.io/placement";
/// On a PlacementDecision. Value: name of its decision group; empty when no named group selects its clusters.
pub const DECISION_GROUP_NAME: &str = "cluster.open-cluster-management.io/decision-group-name";
/// On a PlacementDecision. Value: index of its decision group, from 0.
pub const DECISION_GROUP_INDEX: &str = "cluster.open-cluster-management.io/decision-group-index";

/// Prefix of the label on a ManagedCluster with the state of an add-on there; the add-on's name follows.
pub const ADDON_FEATURE_PREFIX: &str = "feature.open-cluster-management.io/addon-";
/// Value of a label with [`ADDON_FEATURE_PREFIX`]: the add-on is available.
pub const ADDON_AVAILABLE: &str = "available";
/// Value of a label with [`ADDON_FEATURE_PREFIX`]: the add-on is not available.
pub const ADDON_UNHEALTHY: &str = "unhealthy";
/// Value of a label with [`ADDON_FEATURE_PREFIX`]: it is unknown whether the add-on is available.
pub const ADDON_UNREACHABLE: &str = "unreachable";

/// On a ManifestWork of an add-on in another cluster's namespace. Value: namespace of the ManagedClusterAddOn.
pub const ADDON_NAMESPACE: &str = "open-cluster-management.io/addon-namespace";
/// On a role binding made for an AddOnTemplate. Empty.
pub const ADDON_TEMPLATE_NAME: &str = "open-cluster-management.io/addon-template-name";
/// Deprecated and not used. What runs before an add-on is deleted carries
/// [`annotations::ADDON_PRE_DELETE`](crate::annotations::ADDON_PRE_DELETE) as annotation or label.
pub const ADDON_PRE_DELETE_DEPRECATED: &str = "open-cluster-management.io/addon-pre-delete";
/// On one of an add-on's manifests: an older spelling of
/// [`annotations::HOSTED_MANIFEST_LOCATION`](crate::annotations::HOSTED_MANIFEST_LOCATION).
pub const HOSTED_MANIFEST_LOCATION: &str = crate::annotations::HOSTED_MANIFEST_LOCATION;
/// On a namespace of the managed cluster, value `true`: add-ons live in it, so the operator gives it what their images
/// need.
pub const ADDON_INSTALL_NAMESPACE: &str = "addon.open-cluster-management.io/namespace";
/// On the service account, role and role binding of an add-on that authenticates with a token. Value: the add-on's name.
pub const TOKEN_ADDON_NAME: &str = "addon.open-cluster-management.io/name";
/// On what [`TOKEN_ADDON_NAME`] is on, value `true`.
pub const TOKEN_INFRASTRUCTURE: &str = "addon.open-cluster-management.io/token-infrastructure";

/// On a ClusterProfile. Value: [`CLUSTER_PROFILE_MANAGER`].
pub const CLUSTER_PROFILE_MANAGER_KEY: &str = "x-k8s.io/cluster-manager";
/// The name of OCM as a manager of clusters, in a ClusterProfile's label and spec.
pub const CLUSTER_PROFILE_MANAGER: &str = "open-cluster-management";
/// On a ClusterProfile. Value: the cluster's exclusive cluster set.
pub const CLUSTER_PROFILE_SET: &str = "multicluster.x-k8s.io/clusterset";

/// On what an operator made for a ClusterManager. Value: the ClusterManager's name.
pub const CREATED_BY_CLUSTER_MANAGER: &str = "open-cluster-management.io/created-by-clustermanager";
/// On what an operator made for a Klusterlet. Value: the Klusterlet's name.
pub const CREATED_BY_KLUSTERLET: &str = "open-cluster-management.io/created-by-klusterlet";
/// On an agent's namespace. Value: the Klusterlet's name.
pub const KLUSTERLET: &str = "operator.open-cluster-management.io/klusterlet";
/// On Deployments and pods that an operator made. Value: which component it is.
pub const APP: &str = "app";
/// Values of [`APP`] on pods that are the same for every ClusterManager or Klusterlet. On the hub's other pods it is the
/// name of the Deployment.
pub mod app {
    /// The hub's registration controllers.
    pub const HUB_REGISTRATION: &str = "clustermanager-registration-controller";
    /// The hub's placement controllers.
    pub const HUB_PLACEMENT: &str = "clustermanager-placement-controller";
    /// The hub's add-on controllers.
    pub const HUB_ADDON_MANAGER: &str = "clustermanager-addon-manager-controller";
    /// The operator of the agent.
    pub const KLUSTERLET_OPERATOR: &str = "klusterlet";
    /// An agent in one part.
    pub const AGENT: &str = "klusterlet-agent";
    /// The registration part of an agent.
    pub const REGISTRATION_AGENT: &str = "klusterlet-registration-agent";
    /// The work part of an agent.
    pub const WORK_AGENT: &str = "klusterlet-manifestwork-agent";
}

/// Labels with this prefix are not copied from a ClusterManager or Klusterlet to what is made for it; nor is [`APP`].
pub const NOT_COPIED_PREFIX: &str = "open-cluster-management.io";

/// On a ManifestWork that an agent got as a CloudEvent. Value: the event's source.
pub const ORIGINAL_SOURCE: &str = "cloudevents.open-cluster-management.io/originalsource";

/// On a Secret of an agent's namespace: it has the copy of a work. Ours alone.
pub const OFFLINE_COPY: &str = "ocm-rs.github.io/offline-copy";

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
