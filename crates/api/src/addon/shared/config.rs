//! How add-ons refer to their configurations.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A configuration of an add-on: an object on the hub.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddOnConfig {
    /// API group of the object; empty for the core group.
    #[serde(default)]
    #[schemars(extend("x-ocm-default" = ""))]
    pub group: String,
    /// Resource, plural and lower case, such as `addondeploymentconfigs`.
    #[schemars(length(min = 1))]
    pub resource: String,
    /// Namespace of the object; absent when its kind has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name of the object.
    #[schemars(length(min = 1))]
    pub name: String,
}

/// A kind of configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigGroupResource {
    /// API group; empty for the core group.
    #[serde(default)]
    #[schemars(extend("x-ocm-default" = ""))]
    pub group: String,
    /// Resource, plural and lower case.
    #[schemars(length(min = 1))]
    pub resource: String,
}

/// A configuration whose kind is known from elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigReferent {
    /// Namespace of the object; absent when its kind has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name of the object.
    #[schemars(length(min = 1))]
    pub name: String,
}

/// A configuration as it was at some time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigSpecHash {
    /// Namespace of the object; absent when its kind has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name of the object.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Hex SHA-256 of the object's spec; a change of it is what a rollout brings to the clusters.
    #[serde(default)]
    pub spec_hash: String,
}

/// A default configuration of an add-on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DefaultConfigReference {
    /// API group of the configuration; empty for the core group.
    #[serde(default)]
    #[schemars(extend("x-ocm-default" = ""))]
    pub group: String,
    /// Resource of the configuration, plural and lower case.
    #[schemars(length(min = 1))]
    pub resource: String,
    /// The configuration as it is now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired_config: Option<ConfigSpecHash>,
}

/// A configuration that is being rolled out to the clusters of a placement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstallConfigReference {
    /// API group of the configuration; empty for the core group.
    #[serde(default)]
    #[schemars(extend("x-ocm-default" = ""))]
    pub group: String,
    /// Resource of the configuration, plural and lower case.
    #[schemars(length(min = 1))]
    pub resource: String,
    /// The configuration as the clusters are to get it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired_config: Option<ConfigSpecHash>,
    /// The configuration that every cluster last had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_known_good_config: Option<ConfigSpecHash>,
    /// The configuration that was last brought to every cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_applied_config: Option<ConfigSpecHash>,
}
