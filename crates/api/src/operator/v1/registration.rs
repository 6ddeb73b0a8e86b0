//! Settings for registration on an agent.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AuthType, FeatureGate};
use crate::addon::v1beta1::KubeClientDriver;

/// Settings for registration on an agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegistrationConfiguration {
    /// For how many seconds to ask certificates for; the signer decides when absent or 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_cert_expiration_seconds: Option<i32>,
    /// Feature gates of the registration agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub feature_gates: Vec<FeatureGate>,
    /// Annotations for the ManagedCluster. Only keys that begin with `agent.open-cluster-management.io` count.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cluster_annotations: BTreeMap<String, String>,
    /// Labels for the ManagedCluster. OCM does not act on it yet.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cluster_labels: BTreeMap<String, String>,
    /// Requests per second to an API server.
    #[serde(rename = "kubeAPIQPS", default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-ocm-default" = 50))]
    pub kube_apiqps: Option<i32>,
    /// Requests at once to an API server.
    #[serde(rename = "kubeAPIBurst", default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-ocm-default" = 100))]
    pub kube_api_burst: Option<i32>,
    /// Credentials for several hubs, with feature gate `MultipleHubs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bootstrap_kube_configs: Option<BootstrapKubeConfigs>,
    /// How the agent registers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registration_driver: Option<RegistrationDriver>,
    /// How agents of add-ons authenticate to the hub's API server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub add_on_kube_client_registration_driver: Option<AddOnRegistrationDriver>,
    /// Which claims are reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_claim_configuration: Option<ClusterClaimConfiguration>,
}

/// Which claims are reported.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["maxCustomClusterClaims"]))]
pub struct ClusterClaimConfiguration {
    /// Most claims to report, reserved ones not counted.
    #[serde(default)]
    #[schemars(extend("x-ocm-default" = 20))]
    pub max_custom_cluster_claims: i32,
    /// Claims whose name ends with one of these are reserved: reported first, and not counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10), inner(length(min = 1, max = 64)))]
    pub reserved_cluster_claim_suffixes: Vec<String>,
}

/// How an agent registers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["authType"]))]
pub struct RegistrationDriver {
    /// The way.
    #[serde(default)]
    #[schemars(extend("x-ocm-default" = "csr"))]
    pub auth_type: AuthType,
    /// Settings for `awsirsa`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aws_irsa: Option<AwsIrsa>,
}

/// Two EKS clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AwsIrsa {
    /// ARN of the hub's.
    #[schemars(regex(pattern = crate::schema::EKS_CLUSTER_ARN), length(min = 1))]
    pub hub_cluster_arn: String,
    /// ARN of the managed cluster's.
    #[schemars(regex(pattern = crate::schema::EKS_CLUSTER_ARN), length(min = 1))]
    pub managed_cluster_arn: String,
}

/// How agents of add-ons authenticate to the hub's API server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddOnRegistrationDriver {
    /// With a certificate (`csr`) or with a token (`token`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth_type: Option<KubeClientDriver>,
    /// Settings for `token`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<TokenConfig>,
}

/// Settings for tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenConfig {
    /// For how many seconds to ask tokens for; a year when absent or 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expiration_seconds: Option<i64>,
}

/// Credentials for several hubs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["type"]))]
pub struct BootstrapKubeConfigs {
    /// Where they are.
    #[serde(rename = "type", default)]
    #[schemars(extend("x-ocm-default" = "None"))]
    pub type_: BootstrapKubeConfigsType,
    /// The secrets, with type `LocalSecrets`.
    #[serde(rename = "localSecretsConfig", default, skip_serializing_if = "Option::is_none")]
    pub local_secrets: Option<LocalSecretsConfig>,
}

string_enum! {
    /// Where credentials for several hubs are.
    pub enum BootstrapKubeConfigsType {
        /// There is one hub.
        #[default]
        None = "None",
        /// In secrets of the agent's namespace.
        LocalSecrets = "LocalSecrets",
    }
}

/// Secrets with credentials for several hubs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LocalSecretsConfig {
    /// The secrets, at least two; the agent tries them in this order.
    #[serde(deserialize_with = "crate::serde_util::null_as_default")]
    pub kube_config_secrets: Vec<KubeConfigSecret>,
    /// For how many seconds a hub may be out of reach until the agent turns to another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 180), extend("x-ocm-default" = 600))]
    pub hub_connection_timeout_seconds: Option<i32>,
}

/// A secret with a kubeconfig for a hub.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubeConfigSecret {
    /// Its name.
    pub name: String,
}
