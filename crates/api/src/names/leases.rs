//! Leases: heartbeats of clusters, and locks of components so that only one replica leads.
//!
//! The heartbeat of an add-on has the add-on's name, in the add-on's namespace on the managed or hosting cluster.

/// The cluster's heartbeat, in its namespace on the hub; also its holder identity. The hub creates it, the agent renews it.
pub const MANAGED_CLUSTER: &str = "managed-cluster-lease";

/// Lock of the hub's registration controllers.
pub const REGISTRATION_CONTROLLER_LOCK: &str = "registration-controller-lock";
/// Lock of the hub's work controllers.
pub const WORK_MANAGER_LOCK: &str = "work-manager-lock";
/// Lock of the hub's placement controllers.
pub const PLACEMENT_LOCK: &str = "placement-lock";
/// Lock of the hub's add-on controllers.
pub const ADDON_MANAGER_LOCK: &str = "manager-lock";
/// Lock of an agent that only registers.
pub const REGISTRATION_AGENT_LOCK: &str = "registration-agent-lock";
/// Lock of an agent that only runs works.
pub const WORK_AGENT_LOCK: &str = "work-agent-lock";
/// Lock of an agent that does both.
pub const KLUSTERLET_AGENT_LOCK: &str = "klusterlet-agent-lock";
/// Lock of the placement debug server.
pub const PLACEMENT_DEBUG_LOCK: &str = "placement-debug-lock";

/// Controllers of a hub that share a lock, and so are elected together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HubComponent {
    /// Its name on the command line.
    pub name: &'static str,
    /// The lease that the leader of its controllers holds.
    pub lock: &'static str,
}

impl HubComponent {
    /// The controllers that let clusters in and watch over them.
    pub const REGISTRATION: Self = Self { name: "registration", lock: REGISTRATION_CONTROLLER_LOCK };
    /// The controller that selects clusters for placements.
    pub const PLACEMENT: Self = Self { name: "placement", lock: PLACEMENT_LOCK };
    /// The controllers that install add-ons.
    pub const ADDON: Self = Self { name: "addon", lock: ADDON_MANAGER_LOCK };
    /// The controllers of works. They run only with feature gates that are off by default.
    pub const WORK: Self = Self { name: "work", lock: WORK_MANAGER_LOCK };
    /// The components that `ocm hub` runs.
    pub const ALL: [Self; 4] = [Self::REGISTRATION, Self::PLACEMENT, Self::ADDON, Self::WORK];
    /// Those that run unless a feature gate is switched off.
    pub const BY_DEFAULT: [Self; 3] = [Self::REGISTRATION, Self::PLACEMENT, Self::ADDON];
}
