//! Reasons of conditions, one module per kind of object. Each names its condition and status.

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
    /// WorkEvictionHeld True: many works are missing at once.
    pub const MANY_WORKS_MISSING: &str = "ManyManifestWorksMissing";
    /// WorkEvictionHeld True: the hub has older data than the agent has seen.
    pub const HUB_RESTORED: &str = "HubRestored";
    /// WorkEvictionHeld False.
    pub const NO_EVICTION_HELD: &str = "NoEvictionHeld";
    /// Deleting False: resources of the cluster are still there.
    pub const RESOURCE_REMAINING: &str = "ResourceRemaining";
    /// Deleting False: a resource could not be deleted.
    pub const DELETING_ERROR: &str = "DeletingError";
    /// Deleting True: nothing is left.
    pub const NO_RESOURCE: &str = "NoResource";
    /// ImportSucceeded False: the cluster's kubeconfig could not be read.
    pub const KUBE_CONFIG_GET_FAILED: &str = "KubeConfigGetFailed";
    /// ImportSucceeded False: there is no kubeconfig of the cluster.
    pub const KUBE_CONFIG_NOT_FOUND: &str = "KubeConfigNotFound";
    /// ImportSucceeded False: the agent's manifests could not be made.
    pub const CONFIG_RENDERER_FAILED: &str = "ConfigRendererFailed";
    /// ImportSucceeded False: the agent's manifests could not be applied.
    pub const IMPORT_FAILED: &str = "ImportFailed";
    /// ImportSucceeded True.
    pub const IMPORT_SUCCEED: &str = "ImportSucceed";
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

/// Of ManagedClusterSetBinding.
pub mod set_binding {
    /// Bound True.
    pub const CLUSTER_SET_BOUND: &str = "ClusterSetBound";
    /// Bound False.
    pub const CLUSTER_SET_NOT_FOUND: &str = "ClusterSetNotFound";
}

/// Of Placement.
pub mod placement {
    /// Satisfied True.
    pub const ALL_DECISIONS_SCHEDULED: &str = "AllDecisionsScheduled";
    /// Satisfied False: fewer clusters fit than are wanted.
    pub const NOT_ALL_DECISIONS_SCHEDULED: &str = "NotAllDecisionsScheduled";
    /// Satisfied False: no cluster set is bound to the namespace.
    pub const NO_MANAGED_CLUSTER_SET_BINDINGS: &str = "NoManagedClusterSetBindings";
    /// Satisfied False: none of `spec.clusterSets` is bound to the namespace.
    pub const NO_INTERSECTION: &str = "NoIntersection";
    /// Satisfied False: the cluster sets have no cluster.
    pub const ALL_MANAGED_CLUSTER_SETS_EMPTY: &str = "AllManagedClusterSetsEmpty";
    /// Satisfied False: no cluster of the sets fits.
    pub const NO_MANAGED_CLUSTER_MATCHED: &str = "NoManagedClusterMatched";
    /// Misconfigured True.
    pub const MISCONFIGURED: &str = "Misconfigured";
    /// Misconfigured False.
    pub const SUCCEED_CONFIGURED: &str = "Succeedconfigured";

    /// Of an event: a PlacementDecision was made.
    pub const DECISION_CREATE: &str = "DecisionCreate";
    /// Action of an event with [`DECISION_CREATE`].
    pub const DECISION_CREATED: &str = "DecisionCreated";
    /// Of an event: the clusters of a PlacementDecision have changed.
    pub const DECISION_UPDATE: &str = "DecisionUpdate";
    /// Action of an event with [`DECISION_UPDATE`].
    pub const DECISION_UPDATED: &str = "DecisionUpdated";
    /// Of an event: a PlacementDecision was deleted.
    pub const DECISION_DELETE: &str = "DecisionDelete";
    /// Action of an event with [`DECISION_DELETE`].
    pub const DECISION_DELETED: &str = "DecisionDeleted";
    /// Of an event: the scores by which clusters were chosen.
    pub const SCORE_UPDATE: &str = "ScoreUpdate";
    /// Action of an event with [`SCORE_UPDATE`].
    pub const SCORE_UPDATED: &str = "ScoreUpdated";
}

