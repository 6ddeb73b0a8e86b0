//! [`AddOnPlacementScore`]: scores that an add-on gives a cluster.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube_core::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Scores that an add-on gives one cluster, for placements to prefer clusters by. Lives in the cluster's namespace on
/// the hub; placements refer to it by its name.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
pub struct AddOnPlacementScore {
    /// Standard object metadata.
    #[serde(default)]
    #[schemars(schema_with = "crate::schema::object_meta")]
    pub metadata: ObjectMeta,
    /// The scores, written by the add-on.
    #[serde(default)]
    pub status: Option<AddOnPlacementScoreStatus>,
}

kubernetes_kind!(
    AddOnPlacementScore, status: status,
    group: "cluster.open-cluster-management.io", version: "v1alpha1", plural: "addonplacementscores",
    scope: NamespaceResourceScope
);

/// Scores that an add-on gives one cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddOnPlacementScoreStatus {
    /// Conditions of the scores, one per type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::condition_map")]
    pub conditions: Vec<Condition>,
    /// The scores, one per name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub scores: Vec<AddOnPlacementScoreItem>,
    /// Until when the scores count; for ever when absent. A placement takes an outdated score for 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::time")]
    pub valid_until: Option<Time>,
}

/// One score.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddOnPlacementScoreItem {
    /// Name of the score, by which placements choose it.
    pub name: String,
    /// The score; a higher one is better.
    #[schemars(range(min = -100, max = 100))]
    pub value: i32,
}
