//! [`Klusterlet`]: an agent, as its operator is to install it.

use k8s_openapi::ByteString;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube_core::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    FeatureGate, GenerationStatus, InstallMode, NodePlacement, RegistrationConfiguration, RelatedResourceMeta,
    ResourceRequirement,
};

/// An agent, as its operator is to install it on a managed cluster. Cluster-scoped.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
pub struct Klusterlet {
    /// Standard object metadata.
    #[serde(default)]
    #[schemars(schema_with = "crate::schema::object_meta")]
    pub metadata: ObjectMeta,
    /// What to install.
    #[serde(default)]
    pub spec: KlusterletSpec,
    /// How the installation fares, written by the operator.
    #[serde(default)]
    pub status: Option<KlusterletStatus>,
}

kubernetes_kind!(
    Klusterlet, spec: KlusterletSpec, status: status,
    group: "operator.open-cluster-management.io", version: "v1", plural: "klusterlets", scope: ClusterResourceScope
);

/// What to install of an agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KlusterletSpec {
    /// Namespace of the agent on the managed cluster; `open-cluster-management-agent` when empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^open-cluster-management-[-a-z0-9]*[a-z0-9]$"), length(max = 57))]
    pub namespace: Option<String>,
    /// Image of the registration agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registration_image_pull_spec: Option<String>,
    /// Image of the work agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_image_pull_spec: Option<String>,
    /// Image of the agent in one part, with mode `Singleton` or `SingletonHosted`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_pull_spec: Option<String>,
    /// Name of the cluster on the hub; the agent makes one up when empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::namespace_name")]
    pub cluster_name: Option<String>,
    /// Addresses of the cluster's API server for the hub.
    #[serde(rename = "externalServerURLs", default, skip_serializing_if = "Vec::is_empty")]
    pub external_server_ur_ls: Vec<ServerUrl>,
    /// Where the pods run.
    #[serde(default, skip_serializing_if = "crate::serde_util::is_default")]
    pub node_placement: NodePlacement,
    /// On which cluster the pods run, and in how many parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deploy_option: Option<KlusterletDeployOption>,
    /// Settings for registration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registration_configuration: Option<RegistrationConfiguration>,
    /// Settings for work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_configuration: Option<WorkAgentConfiguration>,
    /// An address for the name of the hub's API server, where DNS does not know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hub_api_server_host_alias: Option<HubApiServerHostAlias>,
    /// What the containers may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_requirement: Option<ResourceRequirement>,
    /// Priority class of the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority_class_name: Option<String>,
}

/// An address of an API server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerUrl {
    /// The address.
    pub url: String,
    /// Certificates to trust, PEM; the system's when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::bytes")]
    pub ca_bundle: Option<ByteString>,
}

/// An address for a name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HubApiServerHostAlias {
    /// The IPv4 address.
    #[schemars(regex(
        pattern = r"^(?:(?:25[0-5]|2[0-4][0-9]|[01]?[0-9][0-9]?)\.){3}(?:25[0-5]|2[0-4][0-9]|[01]?[0-9][0-9]?)$"
    ))]
    pub ip: String,
    /// The name.
    #[schemars(regex(pattern = crate::schema::HOST_NAME))]
    pub hostname: String,
}

/// On which cluster an agent's pods run, and in how many parts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KlusterletDeployOption {
    /// Where the pods run: `Default`, `Hosted`, `Singleton` or `SingletonHosted`.
    #[serde(default)]
    #[schemars(schema_with = "crate::schema::text")]
    pub mode: InstallMode,
}

/// Settings for work on an agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkAgentConfiguration {
    /// Feature gates of the work agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub feature_gates: Vec<FeatureGate>,
    /// Requests per second to the managed cluster.
    #[serde(rename = "kubeAPIQPS", default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-ocm-default" = 50))]
    pub kube_apiqps: Option<i32>,
    /// Requests at once to the managed cluster.
    #[serde(rename = "kubeAPIBurst", default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-ocm-default" = 100))]
    pub kube_api_burst: Option<i32>,
    /// Requests per second to the hub.
    #[serde(rename = "hubKubeAPIQPS", default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-ocm-default" = 50))]
    pub hub_kube_apiqps: Option<i32>,
    /// Requests at once to the hub.
    #[serde(rename = "hubKubeAPIBurst", default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-ocm-default" = 100))]
    pub hub_kube_api_burst: Option<i32>,
    /// How long applied objects stay after their work is gone from the hub, such as `60m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = crate::schema::DURATION))]
    pub applied_manifest_work_eviction_grace_period: Option<String>,
    /// How often the agent reads the status of applied objects, such as `10s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = crate::schema::DURATION))]
    pub status_sync_interval: Option<String>,
}

/// How the installation of an agent fares.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KlusterletStatus {
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