/// Of ManifestWorkReplicaSet.
pub mod replica_set {
    /// PlacementVerified True; ManifestworkApplied True.
    pub const AS_EXPECTED: &str = "AsExpected";
    /// PlacementVerified False; ManifestworkApplied False.
    pub const NOT_AS_EXPECTED: &str = "NotAsExpected";
    /// PlacementVerified False: a placement does not exist.
    pub const PLACEMENT_DECISION_NOT_FOUND: &str = "PlacementDecisionNotFound";
    /// PlacementVerified False, ManifestworkApplied False: the placements chose no cluster.
    pub const PLACEMENT_DECISION_EMPTY: &str = "PlacementDecisionEmpty";
    /// ManifestworkApplied False: not every work is applied yet.
    pub const PROCESSING: &str = "Processing";
    /// ManifestworkApplied False: the set's name does not make a work's name.
    pub const INVALID_MANIFEST_WORK_NAME: &str = "InvalidManifestWorkName";
    /// PlacementRolledOut True.
    pub const COMPLETE: &str = "Complete";
    /// PlacementRolledOut False.
    pub const PROGRESSING: &str = "Progressing";
}

/// Of ManagedClusterAddOn and of ClusterManagementAddOn's `installProgressions`.
pub mod addon {
    /// Available True: the agent renews its lease.
    pub const LEASE_UPDATED: &str = "ManagedClusterAddOnLeaseUpdated";
    /// Available False: the agent no longer renews its lease.
    pub const LEASE_UPDATE_STOPPED: &str = "ManagedClusterAddOnLeaseUpdateStopped";
    /// Available Unknown: the agent never had a lease.
    pub const LEASE_NOT_FOUND: &str = "ManagedClusterAddOnLeaseNotFound";
    /// Available Unknown: the add-on has no work.
    pub const WORK_NOT_FOUND: &str = "WorkNotFound";
    /// Available Unknown: a work of the add-on could not be made.
    pub const WORK_APPLY_FAILED: &str = "WorkApplyFailed";
    /// Available False or Unknown: a work of the add-on is not available.
    pub const WORK_NOT_APPLIED: &str = "WorkNotApplied";
    /// Available True: the works of the add-on are.
    pub const WORK_APPLIED: &str = "WorkApplied";
    /// Available Unknown: the values by which it is decided are not reported.
    pub const NO_PROBE_RESULT: &str = "NoProbeResult";
    /// Available False: by the reported values.
    pub const PROBE_UNAVAILABLE: &str = "ProbeUnavailable";
    /// Available True: by the reported values.
    pub const PROBE_AVAILABLE: &str = "ProbeAvailable";

    /// ManifestApplied or HostingManifestApplied True.
    pub const MANIFEST_APPLIED: &str = "AddonManifestApplied";
    /// ManifestApplied or HostingManifestApplied False: the agent could not apply the works.
    pub const MANIFEST_APPLIED_FAILED: &str = "AddonManifestAppliedFailed";
    /// ManifestApplied or HostingManifestApplied False: the hub could not make the works.
    pub const MANIFEST_WORK_APPLY_FAILED: &str = "ManifestWorkApplyFailed";

    /// HostingClusterValidity True.
    pub const HOSTING_CLUSTER_VALID: &str = "HostingClusterValid";
    /// HostingClusterValidity False.
    pub const HOSTING_CLUSTER_INVALID: &str = "HostingClusterInvalid";

    /// RegistrationApplied True.
    pub const SET_PERMISSION_APPLIED: &str = "SetPermissionApplied";
    /// RegistrationApplied False: the agent's rights could not be set up.
    pub const SET_PERMISSION_FAILED: &str = "SetPermissionFailed";
    /// RegistrationApplied True: the add-on needs no identity.
    pub const NIL_REGISTRATION: &str = "NilRegistration";
    /// RegistrationApplied False: the hub waits for the agent's identity to be known.
    pub const PERMISSION_CONFIG_PENDING: &str = "PermissionConfigPending";

