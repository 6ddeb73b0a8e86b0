//! Which clusters a placement prefers, and how it spreads them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which clusters to prefer. A cluster's score is the sum of its prioritizers' scores, each from -100 to 100 times its
/// weight.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PrioritizerPolicy {
    /// Whether prioritizers that are not listed count: `Additive` (default) or `Exact`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::text", extend("x-ocm-default" = "Additive"))]
    pub mode: Option<PrioritizerPolicyMode>,
    /// Prioritizers and their weights.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub configurations: Vec<PrioritizerConfig>,
}

string_enum! {
    /// Which prioritizers count.
    pub enum PrioritizerPolicyMode {
        /// Those listed, and the default ones: `Steady` and `Balance`, each with weight 1.
        #[default]
        Additive = "Additive",
        /// Those listed and no others.
        Exact = "Exact",
    }
}

/// A prioritizer and its weight.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PrioritizerConfig {
    /// Which prioritizer.
    pub score_coordinate: ScoreCoordinate,
    /// The weight; below 0 the prioritizer counts against a cluster, 0 switches it off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -10, max = 10), extend("x-ocm-default" = 1))]
    pub weight: Option<i32>,
}

/// Names a prioritizer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["type"]))]
pub struct ScoreCoordinate {
    /// Where its scores come from.
    #[serde(rename = "type", default)]
    #[schemars(extend("x-ocm-default" = "BuiltIn"))]
    pub type_: ScoreCoordinateType,
    /// Name of the prioritizer, with type `BuiltIn`: `Balance`, `Steady`, `ResourceAllocatableCPU` or
    /// `ResourceAllocatableMemory`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub built_in: Option<String>,
    /// The score, with type `AddOn`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub add_on: Option<AddOnScore>,
}

string_enum! {
    /// Where scores come from.
    pub enum ScoreCoordinateType {
        /// The hub computes them.
        #[default]
        BuiltIn = "BuiltIn",
        /// An add-on writes them into AddOnPlacementScores.
        AddOn = "AddOn",
    }
}

/// Names a score of an add-on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddOnScore {
    /// Name of the AddOnPlacementScore in each cluster's namespace.
    pub resource_name: String,
    /// Name of the score in it.
    pub score_name: String,
}

/// How to spread the choice.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SpreadPolicy {
    /// Rules for spreading; all are to be met, earlier ones rather than later ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub spread_constraints: Vec<SpreadConstraintsTerm>,
}

/// A rule for spreading clusters over topologies, such as regions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SpreadConstraintsTerm {
    /// Key of the label or name of the claim whose value is a cluster's topology.
    #[schemars(
        regex(
            pattern = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$"
        ),
        length(max = 316)
    )]
    pub topology_key: String,
    /// Whether the key is a label's or a claim's.
    pub topology_key_type: TopologyKeyType,
    /// By how many clusters topologies may differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), extend("x-ocm-default" = 1))]
    pub max_skew: Option<i32>,
    /// What to do when there is no choice that meets the rule: `ScheduleAnyway` (default) or `DoNotSchedule`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-ocm-default" = "ScheduleAnyway"))]
    pub when_unsatisfiable: Option<UnsatisfiableMaxSkewAction>,
}

string_enum! {
    /// What a topology key names.
    pub enum TopologyKeyType {
        /// A label of the cluster.
        #[default]
        Label = "Label",
        /// A claim of the cluster.
        Claim = "Claim",
    }
}

string_enum! {
    /// What to do when no choice meets a rule for spreading.
    pub enum UnsatisfiableMaxSkewAction {
        /// Choose fewer clusters.
        DoNotSchedule = "DoNotSchedule",
        /// Choose as evenly as possible.
        #[default]
        ScheduleAnyway = "ScheduleAnyway",
    }
}
