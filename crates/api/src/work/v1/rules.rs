//! Rules that turn applied objects into feedback values and conditions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which values of an object's status to report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FeedbackRule {
    /// Where the values come from.
    #[serde(rename = "type")]
    pub type_: FeedbackType,
    /// The values, with type `JSONPaths`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub json_paths: Vec<JsonPath>,
}

string_enum! {
    /// Where feedback values come from.
    pub enum FeedbackType {
        /// A fixed choice of status fields for well-known kinds.
        #[default]
        WellKnownStatus = "WellKnownStatus",
        /// Paths given by the user.
        JsonPaths = "JSONPaths",
    }
}

/// A value to report, by its path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JsonPath {
    /// Name under which the value is reported.
    pub name: String,
    /// API version the path is for; any when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Kubernetes JSONPath without braces, such as `.status.readyReplicas`. It must lead to an integer, a string or a
    /// boolean; a path that leads nowhere reports nothing.
    pub path: String,
}

string_enum! {
    /// How the agent follows an object for feedback.
    pub enum FeedbackScrapeType {
        /// The agent polls at intervals.
        #[default]
        Poll = "Poll",
        /// It watches the object.
        Watch = "Watch",
    }
}

/// A condition to compute from an object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "self.type != 'CEL' || self.condition != \"\"",
    "message": "Condition is required for CEL rules",
}]))]
pub struct ConditionRule {
    /// Type of the condition to set. Once `Complete` is true, the object is no longer updated.
    pub condition: String,
    /// How the condition is computed.
    #[serde(rename = "type")]
    pub type_: ConditionRuleType,
    /// CEL expressions over `object`, with type `CEL`; the condition is true when all of them are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cel_expressions: Vec<String>,
    /// Message of the condition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// CEL expression over `object` and `result` (the boolean outcome) for the message; goes before `message` unless its
    /// value is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_expression: Option<String>,
}

string_enum! {
    /// How a condition is computed.
    pub enum ConditionRuleType {
        /// By fixed rules for well-known kinds.
        #[default]
        WellKnownConditions = "WellKnownConditions",
        /// By CEL expressions.
        Cel = "CEL",
    }
}
