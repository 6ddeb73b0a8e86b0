//! Reasons of conditions, one module per kind of object. The condition and status they go with stand at each.

/// Of ManagedCluster.
pub mod cluster {
    /// HubAccepted True.
    pub const HUB_CLUSTER_ADMIN_ACCEPTED: &str = "HubClusterAdminAccepted";
    /// HubAccepted False: `spec.hubAcceptsClient` was taken back.
    pub const HUB_CLUSTER_ADMIN_DENIED: &str = "HubClusterAdminDenied";
    /// HubAccepted False: the hub failed to set up namespace or roles.
    pub const ERROR: &str = "Error";
    /// Joined True.
    pub const JOINED: &str = "ManagedClusterJoined";
    /// Available True.
    pub const AVAILABLE: &str = "ManagedClusterAvailable";
    /// Available False: the managed cluster's API server is not healthy.
    pub const KUBE_API_SERVER_UNAVAILABLE: &str = "ManagedClusterKubeAPIServerUnavailable";
    /// Available Unknown: the agent no longer renews its lease.
    pub const LEASE_UPDATE_STOPPED: &str = "ManagedClusterLeaseUpdateStopped";
    /// ClockSynced True.
    pub const CLOCK_SYNCED: &str = "ManagedClusterClockSynced";
    /// ClockSynced False.
    pub const CLOCK_OUT_OF_SYNC: &str = "ManagedClusterClockOutOfSync";
    /// CertificateRotated True.
    pub const CLIENT_CERTIFICATE_UPDATED: &str = "ClientCertificateUpdated";
    /// CertificateRotated False.
    pub const CLIENT_CERTIFICATE_UPDATE_FAILED: &str = "ClientCertificateUpdateFailed";
    /// Deleting False: resources of the cluster are still there.
    pub const RESOURCE_REMAINING: &str = "ResourceRemaining";
    /// Deleting False: a resource could not be deleted.
    pub const DELETING_ERROR: &str = "DeletingError";
    /// Deleting True: nothing is left.
    pub const NO_RESOURCE: &str = "NoResource";
}

/// Of an entry in ManagedCluster `status.managedNamespaces`.
pub mod managed_namespace {
    /// Available True.
    pub const APPLIED: &str = "NamespaceApplied";
    /// Available False.
    pub const APPLY_FAILED: &str = "NamespaceApplyFailed";
}

/// Of ManagedClusterSet.
pub mod set {
    /// Empty True.
    pub const NO_CLUSTER_MATCHED: &str = "NoClusterMatched";
    /// Empty False.
    pub const CLUSTERS_SELECTED: &str = "ClustersSelected";
}

/// Of ManifestWork as a whole.
pub mod work {
    /// Applied True.
    pub const APPLIED: &str = "AppliedManifestWorkComplete";
    /// Applied False: at least one object could not be applied.
    pub const APPLY_FAILED: &str = "AppliedManifestWorkFailed";
    /// Available True.
    pub const RESOURCES_AVAILABLE: &str = "ResourcesAvailable";
    /// Available False: at least one object does not exist.
    pub const RESOURCES_NOT_AVAILABLE: &str = "ResourcesNotAvailable";
    /// Available Unknown: of at least one object nobody can say.
    pub const RESOURCES_STATUS_UNKNOWN: &str = "ResourcesStatusUnknown";
    /// Deleting True.
    pub const DELETING: &str = "WorkDeleting";
    /// Any condition made from condition rules.
    pub const CONDITION_RULES_AGGREGATED: &str = "ConditionRulesAggregated";
}

/// Of one object of a ManifestWork.
pub mod manifest {
    /// Applied True.
    pub const APPLIED: &str = "AppliedManifestComplete";
    /// Applied False.
    pub const APPLY_FAILED: &str = "AppliedManifestFailed";
    /// Applied False: `ignoreFields` could not be evaluated.
    pub const SSA_IGNORE_FIELD_ERROR: &str = "AppliedManifestSSAIgnoreFieldError";
    /// Available True.
    pub const RESOURCE_AVAILABLE: &str = "ResourceAvailable";
    /// Available False.
    pub const RESOURCE_NOT_AVAILABLE: &str = "ResourceNotAvailable";
    /// Available Unknown: the managed cluster did not answer.
    pub const FETCHING_RESOURCE_FAILED: &str = "FetchingResourceFailed";
    /// Available Unknown: the managed cluster does not know the kind.
    pub const INCOMPLETE_RESOURCE_META: &str = "IncompleteResourceMeta";
    /// StatusFeedbackSynced True: a rule selects the object, even if it found no value.
    pub const STATUS_FEEDBACK_SYNCED: &str = "StatusFeedbackSynced";
    /// StatusFeedbackSynced True: no rule selects the object.
    pub const NO_STATUS_FEEDBACK_SYNCED: &str = "NoStatusFeedbackSynced";
    /// StatusFeedbackSynced False.
    pub const STATUS_FEEDBACK_SYNC_FAILED: &str = "StatusFeedbackSyncFailed";
    /// A condition of a rule, True or False.
    pub const CONDITION_RULE_EVALUATED: &str = "ConditionRuleEvaluated";
    /// A condition of a rule that is not valid.
    pub const CONDITION_RULE_INVALID: &str = "ConditionRuleInvalid";
    /// A condition of a rule whose expression failed.
    pub const CONDITION_RULE_EXPRESSION_ERROR: &str = "ConditionRuleExpressionError";
    /// A condition of a rule that could not be evaluated for another reason.
    pub const CONDITION_RULE_INTERNAL_ERROR: &str = "ConditionRuleInternalError";
}

/// Of CertificateSigningRequest.
pub mod csr {
    /// Approved True by the hub, without an admin.
    pub const AUTO_APPROVED: &str = "AutoApprovedByHubCSRApprovingController";
}
