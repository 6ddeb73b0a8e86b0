//! The add-ons' configurations: [`AddOnDeploymentConfig`] and [`AddOnTemplate`].

use kube_core::ObjectMeta;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{AddOnDeploymentConfigSpec, AddOnTemplateSpec};

/// How to deploy the agents of add-ons that refer to it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[schemars(extend("required" = ["spec"]))]
pub struct AddOnDeploymentConfig {
    /// Standard object metadata.
    #[serde(default)]
    #[schemars(schema_with = "crate::schema::object_meta")]
    pub metadata: ObjectMeta,
    /// How to deploy the agents.
    #[serde(default)]
    pub spec: AddOnDeploymentConfigSpec,
}

kubernetes_kind!(
    AddOnDeploymentConfig, spec: AddOnDeploymentConfigSpec,
    group: "addon.open-cluster-management.io", version: "v1beta1", plural: "addondeploymentconfigs",
    scope: NamespaceResourceScope
);

/// An add-on without a manager of its own: what to deploy on each cluster. Cluster-scoped. Not to be changed: a new
/// version of an add-on is a new template.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[schemars(extend("required" = ["spec"]))]
pub struct AddOnTemplate {
    /// Standard object metadata.
    #[serde(default)]
    #[schemars(schema_with = "crate::schema::object_meta")]
    pub metadata: ObjectMeta,
    /// What to deploy.
    #[serde(default)]
    pub spec: AddOnTemplateSpec,
}

kubernetes_kind!(
    AddOnTemplate, spec: AddOnTemplateSpec,
    group: "addon.open-cluster-management.io", version: "v1beta1", plural: "addontemplates",
    scope: ClusterResourceScope
);
