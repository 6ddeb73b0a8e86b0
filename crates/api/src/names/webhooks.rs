//! Services, webhooks and ports of the hub.

/// Service of the registration webhooks, in [`HUB`](crate::namespaces::HUB).
pub const REGISTRATION_SERVICE: &str = "cluster-manager-registration-webhook";
/// Service of the work webhooks.
pub const WORK_SERVICE: &str = "cluster-manager-work-webhook";
/// Service of the add-on conversion webhook.
pub const ADDON_SERVICE: &str = "cluster-manager-addon-webhook";

/// Configuration of the webhook that completes ManagedClusters.
pub const CLUSTER_MUTATORS: &str = "managedclustermutators.admission.cluster.open-cluster-management.io";
/// Configuration of the webhook that checks ManagedClusters.
pub const CLUSTER_VALIDATORS: &str = "managedclustervalidators.admission.cluster.open-cluster-management.io";
/// Configuration of the webhook that checks ManagedClusterSetBindings.
pub const SET_BINDING_VALIDATORS: &str =
    "managedclustersetbindingvalidators.admission.cluster.open-cluster-management.io";
/// Configuration of the webhook that checks ManifestWorks.
pub const WORK_VALIDATORS: &str = "manifestworkvalidators.admission.work.open-cluster-management.io";
/// Configuration of the webhook that checks ManifestWorkReplicaSets, and the policy in its place. OCM has neither.
pub const REPLICA_SET_VALIDATORS: &str = "manifestworkreplicasetvalidators.admission.work.open-cluster-management.io";

/// Path of the webhook that completes ManagedClusters.
pub const MUTATE_CLUSTER_PATH: &str = "/mutate-cluster-open-cluster-management-io-v1-managedcluster";
/// Path of the webhook that checks ManagedClusters.
pub const VALIDATE_CLUSTER_PATH: &str = "/validate-cluster-open-cluster-management-io-v1-managedcluster";
/// Path of the webhook that checks ManagedClusterSetBindings.
pub const VALIDATE_SET_BINDING_PATH: &str =
    "/validate-cluster-open-cluster-management-io-v1beta2-managedclustersetbinding";
/// Path of the webhook that checks ManifestWorks.
pub const VALIDATE_WORK_PATH: &str = "/validate-work-open-cluster-management-io-v1-manifestwork";
/// Path of the webhook that checks ManifestWorkReplicaSets. OCM installs no configuration for it.
pub const VALIDATE_REPLICA_SET_PATH: &str = "/validate-work-open-cluster-management-io-v1alpha1-manifestworkreplicaset";
/// Path of the webhook that converts ClusterManagementAddOns and ManagedClusterAddOns between versions.
pub const CONVERT_PATH: &str = "/convert";

/// Versions of ConversionReview and AdmissionReview that webhooks understand, the best first.
pub const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// Port of webhooks, and of the placement debug server.
pub const PORT: i32 = 9443;
/// Port of webhooks for metrics.
pub const METRICS_PORT: i32 = 8080;
/// Port of webhooks for health probes.
pub const HEALTH_PORT: i32 = 8000;
/// Port of controllers and agents for metrics and health.
pub const SERVING_PORT: i32 = 8443;
/// Port of the gRPC server.
pub const GRPC_PORT: i32 = 8090;
/// Port of the gRPC server's load balancer.
pub const GRPC_LOAD_BALANCER_PORT: i32 = 443;

/// Service of the gRPC server.
pub fn grpc_service(cluster_manager: &str) -> String {
    format!("{cluster_manager}-grpc-server")
}

/// Service of the placement debug server.
pub fn placement_debug_service(cluster_manager: &str) -> String {
    format!("{cluster_manager}-placement")
}
