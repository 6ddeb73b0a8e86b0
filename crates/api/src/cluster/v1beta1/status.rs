//! What a placement chose: its status, and [`PlacementDecision`].

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube_core::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was chosen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlacementStatus {
    /// How many clusters are chosen.
    #[serde(default)]
    pub number_of_selected_clusters: i32,
    /// The groups of chosen clusters, in order.
    #[serde(default, deserialize_with = "crate::serde_util::null_as_default")]
    pub decision_groups: Vec<DecisionGroupStatus>,
    /// Conditions of the placement, one per type.
    #[serde(default, deserialize_with = "crate::serde_util::null_as_default")]
    #[schemars(schema_with = "crate::schema::condition_map")]
    pub conditions: Vec<Condition>,
    /// When scores were last taken into account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::time")]
    pub last_score_update_time: Option<Time>,
}

/// A group of chosen clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DecisionGroupStatus {
    /// Index of the group, from 0.
    #[serde(default)]
    pub decision_group_index: i32,
    /// Name of the group; empty for clusters that no named group selects.
    #[serde(default)]
    pub decision_group_name: String,
    /// Names of the PlacementDecisions that list the group's clusters.
    #[serde(default, deserialize_with = "crate::serde_util::null_as_default")]
    pub decisions: Vec<String>,
    /// How many clusters are in the group.
    #[serde(rename = "clusterCount", default)]
    #[schemars(extend("x-ocm-default" = 0))]
    pub clusters_count: i32,
}

/// Clusters that a Placement of the same namespace chose, 100 at most; there are as many PlacementDecisions as it
/// takes. Labels name the placement, and the group by name and index.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
pub struct PlacementDecision {
    /// Standard object metadata.
    #[serde(default)]
    #[schemars(schema_with = "crate::schema::object_meta")]
    pub metadata: ObjectMeta,
    /// The clusters, written by the hub.
    #[serde(default)]
    pub status: Option<PlacementDecisionStatus>,
}

kubernetes_kind!(
    PlacementDecision, status: status,
    group: "cluster.open-cluster-management.io", version: "v1beta1", plural: "placementdecisions",
    scope: NamespaceResourceScope
);

/// Chosen clusters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlacementDecisionStatus {
    /// The clusters, by name.
    #[serde(deserialize_with = "crate::serde_util::null_as_default")]
    pub decisions: Vec<ClusterDecision>,
}

/// A chosen cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterDecision {
    /// Name of the cluster.
    pub cluster_name: String,
    /// Why it was chosen; may be empty.
    pub reason: String,
    /// Its score. OCM does not write it yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<i64>,
}
