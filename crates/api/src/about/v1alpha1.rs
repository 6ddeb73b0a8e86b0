//! `about.k8s.io/v1alpha1`: [`ClusterProperty`], of Kubernetes' multicluster interest group.

use kube_core::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A fact that a cluster states about itself. Lives on the managed cluster; behind a feature gate, the agent reports it
/// to the hub like a ClusterClaim. Cluster-scoped.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
pub struct ClusterProperty {
    /// Standard object metadata; the name is the property's name.
    #[serde(default)]
    #[schemars(schema_with = "crate::schema::object_meta")]
    pub metadata: ObjectMeta,
    /// The fact.
    #[serde(default)]
    pub spec: ClusterPropertySpec,
    /// Reserved; nothing is in it.
    #[serde(default)]
    pub status: Option<ClusterPropertyStatus>,
}

kubernetes_kind!(
    ClusterProperty, spec: ClusterPropertySpec, status: status,
    group: "about.k8s.io", version: "v1alpha1", plural: "clusterproperties", scope: ClusterResourceScope
);

/// The content of a property.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterPropertySpec {
    /// The value; its meaning is the property's own.
    #[schemars(length(min = 1))]
    pub value: String,
}

/// Reserved; nothing is in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterPropertyStatus {}
