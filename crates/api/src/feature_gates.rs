//! The feature gates of hub and agent as a table. Names are case-sensitive; a name that is not in the set of a process is
//! an error at start-up.

use std::fmt;

use GateSet::{HubAddonManager, HubPlacement, HubRegistration, HubWork, SpokeRegistration, SpokeWork};
use Stage::{Alpha, Beta};

/// Who a gate belongs to. Some names exist in two sets, with values of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GateSet {
    /// The hub's registration controllers and webhooks.
    HubRegistration,
    /// The hub's work controllers and webhooks.
    HubWork,
    /// The hub's add-on manager.
    HubAddonManager,
    /// The hub's placement controller.
    HubPlacement,
    /// The registration part of the agent.
    SpokeRegistration,
    /// The work part of the agent.
    SpokeWork,
}

/// How mature the feature behind a gate is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// May change or go; all of this stage together are switched by `AllAlpha`.
    Alpha,
    /// Here to stay; all of this stage together are switched by `AllBeta`.
    Beta,
}

impl Stage {
    /// The name that switches every gate of this stage.
    pub const fn switch(self) -> &'static str {
        match self {
            Self::Alpha => ALL_ALPHA,
            Self::Beta => ALL_BETA,
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Alpha => "ALPHA",
            Self::Beta => "BETA",
        })
    }
}

/// One feature gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gate {
    /// Who it belongs to.
    pub set: GateSet,
    /// Its name on the command line.
    pub name: &'static str,
    /// Whether the feature is on by default.
    pub default: bool,
    /// How mature the feature is.
    pub stage: Stage,
    /// What the feature does, in a few words.
    pub summary: &'static str,
}

/// Name that switches every gate of stage [`Stage::Alpha`].
pub const ALL_ALPHA: &str = "AllAlpha";
/// Name that switches every gate of stage [`Stage::Beta`].
pub const ALL_BETA: &str = "AllBeta";

/// The cluster sets `default` and `global`.
pub const DEFAULT_CLUSTER_SET: &str = "DefaultClusterSet";
/// CSRs of version v1beta1 on API servers that serve no other.
pub const V1BETA1_CSR_API_COMPATIBILITY: &str = "V1beta1CSRAPICompatibility";
/// Accepting clusters, and approving their first CSR, without an admin.
pub const MANAGED_CLUSTER_AUTO_APPROVAL: &str = "ManagedClusterAutoApproval";
/// Deleting what belongs to a cluster together with it.
pub const RESOURCE_CLEANUP: &str = "ResourceCleanup";
/// ClusterProfile objects for clusters.
pub const CLUSTER_PROFILE: &str = "ClusterProfile";
/// Importing clusters from Cluster API.
pub const CLUSTER_IMPORTER: &str = "ClusterImporter";
/// Reporting ClusterClaims.
pub const CLUSTER_CLAIM: &str = "ClusterClaim";
/// Reporting ClusterProperties.
pub const CLUSTER_PROPERTY: &str = "ClusterProperty";
/// Registration and leases of add-ons.
pub const ADDON_MANAGEMENT: &str = "AddonManagement";
/// Decisions in the form of the multi-cluster SIG.
pub const SIG_PLACEMENT_DECISION: &str = "SIGPlacementDecision";
/// A server that explains placements.
pub const PLACEMENT_DEBUG_SERVER: &str = "PlacementDebugServer";
/// Choosing among several hubs.
pub const MULTIPLE_HUBS: &str = "MultipleHubs";
/// Checking works without an executor too.
pub const NIL_EXECUTOR_VALIDATING: &str = "NilExecutorValidating";
/// ManifestWorkReplicaSets.
pub const MANIFEST_WORK_REPLICA_SET: &str = "ManifestWorkReplicaSet";
/// Work drivers other than the Kubernetes API.
pub const CLOUD_EVENTS_DRIVERS: &str = "CloudEventsDrivers";
/// Deleting completed works.
pub const CLEAN_UP_COMPLETED_MANIFEST_WORK: &str = "CleanUpCompletedManifestWork";
/// Caching the outcome of executor checks.
pub const EXECUTOR_VALIDATING_CACHES: &str = "ExecutorValidatingCaches";
/// Feedback values that are objects or lists.
pub const RAW_FEEDBACK_JSON_STRING: &str = "RawFeedbackJsonString";

/// Every gate.
pub const ALL: &[Gate] = &[
    gate(HubRegistration, DEFAULT_CLUSTER_SET, true, Alpha, "keep the cluster sets default and global"),
    gate(HubRegistration, V1BETA1_CSR_API_COMPATIBILITY, false, Alpha, "handle v1beta1 CSRs on old API servers"),
    gate(HubRegistration, MANAGED_CLUSTER_AUTO_APPROVAL, false, Alpha, "accept clusters of listed users once"),
    gate(HubRegistration, RESOURCE_CLEANUP, true, Beta, "delete a cluster's resources with it"),
    gate(HubRegistration, CLUSTER_PROFILE, false, Alpha, "keep a ClusterProfile per cluster"),
    gate(HubRegistration, CLUSTER_IMPORTER, false, Alpha, "import clusters from Cluster API"),
    gate(SpokeRegistration, CLUSTER_CLAIM, true, Beta, "report ClusterClaims"),
    gate(SpokeRegistration, CLUSTER_PROPERTY, false, Alpha, "report ClusterProperties"),
    gate(SpokeRegistration, ADDON_MANAGEMENT, true, Beta, "register add-ons and keep their leases"),
    gate(SpokeRegistration, V1BETA1_CSR_API_COMPATIBILITY, false, Alpha, "make v1beta1 CSRs on old hubs"),
    gate(SpokeRegistration, MULTIPLE_HUBS, false, Alpha, "choose among several hubs"),
    gate(HubWork, NIL_EXECUTOR_VALIDATING, false, Alpha, "check works without an executor too"),
    gate(HubWork, MANIFEST_WORK_REPLICA_SET, false, Alpha, "serve ManifestWorkReplicaSets"),
    gate(HubWork, CLOUD_EVENTS_DRIVERS, false, Alpha, "allow work drivers mqtt and grpc"),
    gate(HubWork, CLEAN_UP_COMPLETED_MANIFEST_WORK, false, Alpha, "delete completed works"),
    gate(HubAddonManager, ADDON_MANAGEMENT, true, Beta, "install add-ons"),
    gate(HubPlacement, SIG_PLACEMENT_DECISION, false, Alpha, "write decisions in the form of the multi-cluster SIG"),
    gate(HubPlacement, PLACEMENT_DEBUG_SERVER, false, Alpha, "serve explanations of placements"),
    gate(SpokeWork, EXECUTOR_VALIDATING_CACHES, false, Alpha, "cache the outcome of executor checks"),
    gate(SpokeWork, RAW_FEEDBACK_JSON_STRING, false, Alpha, "report feedback values that are objects or lists"),
];

const fn gate(set: GateSet, name: &'static str, default: bool, stage: Stage, summary: &'static str) -> Gate {
    Gate { set, name, default, stage, summary }
}

/// The gates of a set.
pub fn of(set: GateSet) -> impl Iterator<Item = &'static Gate> {
    ALL.iter().filter(move |gate| gate.set == set)
}

/// The gate of this name in a set.
pub fn find(set: GateSet, name: &str) -> Option<&'static Gate> {
    of(set).find(|gate| gate.name == name)
}
