//! [`ClusterManagementAddOn`]: an add-on as the hub knows it.

use kube_core::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AddOnMeta, ConfigReferent, DefaultConfigReference, InstallProgression, InstallStrategy};

/// An add-on as the hub knows it: what it can be configured with, and where it is installed. Cluster-scoped; its name
/// is the add-on's name.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[schemars(extend("required" = ["spec"]))]
pub struct ClusterManagementAddOn {
    /// Standard object metadata.
    #[serde(default)]
    #[schemars(schema_with = "crate::schema::object_meta")]
    pub metadata: ObjectMeta,
    /// What the add-on can be configured with, and where it is installed.
    #[serde(default)]
    pub spec: ClusterManagementAddOnSpec,
    /// How its installation goes, written by the hub.
    #[serde(default)]
    pub status: Option<ClusterManagementAddOnStatus>,
}

kubernetes_kind!(
    ClusterManagementAddOn, spec: ClusterManagementAddOnSpec, status: status,
    group: "addon.open-cluster-management.io", version: "v1alpha1", plural: "clustermanagementaddons",
    scope: ClusterResourceScope
);

/// What an add-on can be configured with, and where it is installed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterManagementAddOnSpec {
    /// What people see of the add-on.
    #[serde(default, skip_serializing_if = "crate::serde_util::is_default")]
    pub add_on_meta: AddOnMeta,
    /// Deprecated and without effect: use `supportedConfigs`. Version v1beta1 keeps it in an annotation.
    #[serde(default, skip_serializing_if = "crate::serde_util::is_default")]
    pub add_on_configuration: ConfigCoordinates,
    /// Kinds of configuration that the add-on understands, and their defaults.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["group", "resource"]))]
    pub supported_configs: Vec<ConfigMeta>,
    /// Where the add-on is installed; absent means type `Manual`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-ocm-default" = { "type": "Manual" }))]
    pub install_strategy: Option<InstallStrategy>,
}

/// A configuration by its CRD's name; deprecated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigCoordinates {
    /// Name of the CRD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crd_name: Option<String>,
    /// Name of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cr_name: Option<String>,
    /// Generation of the object that was last seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_observed_generation: Option<i64>,
}

/// A kind of configuration that an add-on understands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigMeta {
    /// API group; empty for the core group.
    #[serde(default)]
    #[schemars(extend("x-ocm-default" = ""))]
    pub group: String,
    /// Resource, plural and lower case.
    #[schemars(length(min = 1))]
    pub resource: String,
    /// The configuration for clusters that have no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_config: Option<ConfigReferent>,
}

/// How the installation of an add-on goes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterManagementAddOnStatus {
    /// The default configurations.
    #[serde(rename = "defaultconfigReferences", default, skip_serializing_if = "Vec::is_empty")]
    pub default_config_references: Vec<DefaultConfigReference>,
    /// How it goes for each placement.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub install_progressions: Vec<InstallProgression>,
}
