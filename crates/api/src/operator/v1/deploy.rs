//! On which cluster a hub's pods run, and how its webhooks are reached.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::InstallMode;

/// On which cluster a hub's pods run, and how their webhooks are reached.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["mode"]))]
pub struct ClusterManagerDeployOption {
    /// Where the pods run: on the hub's cluster (`Default`) or on another (`Hosted`).
    #[serde(default)]
    #[schemars(extend("x-ocm-default" = "Default", "enum" = ["Default", "Hosted"]))]
    pub mode: InstallMode,
    /// Settings for mode `Default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<DefaultClusterManagerConfiguration>,
    /// Settings for mode `Hosted`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosted: Option<HostedClusterManagerConfiguration>,
}

/// Webhooks of a hub on its own cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DefaultClusterManagerConfiguration {
    /// The registration webhooks.
    #[serde(default, skip_serializing_if = "crate::serde_util::is_default")]
    pub registration_webhook_configuration: DefaultWebhookConfiguration,
    /// The work webhooks.
    #[serde(default, skip_serializing_if = "crate::serde_util::is_default")]
    pub work_webhook_configuration: DefaultWebhookConfiguration,
    /// The add-on conversion webhook.
    #[serde(default, skip_serializing_if = "crate::serde_util::is_default")]
    pub addon_webhook_configuration: DefaultWebhookConfiguration,
}

/// A webhook of a hub on its own cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DefaultWebhookConfiguration {
    /// What it listens on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bind_configuration: Option<BindConfiguration>,
}

/// Webhooks of a hub on another cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostedClusterManagerConfiguration {
    /// The registration webhooks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registration_webhook_configuration: Option<HostedWebhookConfiguration>,
    /// The work webhooks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_webhook_configuration: Option<HostedWebhookConfiguration>,
}

/// A webhook of a hub on another cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostedWebhookConfiguration {
    /// Host name or IPv4 address at which the hub's API server reaches it.
    #[schemars(regex(pattern = crate::schema::HOST_NAME))]
    pub address: String,
    /// Port at which the hub's API server reaches it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 65535), extend("x-ocm-default" = 443))]
    pub port: Option<i32>,
    /// What it listens on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bind_configuration: Option<BindConfiguration>,
}

/// What a webhook listens on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BindConfiguration {
    /// Port for the API server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 65535), extend("x-ocm-default" = 9443))]
    pub port: Option<i32>,
    /// Port for health probes; 0 switches them off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 65535), extend("x-ocm-default" = 8000))]
    pub health_probe_port: Option<i32>,
    /// Port for metrics; 0 switches them off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 65535), extend("x-ocm-default" = 8080))]
    pub metrics_port: Option<i32>,
    /// Whether its pod is in the node's network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_network: Option<bool>,
}
