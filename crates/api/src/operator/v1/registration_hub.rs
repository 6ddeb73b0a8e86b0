//! Settings for registration on a hub.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AuthType, FeatureGate};

/// Settings for registration on a hub.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegistrationHubConfiguration {
    /// Users whose clusters are accepted without an admin, with feature gate `ManagedClusterAutoApproval`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub auto_approve_users: Vec<String>,
    /// Feature gates of registration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub feature_gates: Vec<FeatureGate>,
    /// Ways for agents to register; `csr` alone when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["authType"]))]
    pub registration_drivers: Vec<RegistrationDriverHub>,
    /// Settings for importing clusters, with feature gate `ClusterImporter`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub importer_configuration: Option<ImporterConfiguration>,
}

/// A way for agents to register.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["authType"]))]
pub struct RegistrationDriverHub {
    /// Which way.
    #[serde(default)]
    #[schemars(extend("x-ocm-default" = "csr"))]
    pub auth_type: AuthType,
    /// Settings for `csr`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub csr: Option<CsrConfig>,
    /// Settings for `awsirsa`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub awsirsa: Option<AwsIrsaConfig>,
    /// Settings for `grpc`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grpc: Option<GrpcRegistrationConfig>,
}

/// Settings for registration by certificate signing requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CsrConfig {
    /// Users whose requests are approved without an admin.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub auto_approved_identities: Vec<String>,
}

/// Settings for registration by AWS identities.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AwsIrsaConfig {
    /// ARN of the hub's EKS cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = crate::schema::EKS_CLUSTER_ARN))]
    pub hub_cluster_arn: Option<String>,
    /// Patterns of ARNs of EKS clusters that are accepted without an admin.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub auto_approved_identities: Vec<String>,
    /// Tags for what is made in AWS, each `<key>=<value>`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}

/// Settings for registration through the gRPC server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GrpcRegistrationConfig {
    /// Users whose requests are approved without an admin.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub auto_approved_identities: Vec<String>,
}

/// Settings for importing clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImporterConfiguration {
    /// What makes the agent's manifests: `render-auto`, `render-from-config-secret`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub renderers: Vec<String>,
}