    /// Configured True.
    pub const CONFIGURATIONS_CONFIGURED: &str = "ConfigurationsConfigured";
    /// Configured False.
    pub const CONFIGURATIONS_NOT_CONFIGURED: &str = "ConfigurationsNotConfigured";

    /// Progressing True.
    pub const PROGRESSING: &str = "Progressing";
    /// Progressing False: everything is as it should be.
    pub const COMPLETED: &str = "Completed";
    /// Progressing False: the add-on could not be installed or changed.
    pub const FAILED: &str = "Failed";
    /// Progressing True: other clusters go first.
    pub const WAITING_FOR_CANARY: &str = "WaitingForCanary";
    /// Progressing False: the add-on does not understand a configuration.
    pub const CONFIGURATION_UNSUPPORTED: &str = "ConfigurationUnsupported";
    /// Progressing False: the works are not applied yet.
    pub const WAITING_FOR_MANIFEST_APPLIED: &str = "WaitingForManifestApplied";
    /// Progressing False: the works on the hosting cluster are not applied yet.
    pub const WAITING_FOR_HOSTING_MANIFEST_APPLIED: &str = "WaitingForHostingManifestApplied";

    /// TokenInfrastructureReady True.
    pub const TOKEN_INFRASTRUCTURE_READY: &str = "TokenInfrastructureReady";
    /// TokenInfrastructureReady False.
    pub const TOKEN_INFRASTRUCTURE_APPLY_FAILED: &str = "TokenInfrastructureApplyFailed";
    /// TokenRefreshed True.
    pub const TOKEN_REFRESHED: &str = "AddonTokenRefreshed";
    /// TokenRefreshed False.
    pub const TOKEN_CREATION_FAILED: &str = "TokenCreationFailed";
}

/// Of ClusterManager.
pub mod cluster_manager {
    /// Applied True.
    pub const APPLIED: &str = "ClusterManagerApplied";
    /// Applied False: a CRD could not be applied.
    pub const CRD_APPLY_FAILED: &str = "CRDApplyFailed";
    /// Applied False: roles, namespaces or secrets could not be applied.
    pub const HUB_RESOURCE_APPLY_FAILED: &str = "HubResourceApplyFailed";
    /// Applied False: a webhook could not be applied.
    pub const WEBHOOK_APPLY_FAILED: &str = "WebhookApplyFailed";
    /// Applied False: a Deployment could not be applied.
    pub const RUNTIME_RESOURCE_APPLY_FAILED: &str = "RuntimeResourceApplyFailed";
    /// Applied False: credentials of a hosted hub could not be made.
    pub const SERVICE_ACCOUNT_SYNC_FAILED: &str = "ServiceAccountSyncFailed";
    /// Progressing True.
    pub const DEPLOYMENT_ROLLING: &str = "ClusterManagerDeploymentRolling";
    /// Progressing False.
    pub const UP_TO_DATE: &str = "ClusterManagerUpToDate";
    /// HubRegistrationDegraded False.
    pub const REGISTRATION_FUNCTIONAL: &str = "RegistrationFunctional";
    /// HubRegistrationDegraded True: pods are not running.
    pub const UNAVAILABLE_REGISTRATION_POD: &str = "UnavailableRegistrationPod";
    /// HubRegistrationDegraded True: the Deployment could not be read.
    pub const GET_REGISTRATION_DEPLOYMENT_FAILED: &str = "GetRegistrationDeploymentFailed";
    /// HubPlacementDegraded False.
    pub const PLACEMENT_FUNCTIONAL: &str = "PlacementFunctional";
    /// HubPlacementDegraded True: pods are not running.
    pub const UNAVAILABLE_PLACEMENT_POD: &str = "UnavailablePlacementPod";
    /// HubPlacementDegraded True: the Deployment could not be read.
    pub const GET_PLACEMENT_DEPLOYMENT_FAILED: &str = "GetPlacementDeploymentFailed";
    /// MigrationSucceeded True.
    pub const STORAGE_VERSION_MIGRATION_SUCCEED: &str = "StorageVersionMigrationSucceed";
    /// MigrationSucceeded False: it goes on.
    pub const STORAGE_VERSION_MIGRATION_PROCESSING: &str = "StorageVersionMigrationProcessing";
    /// MigrationSucceeded False.
    pub const STORAGE_VERSION_MIGRATION_FAILED: &str = "StorageVersionMigrationFailed";
    /// ValidFeatureGates True.
    pub const FEATURE_GATES_ALL_VALID: &str = "FeatureGatesAllValid";
    /// ValidFeatureGates False.
    pub const INVALID_FEATURE_GATES_EXISTING: &str = "InvalidFeatureGatesExisting";
}

