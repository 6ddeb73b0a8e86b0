//! [`ClusterManagementAddOn`]: an add-on as the hub knows it.

use kube_core::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AddOnConfig, AddOnMeta, DefaultConfigReference, InstallProgression, InstallStrategy};

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
    group: "addon.open-cluster-management.io", version: "v1beta1", plural: "clustermanagementaddons",
    scope: ClusterResourceScope
);

/// What an add-on can be configured with, and where it is installed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterManagementAddOnSpec {
    /// What people see of the add-on.
    #[serde(default, skip_serializing_if = "crate::serde_util::is_default")]
    pub add_on_meta: AddOnMeta,
    /// Kinds of configuration that the add-on understands, with the configuration for clusters that have no other.
    /// The name `__reserved_no_default__` means none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["group", "resource"]))]
    pub default_configs: Vec<AddOnConfig>,
    /// Where the add-on is installed; absent means type `Manual`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-ocm-default" = { "type": "Manual" }))]
    pub install_strategy: Option<InstallStrategy>,
}

/// How the installation of an add-on goes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterManagementAddOnStatus {
    /// The default configurations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub default_config_references: Vec<DefaultConfigReference>,
    /// How it goes for each placement.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub install_progressions: Vec<InstallProgression>,
}
