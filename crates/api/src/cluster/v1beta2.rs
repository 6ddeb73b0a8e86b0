//! `cluster.open-cluster-management.io/v1beta2`: [`ManagedClusterSet`] and [`ManagedClusterSetBinding`].

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use kube_core::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A group of managed clusters. Cluster-scoped. A cluster joins an exclusive set by the label
/// `cluster.open-cluster-management.io/clusterset`; changing that label takes permission to `create` the virtual resource
/// `managedclustersets/join` of both sets.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
pub struct ManagedClusterSet {
    /// Standard object metadata.
    #[serde(default)]
    #[schemars(schema_with = "crate::schema::object_meta")]
    pub metadata: ObjectMeta,
    /// Which clusters belong to the set, and what the set gives them.
    #[serde(default)]
    #[schemars(extend("x-ocm-default" = { "clusterSelector": { "selectorType": "ExclusiveClusterSetLabel" } }))]
    pub spec: ManagedClusterSetSpec,
    /// What the hub has seen of the set.
    #[serde(default)]
    pub status: Option<ManagedClusterSetStatus>,
}

kubernetes_kind!(
    ManagedClusterSet, spec: ManagedClusterSetSpec, status: status,
    group: "cluster.open-cluster-management.io", version: "v1beta2", plural: "managedclustersets",
    scope: ClusterResourceScope
);

/// Which clusters belong to a set, and what the set gives them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterSetSpec {
    /// Which clusters belong to the set.
    #[serde(default)]
    #[schemars(extend("x-ocm-default" = { "selectorType": "ExclusiveClusterSetLabel" }))]
    pub cluster_selector: ManagedClusterSelector,
    /// Namespaces that every cluster of the set gets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub managed_namespaces: Vec<ManagedNamespaceConfig>,
}

/// Which clusters belong to a set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["selectorType"]))]
pub struct ManagedClusterSelector {
    /// How clusters are chosen.
    #[serde(default)]
    #[schemars(extend("x-ocm-default" = "ExclusiveClusterSetLabel"))]
    pub selector_type: SelectorType,
    /// The clusters' labels, with type `LabelSelector`. Empty selects every cluster, absent none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::label_selector")]
    pub label_selector: Option<LabelSelector>,
}

string_enum! {
    /// How the clusters of a set are chosen.
    pub enum SelectorType {
        /// By the label `cluster.open-cluster-management.io/clusterset`: a cluster is in one such set at most.
        #[default]
        ExclusiveClusterSetLabel = "ExclusiveClusterSetLabel",
        /// By any labels.
        LabelSelector = "LabelSelector",
    }
}

/// A namespace that every cluster of a set gets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManagedNamespaceConfig {
    /// The namespace.
    #[schemars(schema_with = "crate::schema::namespace_name")]
    pub name: String,
}

/// What the hub has seen of a set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterSetStatus {
    /// The set's conditions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::condition_list")]
    pub conditions: Vec<Condition>,
}

/// Makes a cluster set available to the placements of a namespace. Creating one takes permission to `create` the virtual
/// resource `managedclustersets/bind` of the set.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
pub struct ManagedClusterSetBinding {
    /// Standard object metadata; the name is the set's name.
    #[serde(default)]
    #[schemars(schema_with = "crate::schema::object_meta")]
    pub metadata: ObjectMeta,
    /// Which set.
    #[serde(default)]
    pub spec: ManagedClusterSetBindingSpec,
    /// Whether the set exists, written by the hub.
    #[serde(default)]
    pub status: Option<ManagedClusterSetBindingStatus>,
}

kubernetes_kind!(
    ManagedClusterSetBinding, spec: ManagedClusterSetBindingSpec, status: status,
    group: "cluster.open-cluster-management.io", version: "v1beta2", plural: "managedclustersetbindings",
    scope: NamespaceResourceScope
);

/// Which set a binding makes available.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterSetBindingSpec {
    /// Name of the set; must be the name of the binding, and cannot be changed.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub cluster_set: String,
}

/// Whether the set of a binding exists.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterSetBindingStatus {
    /// The binding's conditions. Written even when empty.
    #[serde(default, deserialize_with = "crate::serde_util::null_as_default")]
    #[schemars(schema_with = "crate::schema::condition_list")]
    pub conditions: Vec<Condition>,
}
