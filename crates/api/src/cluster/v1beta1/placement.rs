//! [`Placement`]: which clusters to choose.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube_core::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{PlacementStatus, PrioritizerPolicy, SpreadPolicy};
use crate::cluster::v1::TaintEffect;

/// A choice of clusters out of the cluster sets that are bound to its namespace. The hub writes the clusters it chooses
/// into PlacementDecisions of the same namespace, and keeps them up to date.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[schemars(extend("required" = ["spec"]))]
pub struct Placement {
    /// Standard object metadata.
    #[serde(default)]
    #[schemars(schema_with = "crate::schema::object_meta")]
    pub metadata: ObjectMeta,
    /// Which clusters to choose.
    #[serde(default)]
    pub spec: PlacementSpec,
    /// What was chosen, written by the hub.
    #[serde(default)]
    pub status: Option<PlacementStatus>,
}

kubernetes_kind!(
    Placement, spec: PlacementSpec, status: status,
    group: "cluster.open-cluster-management.io", version: "v1beta1", plural: "placements",
    scope: NamespaceResourceScope
);

/// Which clusters to choose.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlacementSpec {
    /// Choose only from these cluster sets. Sets that are not bound to the namespace do not count; empty means every
    /// set that is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cluster_sets: Vec<String>,
    /// How many clusters to choose; absent means all that fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number_of_clusters: Option<i32>,
    /// What a cluster must be like: it fits when it fits one of these, or when there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub predicates: Vec<ClusterPredicate>,
    /// Which clusters to prefer when more fit than are wanted.
    #[serde(default, skip_serializing_if = "crate::serde_util::is_default")]
    pub prioritizer_policy: PrioritizerPolicy,
    /// How to spread the choice over regions and the like. OCM does not act on it yet.
    #[serde(default, skip_serializing_if = "crate::serde_util::is_default")]
    pub spread_policy: SpreadPolicy,
    /// Taints that do not keep a cluster from being chosen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,
    /// How to split the chosen clusters into groups.
    #[serde(default, skip_serializing_if = "crate::serde_util::is_default")]
    pub decision_strategy: DecisionStrategy,
    /// Order of the decisions. OCM does not act on it yet and always orders by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-ocm-default" = "ClusterName"))]
    pub sort_by: Option<PlacementSortBy>,
    /// How often at most a change of scores may change the choice, such as `1m`. OCM does not act on it yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[0-9]+[hms]$"), extend("x-ocm-default" = "1m"))]
    pub score_rate_limit: Option<String>,
}

string_enum! {
    /// Orders of decisions.
    pub enum PlacementSortBy {
        /// By the clusters' names.
        #[default]
        ClusterName = "ClusterName",
        /// By the clusters' scores, the best first.
        Score = "Score",
    }
}

/// What a cluster must be like.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterPredicate {
    /// What a cluster must be like in labels, claims and expressions, all of them together.
    #[serde(default, skip_serializing_if = "crate::serde_util::is_default")]
    pub required_cluster_selector: ClusterSelector,
}

/// Selects clusters that meet everything it asks for. An empty one selects every cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSelector {
    /// What the cluster's labels must be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::label_selector")]
    pub label_selector: Option<LabelSelector>,
    /// What the cluster's claims must be.
    #[serde(default, skip_serializing_if = "crate::serde_util::is_default")]
    pub claim_selector: ClusterClaimSelector,
    /// What must be true of the cluster.
    #[serde(default, skip_serializing_if = "crate::serde_util::is_default")]
    pub cel_selector: ClusterCelSelector,
}

/// Selects clusters by their claims.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterClaimSelector {
    /// Requirements on values of claims, which a cluster must all meet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::selector_requirements")]
    pub match_expressions: Vec<LabelSelectorRequirement>,
}

/// Selects clusters by CEL expressions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterCelSelector {
    /// CEL expressions over `managedCluster`, which must all be true of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cel_expressions: Vec<String>,
}

/// Tolerates taints of clusters: all that it matches in key, value and effect.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Toleration {
    /// Key of the taint; absent means every key, which needs operator `Exists`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::taint_key")]
    pub key: Option<String>,
    /// Whether the value counts: `Equal` (default) or `Exists`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::text", extend("x-ocm-default" = "Equal"))]
    pub operator: Option<TolerationOperator>,
    /// Value of the taint, with operator `Equal`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub value: Option<String>,
    /// Effect of the taint; absent means every effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<TaintEffect>,
    /// For how many seconds after it was added the taint is tolerated; absent means for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toleration_seconds: Option<i64>,
}

string_enum! {
    /// How a toleration compares.
    pub enum TolerationOperator {
        /// A taint with the key is enough.
        Exists = "Exists",
        /// The taint's value must be the same too.
        #[default]
        Equal = "Equal",
    }
}

/// How to split the chosen clusters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DecisionStrategy {
    /// How to split the chosen clusters into groups, by which rollouts proceed.
    #[serde(default, skip_serializing_if = "crate::serde_util::is_default")]
    pub group_strategy: GroupStrategy,
}

/// How to split the chosen clusters into groups.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GroupStrategy {
    /// Groups by selector. A cluster goes into the first that selects it; those that none selects form groups without a
    /// name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decision_groups: Vec<DecisionGroup>,
    /// How large a group may become: a number, or a share of all chosen clusters such as `25%`. Larger ones are split.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::int_or_string", extend("x-ocm-default" = "100%", "pattern" = "^((100|[1-9][0-9]{0,1})%|[1-9][0-9]*)$"))]
    pub clusters_per_decision_group: Option<IntOrString>,
}

/// A group of chosen clusters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DecisionGroup {
    /// Name of the group.
    #[schemars(regex(pattern = "^[a-zA-Z0-9][-A-Za-z0-9_.]{0,61}[a-zA-Z0-9]$"))]
    pub group_name: String,
    /// Which of the chosen clusters belong to the group.
    pub group_cluster_selector: GroupClusterSelector,
}

/// Selects clusters that meet everything it asks for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GroupClusterSelector {
    /// What the cluster's labels must be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::label_selector")]
    pub label_selector: Option<LabelSelector>,
    /// What the cluster's claims must be.
    #[serde(default, skip_serializing_if = "crate::serde_util::is_default")]
    pub claim_selector: ClusterClaimSelector,
}
