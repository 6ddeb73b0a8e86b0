//! How a change reaches many clusters: [`RolloutStrategy`], shared by works for many clusters and add-ons.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a change reaches the clusters of a placement. Only the settings that the type names are used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutStrategy {
    /// The strategy.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-ocm-default" = "All"))]
    pub type_: Option<RolloutType>,
    /// Settings for type `All`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all: Option<RolloutAll>,
    /// Settings for type `Progressive`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progressive: Option<RolloutProgressive>,
    /// Settings for type `ProgressivePerGroup`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progressive_per_group: Option<RolloutProgressivePerGroup>,
}

string_enum! {
    /// How many clusters change at a time.
    pub enum RolloutType {
        /// All clusters at once.
        #[default]
        All = "All",
        /// Some clusters at a time.
        Progressive = "Progressive",
        /// One decision group of the placement after the other.
        ProgressivePerGroup = "ProgressivePerGroup",
    }
}

/// Settings for a change of all clusters at once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutAll {
    /// How long a cluster must be well before it counts as done, such as `5m`; `0` means it counts at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-ocm-default" = "0"))]
    pub min_success_time: Option<String>,
    /// How long a cluster may take, such as `1h`, until it counts as timed out; `None` means as long as it likes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = crate::schema::DEADLINE), extend("x-ocm-default" = "None"))]
    pub progress_deadline: Option<String>,
    /// How many clusters may fail or time out before the rollout stops: a number, or a share of all clusters such as
    /// `10%`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::int_or_string", extend("x-ocm-default" = 0, "pattern" = crate::schema::COUNT_OR_SHARE))]
    pub max_failures: Option<IntOrString>,
}

/// Settings for a change of some clusters at a time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutProgressive {
    /// Decision groups that must be done before all others, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mandatory_decision_groups: Vec<MandatoryDecisionGroup>,
    /// How long a cluster must be well before it counts as done, such as `5m`; `0` means it counts at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-ocm-default" = "0"))]
    pub min_success_time: Option<String>,
    /// How long a cluster may take, such as `1h`, until it counts as timed out; `None` means as long as it likes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = crate::schema::DEADLINE), extend("x-ocm-default" = "None"))]
    pub progress_deadline: Option<String>,
    /// How many clusters may fail or time out before the rollout stops: a number, or a share of all clusters such as
    /// `10%`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::int_or_string", extend("x-ocm-default" = 0, "pattern" = crate::schema::COUNT_OR_SHARE))]
    pub max_failures: Option<IntOrString>,
    /// How many clusters change at the same time: a number, or a share of all clusters such as `25%`. Absent means as
    /// many as the placement's `clustersPerDecisionGroup`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::int_or_string", extend("pattern" = crate::schema::COUNT_OR_SHARE))]
    pub max_concurrency: Option<IntOrString>,
}

/// Settings for a change of one decision group after the other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutProgressivePerGroup {
    /// Decision groups that must be done before all others, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mandatory_decision_groups: Vec<MandatoryDecisionGroup>,
    /// How long a cluster must be well before it counts as done, such as `5m`; `0` means it counts at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-ocm-default" = "0"))]
    pub min_success_time: Option<String>,
    /// How long a cluster may take, such as `1h`, until it counts as timed out; `None` means as long as it likes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = crate::schema::DEADLINE), extend("x-ocm-default" = "None"))]
    pub progress_deadline: Option<String>,
    /// How many clusters of a group may fail or time out before the rollout stops: a number, or a share such as `10%`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::int_or_string", extend("x-ocm-default" = 0, "pattern" = crate::schema::COUNT_OR_SHARE))]
    pub max_failures: Option<IntOrString>,
}

/// A decision group of a placement, by name or, when that is absent, by index.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MandatoryDecisionGroup {
    /// Name of the group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_name: Option<String>,
    /// Index of the group, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_index: Option<i32>,
}
