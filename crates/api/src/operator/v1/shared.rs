//! What [`ClusterManager`](super::ClusterManager) and [`Klusterlet`](super::Klusterlet) have in common.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ResourceRequirements, Toleration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

/// A feature gate, and whether the feature is on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FeatureGate {
    /// Name of the gate. A name that is not known is reported in a condition and otherwise ignored.
    pub feature: String,
    /// Whether the feature is on: `Enable` or `Disable` (default).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-ocm-default" = "Disable"))]
    pub mode: Option<FeatureGateMode>,
}

string_enum! {
    /// Whether a feature is on.
    pub enum FeatureGateMode {
        /// It is on.
        Enable = "Enable",
        /// It is off.
        #[default]
        Disable = "Disable",
    }
}

string_enum! {
    /// Where components run, and in how many parts.
    pub enum InstallMode {
        /// On the cluster they are for.
        #[default]
        Default = "Default",
        /// On another cluster, the hosting one.
        Hosted = "Hosted",
        /// Like `Default`, with one agent Deployment instead of two.
        Singleton = "Singleton",
        /// Like `Hosted`, with one agent Deployment instead of two.
        SingletonHosted = "SingletonHosted",
    }
}

string_enum! {
    /// How an agent registers and authenticates to the hub.
    pub enum AuthType {
        /// With a certificate that it asks for in a certificate signing request.
        #[default]
        Csr = "csr",
        /// With an AWS identity.
        AwsIrsa = "awsirsa",
        /// With a certificate, all through the hub's gRPC server.
        Grpc = "grpc",
    }
}

/// What containers of the components may use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceRequirement {
    /// How it is decided.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-ocm-default" = "Default"))]
    pub type_: Option<ResourceQosClass>,
    /// Requests and limits, with type `ResourceRequirement`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::resource_requirements")]
    pub resource_requirements: Option<ResourceRequirements>,
}

string_enum! {
    /// How it is decided what containers may use.
    pub enum ResourceQosClass {
        /// By the operator's own numbers.
        #[default]
        Default = "Default",
        /// No requests and no limits.
        BestEffort = "BestEffort",
        /// As given.
        ResourceRequirement = "ResourceRequirement",
    }
}

/// An object of the operator's, and its generation when the operator last wrote it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GenerationStatus {
    /// API group of the object; empty for the core group.
    pub group: String,
    /// API version of the object.
    pub version: String,
    /// Resource of the object, plural and lower case.
    pub resource: String,
    /// Namespace of the object; empty when its kind has none.
    #[serde(default)]
    pub namespace: String,
    /// Name of the object.
    pub name: String,
    /// Its generation.
    pub last_generation: i64,
}

/// An object of the operator's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RelatedResourceMeta {
    /// API group of the object; empty for the core group.
    pub group: String,
    /// API version of the object.
    pub version: String,
    /// Resource of the object, plural and lower case.
    pub resource: String,
    /// Namespace of the object; empty when its kind has none.
    #[serde(default)]
    pub namespace: String,
    /// Name of the object.
    pub name: String,
}
