//! Condition types, one module per kind of object.

/// Of ManagedCluster.
pub mod cluster {
    /// The hub's admins let the cluster in. Written by the hub.
    pub const HUB_ACCEPTED: &str = "HubAcceptedManagedCluster";
    /// The agent has connected with credentials of its own. Written by the agent, never taken back.
    pub const JOINED: &str = "ManagedClusterJoined";
    /// The cluster's API server is healthy. True or False by the agent, Unknown by the hub when the lease runs out.
    pub const AVAILABLE: &str = "ManagedClusterConditionAvailable";
    /// The agent's clock is close to the hub's. Written by the hub.
    pub const CLOCK_SYNCED: &str = "ManagedClusterConditionClockSynced";
    /// How the deletion of the cluster's resources goes. Written by the hub.
    pub const DELETING: &str = "Deleting";
    /// How the last renewal of the agent's certificate went. Written by the agent; absent before the first renewal.
    pub const CERTIFICATE_ROTATED: &str = "ClusterCertificateRotated";
    /// The agent keeps what works applied that the hub no longer knows, until somebody confirms. Written by our agent, absent
    /// until it is first the case.
    pub const WORK_EVICTION_HELD: &str = "WorkEvictionHeld";
    /// The hub installed an agent on the cluster. Written by the hub, behind a feature gate.
    pub const IMPORT_SUCCEEDED: &str = "ManagedClusterImportSucceeded";
}

/// Of an entry in ManagedCluster `status.managedNamespaces`.
pub mod managed_namespace {
    /// The namespace exists on the managed cluster.
    pub const AVAILABLE: &str = "NamespaceAvailable";
}

/// Of ManagedClusterSet.
pub mod set {
    /// The set has no cluster.
    pub const EMPTY: &str = "ClusterSetEmpty";
}

/// Of ManagedClusterSetBinding.
pub mod set_binding {
    /// The set exists and is bound.
    pub const BOUND: &str = "Bound";
}

/// Of ClusterProfile; reasons and messages are those of the ManagedCluster.
pub mod cluster_profile {
    /// The ManagedCluster's condition [`AVAILABLE`](super::cluster::AVAILABLE).
    pub const CONTROL_PLANE_HEALTHY: &str = "ControlPlaneHealthy";
    /// The ManagedCluster's condition [`JOINED`](super::cluster::JOINED).
    pub const JOINED: &str = "Joined";
}

/// Of Placement.
pub mod placement {
    /// As many clusters are chosen as are wanted.
    pub const SATISFIED: &str = "PlacementSatisfied";
    /// The spec is wrong.
    pub const MISCONFIGURED: &str = "PlacementMisconfigured";
}

/// Of ManifestWorkReplicaSet.
pub mod replica_set {
    /// The placements exist and chose clusters.
    pub const PLACEMENT_VERIFIED: &str = "PlacementVerified";
    /// The template has reached every cluster.
    pub const PLACEMENT_ROLLED_OUT: &str = "PlacementRolledOut";
    /// Every work is applied. The name has a small w.
    pub const MANIFEST_WORK_APPLIED: &str = "ManifestworkApplied";
}

/// Of ManagedClusterAddOn; of ClusterManagementAddOn's `installProgressions` it is [`PROGRESSING`](addon::PROGRESSING).
pub mod addon {
    /// The add-on does its work on the cluster.
    pub const AVAILABLE: &str = "Available";
    /// Something is wrong with the add-on. Written by add-ons.
    pub const DEGRADED: &str = "Degraded";
    /// The add-on is being installed or changed.
    pub const PROGRESSING: &str = "Progressing";
    /// The hub has worked out the add-on's configurations.
    pub const CONFIGURED: &str = "Configured";
    /// The add-on's objects are applied on the managed cluster.
    pub const MANIFEST_APPLIED: &str = "ManifestApplied";
    /// The add-on's objects are applied on the hosting cluster.
    pub const HOSTING_MANIFEST_APPLIED: &str = "HostingManifestApplied";
    /// The add-on's pre-delete hooks have run.
    pub const HOOK_MANIFEST_COMPLETED: &str = "HookManifestCompleted";
    /// The hosting cluster exists.
    pub const HOSTING_CLUSTER_VALIDITY: &str = "HostingClusterValidity";
    /// The agent has its rights on the hub, and may register.
    pub const REGISTRATION_APPLIED: &str = "RegistrationApplied";
    /// How the last renewal of the agent's certificate went. Written by the cluster's agent.
    pub const CERTIFICATE_ROTATED: &str = super::cluster::CERTIFICATE_ROTATED;
    /// Service account and rights for the agent's token exist.
    pub const TOKEN_INFRASTRUCTURE_READY: &str = "TokenInfrastructureReady";
    /// How the last renewal of the agent's token went. Written by the cluster's agent.
    pub const TOKEN_REFRESHED: &str = "TokenRefreshed";
}

