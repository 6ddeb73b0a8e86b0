//! Spec of an add-on's deployment configuration.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ResourceRequirements, Toleration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How to deploy an add-on's agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddOnDeploymentConfigSpec {
    /// Variables for add-ons that use them; one per name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub customized_variables: Vec<CustomizedVariable>,
    /// Where the agent's pods run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_placement: Option<NodePlacement>,
    /// Replacements for image registries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub registries: Vec<ImageMirror>,
    /// Proxy that the agent goes through.
    #[serde(default, skip_serializing_if = "crate::serde_util::is_default")]
    pub proxy_config: ProxyConfig,
    /// Namespace of the agent on the managed cluster. Empty means what its manifests say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$"), length(max = 63), extend("x-ocm-default" = "open-cluster-management-agent-addon"))]
    pub agent_install_namespace: Option<String>,
    /// What containers of the agent may use; where several entries fit, the last one counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["containerID"]))]
    pub resource_requirements: Vec<ContainerResourceRequirements>,
}

/// A variable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CustomizedVariable {
    /// Its name.
    #[schemars(regex(pattern = "^[a-zA-Z_][_a-zA-Z0-9]*$"), length(max = 255))]
    pub name: String,
    /// Its value.
    #[serde(default)]
    #[schemars(length(max = 1024))]
    pub value: String,
}

/// Where pods run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodePlacement {
    /// Labels that their nodes must have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// Taints of nodes that do not keep them away.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::tolerations")]
    pub tolerations: Vec<Toleration>,
}

/// A registry and its mirror.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageMirror {
    /// Registry or prefix of image names to use.
    pub mirror: String,
    /// Registry or prefix of image names that is replaced; empty means every registry.
    #[serde(default)]
    pub source: String,
}

/// A proxy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProxyConfig {
    /// URL of the proxy for HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_proxy: Option<String>,
    /// URL of the proxy for HTTPS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub https_proxy: Option<String>,
    /// Certificates by which the proxy is trusted, PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::bytes")]
    pub ca_bundle: Option<ByteString>,
    /// Hosts, domains and networks to reach directly, separated by commas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_proxy: Option<String>,
}

/// What containers may use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerResourceRequirements {
    /// Which containers: `<resource>:<name>:<container>`, each of them possibly `*`, such as `deployments:agent:*`.
    #[serde(rename = "containerID")]
    #[schemars(regex(pattern = r"^(deployments|daemonsets|statefulsets|replicasets|jobs|cronjobs|pods|\*):.+:.+$"))]
    pub container_id: String,
    /// Their requests and limits.
    #[schemars(schema_with = "crate::schema::resource_requirements")]
    pub resources: ResourceRequirements,
}
