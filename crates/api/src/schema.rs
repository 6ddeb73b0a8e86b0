//! Schemas of Kubernetes' own types as Kubernetes' generator writes them, for `#[schemars(schema_with = "...")]`.
//!
//! The types come from `k8s-openapi`, whose schemas lack patterns, limits and list types.

use schemars::{Schema, SchemaGenerator, json_schema};

/// A label key, a taint key or the type of a condition: an optional DNS prefix, a slash, a name.
const QUALIFIED_NAME: &str =
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$";

/// A quantity such as `100m`, `2Gi` or `1e3`.
const QUANTITY: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

/// A number of clusters, or a share of them such as `25%`.
pub(crate) const COUNT_OR_SHARE: &str = "^((100|[0-9]{1,2})%|[0-9]+)$";

/// A time limit such as `10m`, or `None`.
pub(crate) const DEADLINE: &str = "^(([0-9])+[h|m|s])|None$";

/// A duration such as `10s` or `1h30m`.
pub(crate) const DURATION: &str = "^([0-9]+(s|m|h))+$";

/// A host name or an IPv4 address.
pub(crate) const HOST_NAME: &str =
    r"^(([a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9\-]*[a-zA-Z0-9])\.)*([A-Za-z0-9]|[A-Za-z0-9][A-Za-z0-9\-]*[A-Za-z0-9])$";

/// The ARN of an EKS cluster.
pub(crate) const EKS_CLUSTER_ARN: &str = r"^arn:aws:eks:([a-zA-Z0-9-]+):(\d{12}):cluster/([a-zA-Z0-9-]+)$";

/// The name of a signer: a domain, a slash, a path.
pub(crate) const SIGNER_NAME: &str = r"^([a-z0-9][a-z0-9-]*[a-z0-9]\.)+[a-z]+\/[a-z0-9-\.]+$";

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

/// A string, where the known values of an enum are not enforced.
pub(crate) fn text(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string" })
}

/// An integer, where no size is given.
pub(crate) fn integer(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer" })
}

/// A number, or text.
pub(crate) fn int_or_string(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "anyOf": [{ "type": "integer" }, { "type": "string" }], "x-kubernetes-int-or-string": true })
}

/// Any JSON object, kept whole by the API server.
pub(crate) fn any_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
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

/// What containers may use, of Kubernetes' core group.
pub(crate) fn resource_requirements(generator: &mut SchemaGenerator) -> Schema {
    let mut limits = quantities(generator);
    limits.insert("description".to_owned(), "Most that a container may use, by resource.".into());
    let mut requests = quantities(generator);
    requests.insert("description".to_owned(), "What a container is sure to get, by resource.".into());
    json_schema!({
        "type": "object",
        "properties": {
            "claims": {
                "description": "Claims of the pod that the container uses.",
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["name"],
                    "properties": {
                        "name": { "description": "Name of the claim in the pod.", "type": "string" },
                        "request": { "description": "Name of a request in the claim; all when absent.", "type": "string" },
                    },
                },
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
            },
            "limits": limits,
            "requests": requests,
        },
    })
}

/// Tolerations of pods, of Kubernetes' core group.
pub(crate) fn tolerations(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "key": { "description": "Key of the taint; absent means every key.", "type": "string" },
                "operator": { "description": "Equal (default) or Exists.", "type": "string" },
                "value": { "description": "Value of the taint, with operator Equal.", "type": "string" },
                "effect": { "description": "Effect of the taint; absent means every effect.", "type": "string" },
                "tolerationSeconds": {
                    "description": "For how many seconds the taint is tolerated; absent means for ever.",
                    "type": "integer",
                    "format": "int64",
                },
            },
        },
    })
}

/// A Role or ClusterRole that a binding refers to.
pub(crate) fn role_ref(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "required": ["apiGroup", "kind", "name"],
        "properties": {
            "apiGroup": { "description": "rbac.authorization.k8s.io.", "type": "string" },
            "kind": { "description": "Role or ClusterRole.", "type": "string" },
            "name": { "description": "Name of the role.", "type": "string" },
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

/// Requirements on values, as a label selector has them.
pub(crate) fn selector_requirements(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": selector_requirement() })
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
