//! `work.open-cluster-management.io/v1alpha1`: [`ManifestWorkReplicaSet`].

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube_core::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cluster::v1alpha1::RolloutStrategy;
use crate::work::v1::ManifestWorkSpec;

/// The same ManifestWork for many clusters. The hub makes one in the namespace of each cluster that the placements
/// choose, and keeps them up to date.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
pub struct ManifestWorkReplicaSet {
    /// Standard object metadata.
    #[serde(default)]
    #[schemars(schema_with = "crate::schema::object_meta")]
    pub metadata: ObjectMeta,
    /// What the works hold, and which clusters get one.
    #[serde(default)]
    pub spec: ManifestWorkReplicaSetSpec,
    /// How the works fare, written by the hub.
    #[serde(default)]
    pub status: Option<ManifestWorkReplicaSetStatus>,
}

kubernetes_kind!(
    ManifestWorkReplicaSet, spec: ManifestWorkReplicaSetSpec, status: status,
    group: "work.open-cluster-management.io", version: "v1alpha1", plural: "manifestworkreplicasets",
    scope: NamespaceResourceScope
);

/// What the works hold, and which clusters get one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["cascadeDeletionPolicy", "placementRefs"]))]
pub struct ManifestWorkReplicaSetSpec {
    /// Spec of each work.
    #[serde(default)]
    pub manifest_work_template: ManifestWorkSpec,
    /// Placements of the same namespace; the clusters they choose get a work.
    #[schemars(length(min = 1))]
    pub placement_refs: Vec<LocalPlacementReference>,
    /// Whether the set waits for its works when it is deleted.
    #[serde(default)]
    #[schemars(extend("x-ocm-default" = "Background"))]
    pub cascade_deletion_policy: CascadeDeletionPolicy,
}

string_enum! {
    /// How a replica set goes.
    pub enum CascadeDeletionPolicy {
        /// It is gone at once, its works follow.
        #[default]
        Background = "Background",
        /// It is gone when its works are.
        Foreground = "Foreground",
    }
}

/// A placement, and how changes reach its clusters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LocalPlacementReference {
    /// Name of the placement.
    #[schemars(length(min = 1))]
    pub name: String,
    /// How changes reach the placement's clusters.
    #[serde(default)]
    #[schemars(extend("x-ocm-default" = { "all": { "progressDeadline": "None" }, "type": "All" }))]
    pub rollout_strategy: RolloutStrategy,
}

/// How the works fare.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManifestWorkReplicaSetStatus {
    /// Conditions of the set, one per type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::condition_map")]
    pub conditions: Vec<Condition>,
    /// The works of all placements, counted.
    #[serde(default)]
    pub summary: ManifestWorkReplicaSetSummary,
    /// The works of each placement, counted.
    #[serde(rename = "placementSummary", default, deserialize_with = "crate::serde_util::null_as_default")]
    pub placements_summary: Vec<PlacementSummary>,
}

/// The works of a placement, counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlacementSummary {
    /// Name of the placement.
    #[serde(default)]
    pub name: String,
    /// How many decision groups have a work on every cluster, as text such as `2 (20 / 100 clusters applied)`.
    #[serde(default)]
    pub available_decision_groups: String,
    /// The works, counted.
    #[serde(default)]
    pub summary: ManifestWorkReplicaSetSummary,
}

/// Works, counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManifestWorkReplicaSetSummary {
    /// Works that exist.
    #[serde(default)]
    #[schemars(schema_with = "crate::schema::integer")]
    pub total: i64,
    /// Works with condition `Progressing` true.
    #[serde(default)]
    #[schemars(schema_with = "crate::schema::integer")]
    pub progressing: i64,
    /// Works with condition `Available` true.
    #[serde(default)]
    #[schemars(schema_with = "crate::schema::integer")]
    pub available: i64,
    /// Works with condition `Degraded` true.
    #[serde(default)]
    #[schemars(schema_with = "crate::schema::integer")]
    pub degraded: i64,
    /// Works with condition `Applied` true.
    #[serde(default)]
    #[schemars(schema_with = "crate::schema::integer")]
    pub applied: i64,
    /// Works that the placements ask for. OCM does not count them yet.
    #[serde(default)]
    #[schemars(schema_with = "crate::schema::integer")]
    pub desired_total: i64,
    /// Works with the spec of the template as it is now. OCM does not count them yet.
    #[serde(default)]
    #[schemars(schema_with = "crate::schema::integer")]
    pub updated: i64,
}
