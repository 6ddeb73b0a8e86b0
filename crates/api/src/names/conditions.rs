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
}

/// Values of a condition's `status`.
pub mod status {
    /// The condition holds.
    pub const TRUE: &str = "True";
    /// The condition does not hold.
    pub const FALSE: &str = "False";
    /// Nobody can say.
    pub const UNKNOWN: &str = "Unknown";
}