/// Of ClusterManager.
pub mod cluster_manager {
    /// Everything of the hub is applied.
    pub const APPLIED: &str = "Applied";
    /// Deployments of the hub are changing.
    pub const PROGRESSING: &str = "Progressing";
    /// The registration pods are missing or not running.
    pub const HUB_REGISTRATION_DEGRADED: &str = "HubRegistrationDegraded";
    /// The placement pods are missing or not running.
    pub const HUB_PLACEMENT_DEGRADED: &str = "HubPlacementDegraded";
    /// Stored objects are in the version they should be.
    pub const MIGRATION_SUCCEEDED: &str = "MigrationSucceeded";
    /// Every feature gate is known.
    pub const VALID_FEATURE_GATES: &str = "ValidFeatureGates";
}

/// Of Klusterlet.
pub mod klusterlet {
    /// Everything of the agent is applied.
    pub const APPLIED: &str = "Applied";
    /// The managed cluster is within reach, so that a hosted agent can be installed.
    pub const READY_TO_APPLY: &str = "ReadyToApply";
    /// The agent's pods run.
    pub const AVAILABLE: &str = "Available";
    /// The agent's credentials for the hub are missing or do not work.
    pub const HUB_CONNECTION_DEGRADED: &str = "HubConnectionDegraded";
    /// The registration agent's pods are missing or not running.
    pub const REGISTRATION_DESIRED_DEGRADED: &str = "RegistrationDesiredDegraded";
    /// The work agent's pods are missing or not running.
    pub const WORK_DESIRED_DEGRADED: &str = "WorkDesiredDegraded";
    /// Every feature gate is known.
    pub const VALID_FEATURE_GATES: &str = super::cluster_manager::VALID_FEATURE_GATES;
}

/// Of ManifestWork as a whole.
pub mod work {
    /// Every object is applied.
    pub const APPLIED: &str = "Applied";
    /// Every object exists on the managed cluster.
    pub const AVAILABLE: &str = "Available";
    /// The work is being deleted.
    pub const DELETING: &str = "Deleting";
    /// The work has done what it was for; set only through condition rules. Completed objects are no longer updated.
    pub const COMPLETE: &str = "Complete";
    /// The work is in progress; set only by condition rules.
    pub const PROGRESSING: &str = "Progressing";
    /// Something is wrong with what the work brought; set only through condition rules.
    pub const DEGRADED: &str = "Degraded";
    /// The work and its objects are gone; set only where works travel as CloudEvents.
    pub const DELETED: &str = "Deleted";
    /// Feedback of every object was read. A type of objects of a work, see [`manifest`](super::manifest).
    pub const STATUS_FEEDBACK_SYNCED: &str = super::manifest::STATUS_FEEDBACK_SYNCED;
}

/// Of one object of a ManifestWork.
pub mod manifest {
    /// The object is applied.
    pub const APPLIED: &str = "Applied";
    /// The object exists on the managed cluster.
    pub const AVAILABLE: &str = "Available";
    /// The object's feedback was read.
    pub const STATUS_FEEDBACK_SYNCED: &str = "StatusFeedbackSynced";
    /// The object has done what it was for; set only through condition rules.
    pub const COMPLETE: &str = "Complete";
}

/// Of CertificateSigningRequest, from Kubernetes.
pub mod csr {
    /// The request is approved.
    pub const APPROVED: &str = "Approved";
    /// The request is denied.
    pub const DENIED: &str = "Denied";
    /// The signer refuses to sign the request, though it is approved.
    pub const FAILED: &str = "Failed";
}

/// Values of a condition's `status`.
pub mod status {
    /// The condition holds.
    pub const TRUE: &str = "True";
    /// The condition does not hold.
    pub const FALSE: &str = "False";
    /// The status cannot be determined.
    pub const UNKNOWN: &str = "Unknown";
}
