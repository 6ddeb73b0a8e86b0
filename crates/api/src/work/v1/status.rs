//! What the agent reports about a work.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a work and its objects fare.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManifestWorkStatus {
    /// Conditions of the work as a whole, one per type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::condition_map")]
    pub conditions: Vec<Condition>,
    /// How each object fares.
    #[serde(default, skip_serializing_if = "crate::serde_util::is_default")]
    pub resource_status: ManifestResourceStatus,
}

/// How each object of a work fares.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManifestResourceStatus {
    /// One entry per manifest, in the order of the spec.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub manifests: Vec<ManifestCondition>,
}

/// How one object fares.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["conditions", "resourceMeta"]))]
pub struct ManifestCondition {
    /// Which object.
    pub resource_meta: ManifestResourceMeta,
    /// Values reported from its status. Written even when empty.
    #[serde(default)]
    pub status_feedback: StatusFeedbackResult,
    /// Its conditions, one per type. Written even when empty.
    #[serde(default, deserialize_with = "crate::serde_util::null_as_default")]
    #[schemars(schema_with = "crate::schema::condition_map")]
    pub conditions: Vec<Condition>,
}

/// Which object of a work. Fields that the agent could not find out are written as empty strings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManifestResourceMeta {
    /// Position in `spec.workload.manifests`, from 0.
    pub ordinal: i32,
    /// API group; empty for the core group.
    #[serde(default)]
    pub group: String,
    /// API version, such as `v1`.
    #[serde(default)]
    pub version: String,
    /// Kind, such as `Deployment`.
    #[serde(default)]
    pub kind: String,
    /// Resource, such as `deployments`; empty while the managed cluster does not know the kind.
    #[serde(default)]
    pub resource: String,
    /// Name of the object.
    #[serde(default)]
    pub name: String,
    /// Namespace of the object; empty when its kind has none.
    #[serde(default)]
    pub namespace: String,
}

/// Values reported from an object's status.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatusFeedbackResult {
    /// The values, one per name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub values: Vec<FeedbackValue>,
}

/// A named value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FeedbackValue {
    /// Name given by the feedback rule.
    pub name: String,
    /// The value.
    pub field_value: FieldValue,
}

/// A value of one of four types; exactly the field named by `type` is set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FieldValue {
    /// Which of the fields holds the value.
    #[serde(rename = "type")]
    pub type_: ValueType,
    /// The value, with type `Integer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub integer: Option<i64>,
    /// The value, with type `String`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub string: Option<String>,
    /// The value, with type `Boolean`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boolean: Option<bool>,
    /// The value as JSON text, with type `JsonRaw`: an object or a list, 1024 bytes at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub json_raw: Option<String>,
}

impl FieldValue {
    /// An integer.
    pub fn integer(value: i64) -> Self {
        Self { type_: ValueType::Integer, integer: Some(value), ..Self::default() }
    }

    /// A string.
    pub fn string(value: impl Into<String>) -> Self {
        Self { type_: ValueType::String, string: Some(value.into()), ..Self::default() }
    }

    /// A boolean.
    pub fn boolean(value: bool) -> Self {
        Self { type_: ValueType::Boolean, boolean: Some(value), ..Self::default() }
    }

    /// JSON text of an object or a list.
    pub fn json_raw(value: impl Into<String>) -> Self {
        Self { type_: ValueType::JsonRaw, json_raw: Some(value.into()), ..Self::default() }
    }
}

string_enum! {
    /// Types of feedback values.
    pub enum ValueType {
        /// A 64-bit integer.
        #[default]
        Integer = "Integer",
        /// A string.
        String = "String",
        /// True or false.
        Boolean = "Boolean",
        /// An object or a list as JSON text; behind a feature gate of the agent.
        JsonRaw = "JsonRaw",
    }
}
