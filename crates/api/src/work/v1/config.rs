//! Settings for single objects of a work.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ConditionRule, FeedbackRule, FeedbackScrapeType};

/// Settings for the objects of the workload that an identifier selects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManifestConfigOption {
    /// Which objects. One that is not in the workload has no effect.
    pub resource_identifier: ResourceIdentifier,
    /// Which values of the object's status to report. None when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub feedback_rules: Vec<FeedbackRule>,
    /// How the agent follows the object for feedback: `Poll` (default) or `Watch`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-ocm-default" = "Poll"))]
    pub feedback_scrape_type: Option<FeedbackScrapeType>,
    /// How the object is written. Absent means `Update`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_strategy: Option<UpdateStrategy>,
    /// Conditions to compute from the object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["condition"]))]
    pub condition_rules: Vec<ConditionRule>,
}

/// Names an object by resource, namespace and name. In [`ManifestConfigOption`] name and namespace may hold `*` wildcards.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceIdentifier {
    /// API group; empty for the core group.
    #[serde(default)]
    pub group: String,
    /// Resource, plural and lower case, such as `deployments`.
    pub resource: String,
    /// Name of the object.
    pub name: String,
    /// Namespace of the object; empty when its kind has none. Written even when empty.
    #[serde(default)]
    pub namespace: String,
}

/// How an object is written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["type"]))]
pub struct UpdateStrategy {
    /// The strategy.
    #[serde(rename = "type", default)]
    #[schemars(extend("x-ocm-default" = "Update"))]
    pub type_: UpdateStrategyType,
    /// Settings for type `ServerSideApply`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_side_apply: Option<ServerSideApplyConfig>,
}

string_enum! {
    /// Strategies for writing an object.
    pub enum UpdateStrategyType {
        /// Create the object, and update it whenever it differs from the manifest.
        #[default]
        Update = "Update",
        /// Create the object when it is missing, never update it.
        CreateOnly = "CreateOnly",
        /// Server-side apply with the agent as field manager.
        ServerSideApply = "ServerSideApply",
        /// Never write the object; only look whether it exists, and report feedback.
        ReadOnly = "ReadOnly",
    }
}

/// Settings for server-side apply.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerSideApplyConfig {
    /// Whether to take fields over from other field managers.
    #[serde(default)]
    pub force: bool,
    /// The field manager; must begin with `work-agent`, which is also the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^work-agent"), extend("x-ocm-default" = "work-agent"))]
    pub field_manager: Option<String>,
    /// Fields to leave as they are on the managed cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["condition"]))]
    pub ignore_fields: Vec<IgnoreField>,
}

/// Fields to leave as they are on the managed cluster, and when.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["condition"]))]
pub struct IgnoreField {
    /// When the fields are left alone.
    #[serde(default)]
    #[schemars(extend("x-ocm-default" = "OnSpokePresent"))]
    pub condition: IgnoreFieldsCondition,
    /// The fields as Kubernetes JSONPath.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub json_paths: Vec<String>,
    /// The fields as JSON Pointers (RFC 6901), such as `/spec/replicas`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub json_pointers: Vec<String>,
    /// The fields as jq paths, for filters over lists.
    #[serde(rename = "jqPathExpressions", default, skip_serializing_if = "Vec::is_empty")]
    pub jq_path_expressions: Vec<String>,
}

string_enum! {
    /// When fields are left alone.
    pub enum IgnoreFieldsCondition {
        /// As soon as the object exists on the managed cluster.
        #[default]
        OnSpokePresent = "OnSpokePresent",
        /// As long as only the managed cluster changes the object; a new manifest writes them again.
        OnSpokeChange = "OnSpokeChange",
    }
}
