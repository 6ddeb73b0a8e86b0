//! Selectors of labels and claims, rarely invalid.

use serde_json::json;

use super::values::{Json, has, just, list, may_have, mostly, object, one_of, weighted};

/// `metadata.labels` of clusters, and what `matchLabels` selects. Claims have the same names and values.
pub(super) const KEYS: [(&str, &[&str]); 2] = [("env", &["prod", "dev"]), ("region", &["eu", "us", ""])];

pub(super) fn labels() -> Json {
    object(KEYS.map(|(key, values)| may_have(key, one_of(values.iter().copied()))))
}

/// A LabelSelector.
pub(super) fn label_selector() -> Json {
    let invalid = one_of([json!({"env": "not a value!"}), json!({"not a key!": "prod"})]);
    object([may_have("matchLabels", mostly(labels(), invalid)), may_have("matchExpressions", list(requirement(), 2))])
}

/// A selector of claims.
pub(super) fn claim_selector() -> Json {
    object([has("matchExpressions", list(requirement(), 2))])
}

fn requirement() -> Json {
    weighted([(40, compared()), (20, existing()), (1, invalid())])
}

fn key() -> Json {
    one_of(KEYS.map(|(key, _)| key))
}

fn compared() -> Json {
    let values = one_of([json!(["prod"]), json!(["prod", "eu"]), json!(["us", "dev"]), json!([""])]);
    object([has("key", key()), has("operator", one_of(["In", "NotIn"])), has("values", values)])
}

fn existing() -> Json {
    object([has("key", key()), has("operator", one_of(["Exists", "DoesNotExist"]))])
}

fn invalid() -> Json {
    weighted([
        (1, just(json!({"key": "env", "operator": "Like", "values": ["prod"]}))),
        (1, just(json!({"key": "env", "operator": "In"}))),
        (1, just(json!({"key": "env", "operator": "NotIn", "values": []}))),
        (1, just(json!({"key": "env", "operator": "Exists", "values": ["prod"]}))),
        (1, just(json!({"key": "env", "operator": "In", "values": ["not a value!"]}))),
        (1, just(json!({"key": "not a key!", "operator": "Exists"}))),
        (1, just(json!({"key": "", "operator": "Exists"}))),
        (1, just(json!({"key": "env", "operator": "", "values": ["prod"]}))),
    ])
}
