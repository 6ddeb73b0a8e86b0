//! [`ClusterManager`]: a hub, as its operator is to install it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube_core::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    ClusterManagerDeployOption, FeatureGate, GenerationStatus, NodePlacement, RegistrationHubConfiguration,
    RelatedResourceMeta, ResourceRequirement, ServerConfiguration,
};

/// A hub, as its operator is to install it. Cluster-scoped.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
pub struct ClusterManager {
    /// Standard object metadata.
    #[serde(default)]
    #[schemars(schema_with = "crate::schema::object_meta")]
    pub metadata: ObjectMeta,
    /// What to install.
    #[serde(default)]
    #[schemars(extend("x-ocm-default" = { "deployOption": { "mode": "Default" } }))]
    pub spec: ClusterManagerSpec,
    /// How the installation fares, written by the operator.
    #[serde(default)]
    pub status: Option<ClusterManagerStatus>,
}

kubernetes_kind!(
    ClusterManager, spec: ClusterManagerSpec, status: status,
    group: "operator.open-cluster-management.io", version: "v1", plural: "clustermanagers", scope: ClusterResourceScope
);

/// What to install of a hub.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterManagerSpec {
    /// Image of the registration controllers and webhooks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-ocm-default" = "quay.io/open-cluster-management/registration"))]
    pub registration_image_pull_spec: Option<String>,
    /// Image of the work controllers and webhooks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-ocm-default" = "quay.io/open-cluster-management/work"))]
    pub work_image_pull_spec: Option<String>,
    /// Image of the placement controllers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-ocm-default" = "quay.io/open-cluster-management/placement"))]
    pub placement_image_pull_spec: Option<String>,
    /// Image of the add-on controllers and webhooks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-ocm-default" = "quay.io/open-cluster-management/addon-manager"))]
    pub add_on_manager_image_pull_spec: Option<String>,
    /// Where the pods run.
    #[serde(default, skip_serializing_if = "crate::serde_util::is_default")]
    pub node_placement: NodePlacement,
    /// On which cluster the pods run, and how their webhooks are reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-ocm-default" = { "mode": "Default" }))]
    pub deploy_option: Option<ClusterManagerDeployOption>,
    /// Settings for registration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registration_configuration: Option<RegistrationHubConfiguration>,
    /// Settings for work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-ocm-default" = { "workDriver": "kube" }))]
    pub work_configuration: Option<WorkConfiguration>,
    /// Settings for add-ons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub add_on_manager_configuration: Option<AddOnManagerConfiguration>,
    /// Settings for placement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement_configuration: Option<PlacementConfiguration>,
    /// Settings for the gRPC server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_configuration: Option<ServerConfiguration>,
    /// What the containers may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_requirement: Option<ResourceRequirement>,
}

/// Settings for work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkConfiguration {
    /// Feature gates of work.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub feature_gates: Vec<FeatureGate>,
    /// What carries works to the agents: `kube` (default), `mqtt` or `grpc`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-ocm-default" = "kube"))]
    pub work_driver: Option<WorkDriver>,
}

string_enum! {
    /// What carries works to the agents.
    pub enum WorkDriver {
        /// The hub's API server.
        #[default]
        Kube = "kube",
        /// An MQTT broker.
        Mqtt = "mqtt",
        /// A gRPC server.
        Grpc = "grpc",
    }
}

/// Settings for add-ons.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddOnManagerConfiguration {
    /// Feature gates of the add-on manager.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub feature_gates: Vec<FeatureGate>,
}

/// Settings for placement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlacementConfiguration {
    /// Feature gates of placement.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub feature_gates: Vec<FeatureGate>,
}

/// How the installation of a hub fares.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterManagerStatus {
    /// Generation of the spec that the status speaks about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Conditions of the installation, one per type.
    #[serde(default, deserialize_with = "crate::serde_util::null_as_default")]
    #[schemars(schema_with = "crate::schema::condition_map")]
    pub conditions: Vec<Condition>,
    /// Generations of the Deployments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub generations: Vec<GenerationStatus>,
    /// The objects that the operator made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub related_resources: Vec<RelatedResourceMeta>,
}
