//! Where an add-on is installed, and how that goes.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AddOnConfig, InstallConfigReference};
use crate::cluster::v1alpha1::RolloutStrategy;

/// What people see of an add-on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddOnMeta {
    /// Its name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// Where an add-on is installed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstallStrategy {
    /// Who installs it.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-ocm-default" = "Manual"))]
    pub type_: Option<InstallStrategyType>,
    /// With type `Placements`: it is installed on the clusters that these placements choose.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["namespace", "name"]))]
    pub placements: Vec<PlacementStrategy>,
}

string_enum! {
    /// Who installs an add-on.
    pub enum InstallStrategyType {
        /// Users create a ManagedClusterAddOn in a cluster's namespace.
        #[default]
        Manual = "Manual",
        /// The hub, on the clusters that placements choose.
        Placements = "Placements",
    }
}

/// A placement whose clusters get an add-on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlacementStrategy {
    /// Namespace of the placement.
    #[schemars(length(min = 1))]
    pub namespace: String,
    /// Name of the placement.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Configurations for these clusters, instead of the defaults of the same kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub configs: Vec<AddOnConfig>,
    /// How a change of a configuration reaches the clusters.
    #[serde(default)]
    #[schemars(extend("x-ocm-default" = { "type": "All" }))]
    pub rollout_strategy: RolloutStrategy,
}

/// How the add-on fares on the clusters of a placement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstallProgression {
    /// Namespace of the placement.
    #[schemars(length(min = 1))]
    pub namespace: String,
    /// Name of the placement.
    #[schemars(length(min = 1))]
    pub name: String,
    /// The configurations for these clusters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub config_references: Vec<InstallConfigReference>,
    /// Conditions, one per type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::condition_map")]
    pub conditions: Vec<Condition>,
}