/// Of Klusterlet. Those of `ValidFeatureGates` are [`cluster_manager`]'s.
pub mod klusterlet {
    /// Applied True.
    pub const APPLIED: &str = "KlusterletApplied";
    /// Applied False.
    pub const APPLY_FAILED: &str = "KlusterletApplyFailed";
    /// Applied False: a CRD could not be applied.
    pub const CRD_APPLY_FAILED: &str = super::cluster_manager::CRD_APPLY_FAILED;
    /// Applied False: something on the managed cluster could not be applied.
    pub const MANAGED_CLUSTER_RESOURCE_APPLY_FAILED: &str = "ManagedClusterResourceApplyFailed";
    /// Applied False: something on the cluster of the agent's pods could not be applied.
    pub const MANAGEMENT_CLUSTER_RESOURCE_APPLY_FAILED: &str = "ManagementClusterResourceApplyFailed";
    /// ReadyToApply True.
    pub const PREPARED: &str = "KlusterletPrepared";
    /// ReadyToApply False.
    pub const PREPARE_FAILED: &str = "KlusterletPrepareFailed";
    /// Available True.
    pub const AVAILABLE: &str = "KlusterletAvailable";
    /// Available False.
    pub const NO_AVAILABLE_PODS: &str = "NoAvailablePods";
    /// HubConnectionDegraded False.
    pub const HUB_CONNECTION_FUNCTIONAL: &str = "HubConnectionFunctional";
    /// HubConnectionDegraded True: the secret with the credentials is missing.
    pub const HUB_KUBE_CONFIG_SECRET_MISSING: &str = "HubKubeConfigSecretMissing";
    /// HubConnectionDegraded True: the secret has no kubeconfig.
    pub const HUB_KUBE_CONFIG_MISSING: &str = "HubKubeConfigMissing";
    /// HubConnectionDegraded True: the kubeconfig is wrong.
    pub const HUB_KUBE_CONFIG_ERROR: &str = "HubKubeConfigError";
    /// HubConnectionDegraded True: the hub does not let the agent do what it must.
    pub const HUB_KUBE_CONFIG_UNAUTHORIZED: &str = "HubKubeConfigUnauthorized";
    /// HubConnectionDegraded True: the secret does not name the cluster.
    pub const CLUSTER_NAME_MISSING: &str = "ClusterNameMissing";
    /// RegistrationDesiredDegraded or WorkDesiredDegraded False.
    pub const DEPLOYMENTS_FUNCTIONAL: &str = "DeploymentsFunctional";
    /// RegistrationDesiredDegraded or WorkDesiredDegraded True: pods are not running.
    pub const UNAVAILABLE_PODS: &str = "UnavailablePods";
    /// RegistrationDesiredDegraded or WorkDesiredDegraded True: the Deployment could not be read.
    pub const GET_DEPLOYMENT_FAILED: &str = "GetDeploymentFailed";
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
    /// Available Unknown: the state of at least one object is unknown.
    pub const RESOURCES_STATUS_UNKNOWN: &str = "ResourcesStatusUnknown";
    /// Deleting True.
    pub const DELETING: &str = "WorkDeleting";
    /// Any condition made from condition rules.
    pub const CONDITION_RULES_AGGREGATED: &str = "ConditionRulesAggregated";
    /// Deleted True.
    pub const MANIFESTS_DELETED: &str = "ManifestsDeleted";
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
    /// Approved True by the hub, for an agent whose former certificate has expired. Ours alone.
    pub const RECOVERED: &str = "CertificateRecoveredByHub";
}
