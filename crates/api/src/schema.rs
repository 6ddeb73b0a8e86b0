//! Schemas of Kubernetes' own types as Kubernetes' generator writes them, for `#[schemars(schema_with = "...")]`.
//!
//! The types come from `k8s-openapi`, whose schemas lack patterns, limits and list types.

use schemars::{Schema, SchemaGenerator, json_schema};

/// A label key, a taint key or the type of a condition: an optional DNS prefix, a slash, a name.
const QUALIFIED_NAME: &str =
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$";

/// A quantity such as `100m`, `2Gi` or `1e3`.
const QUANTITY: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

/// `metadata`: the API server knows its fields.
pub(crate) fn object_meta(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object" })
}

/// A point in time, RFC 3339.
pub(crate) fn time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "date-time" })
}

/// Bytes, base64 in JSON.
pub(crate) fn bytes(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "byte" })
}

/// A taint key.
pub(crate) fn taint_key(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "maxLength": 316, "pattern": QUALIFIED_NAME })
}

/// A DNS label: the name of a namespace.
pub(crate) fn namespace_name(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "maxLength": 63, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" })
}

/// A DNS subdomain: the name or namespace of a service account.
pub(crate) fn dns_subdomain(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "minLength": 1,
        "maxLength": 253,
        "pattern": r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)$",
    })
}

/// An object of any kind, kept whole by the API server.
pub(crate) fn embedded_resource(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true,
    })
}

/// Resource names to quantities.
pub(crate) fn quantities(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": {
            "anyOf": [{ "type": "integer" }, { "type": "string" }],
            "pattern": QUANTITY,
            "x-kubernetes-int-or-string": true,
        },
    })
}

/// A list of conditions without a list type, so replaced as a whole by server-side apply.
pub(crate) fn condition_list(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": condition() })
}

/// A list of conditions with one entry per type.
pub(crate) fn condition_map(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": condition(),
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    })
}

fn condition() -> Schema {
    json_schema!({
        "description": "One observation about the object's current state.",
        "type": "object",
        "required": ["lastTransitionTime", "message", "reason", "status", "type"],
        "properties": {
            "lastTransitionTime": {
                "description": "When the status last changed from one value to another.",
                "type": "string",
                "format": "date-time",
            },
            "message": {
                "description": "Details for people; may be empty.",
                "type": "string",
                "maxLength": 32768,
            },
            "observedGeneration": {
                "description": "The metadata.generation this condition speaks about; older than the object's means out of date.",
                "type": "integer",
                "format": "int64",
                "minimum": 0,
            },
            "reason": {
                "description": "Why the condition has its status, in CamelCase, for programs.",
                "type": "string",
                "minLength": 1,
                "maxLength": 1024,
                "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
            },
            "status": {
                "description": "True, False or Unknown.",
                "type": "string",
                "enum": ["True", "False", "Unknown"],
            },
            "type": {
                "description": "What the condition speaks about, in CamelCase.",
                "type": "string",
                "maxLength": 316,
                "pattern": QUALIFIED_NAME,
            },
        },
    })
}

/// A label selector.
pub(crate) fn label_selector(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "matchLabels": {
                "description": "Labels an object must carry with exactly these values.",
                "type": "object",
                "additionalProperties": { "type": "string" },
            },
            "matchExpressions": {
                "description": "Requirements an object must all meet.",
                "type": "array",
                "items": selector_requirement(),
                "x-kubernetes-list-type": "atomic",
            },
        },
    })
}

fn selector_requirement() -> Schema {
    json_schema!({
        "description": "A requirement on the value of one label.",
        "type": "object",
        "required": ["key", "operator"],
        "properties": {
            "key": { "description": "The label's key.", "type": "string" },
            "operator": { "description": "In, NotIn, Exists or DoesNotExist.", "type": "string" },
            "values": {
                "description": "At least one value for In and NotIn, none for Exists and DoesNotExist.",
                "type": "array",
                "items": { "type": "string" },
                "x-kubernetes-list-type": "atomic",
            },
        },
    })
}
