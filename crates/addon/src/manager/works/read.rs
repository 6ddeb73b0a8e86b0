//! Validates the author's manifests: each must be an object, have a name, and fit into a work.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{ApiResource, GroupVersionKind};
use ocm_api::{
    annotations,
    limits::MAX_MANIFEST_BYTES,
    work::v1::{Manifest, OrphaningRule},
};
use serde::Deserialize as _;
use serde_json::Value;

/// A valid object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Item {
    /// Which object.
    pub(crate) id: Id,
    /// Its place among the author's manifests.
    pub(crate) position: usize,
    /// The object.
    pub(crate) manifest: Manifest,
    /// How many bytes it takes.
    pub(crate) size: usize,
    /// Whether it stays on the cluster when the add-on is deleted.
    orphan: bool,
}

/// Identifies an object. Two versions of a kind are the same object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Id {
    group: String,
    kind: String,
    namespace: String,
    name: String,
}

impl std::fmt::Display for Id {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.namespace.as_str() {
            "" => write!(f, "{} {}", self.kind, self.name),
            namespace => write!(f, "{} {namespace}/{}", self.kind, self.name),
        }
    }
}

impl Id {
    /// Group, kind, namespace and name.
    pub(super) fn parts(&self) -> (&String, &String, &String, &String) {
        (&self.group, &self.kind, &self.namespace, &self.name)
    }
}

/// Why an object cannot be part of a work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ManifestError {
    #[error("manifest {position} is not an object but {what}")]
    NotAnObject {
        /// Its place among the manifests, from 0.
        position: usize,
        what: &'static str,
    },
    #[error("manifest {position} ({what}) has no {field}: every manifest needs apiVersion, kind and metadata.name")]
    Missing { position: usize, what: String, field: &'static str },
    #[error("{0} is listed twice")]
    Twice(Id),
    #[error("{id} takes {size} bytes, and a work holds at most {MAX_MANIFEST_BYTES}")]
    TooBig { id: Id, size: usize },
    #[error(
        "{0} is to run before the add-on is deleted ({key}), which this version of ocm-addon cannot do yet: remove the \
         manifest, or that annotation or label",
        key = annotations::ADDON_PRE_DELETE
    )]
    Hook(Id),
}

/// Checks all manifests of an add-on, in their order.
pub(crate) fn read(manifests: &[Manifest]) -> Result<Vec<Item>, ManifestError> {
    let mut seen = BTreeSet::new();
    let items = manifests.iter().enumerate().map(|(position, manifest)| {
        let item = read_one(position, manifest.value())?;
        if seen.insert(item.id.clone()) { Ok(item) } else { Err(ManifestError::Twice(item.id)) }
    });
    items.collect()
}

fn read_one(position: usize, mut value: Value) -> Result<Item, ManifestError> {
    if !value.is_object() {
        return Err(ManifestError::NotAnObject { position, what: kind_of_json(&value) });
    }
    let id = id_of(&value);
    let version = text(&value, "/apiVersion");
    for (field, there) in [("apiVersion", version), ("kind", id.kind.as_str()), ("metadata.name", id.name.as_str())] {
        if there.is_empty() {
            return Err(ManifestError::Missing { position, what: id.to_string().trim().to_owned(), field });
        }
    }
    if is_hook(&value, &id) {
        return Err(ManifestError::Hook(id));
    }
    settle_metadata(&mut value);
    let orphan = has_key(&value, "/metadata/annotations", annotations::ADDON_DELETION_ORPHAN);
    let size = value.to_string().len();
    if size > MAX_MANIFEST_BYTES {
        return Err(ManifestError::TooBig { id, size });
    }
    Ok(Item { id, position, manifest: value.into(), size, orphan })
}

/// The object that a manifest of a work is.
pub(super) fn id_of(value: &Value) -> Id {
    let group = text(value, "/apiVersion").split_once('/').map_or("", |(group, _)| group);
    Id {
        group: group.to_owned(),
        kind: text(value, "/kind").to_owned(),
        namespace: text(value, "/metadata/namespace").to_owned(),
        name: text(value, "/metadata/name").to_owned(),
    }
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn has_key(value: &Value, pointer: &str, key: &str) -> bool {
    value.pointer(pointer).is_some_and(|map| map.get(key).is_some())
}

/// Jobs and Pods that run before the add-on is deleted. On other kinds the key means nothing.
fn is_hook(value: &Value, id: &Id) -> bool {
    let can_run = matches!((id.group.as_str(), id.kind.as_str()), ("batch", "Job") | ("", "Pod"));
    let marked = |pointer| has_key(value, pointer, annotations::ADDON_PRE_DELETE);
    can_run && (marked("/metadata/annotations") || marked("/metadata/labels"))
}

/// API servers read the metadata of a work's objects as that of any object: they drop fields that are empty or unknown, and
/// refuse what is not metadata. Without the same here, the stored work would never equal the desired one.
fn settle_metadata(value: &mut Value) {
    let Some(metadata) = value.get_mut("metadata") else { return };
    if let Ok(known) = ObjectMeta::deserialize(&*metadata)
        && let Ok(Value::Object(mut fields)) = serde_json::to_value(known)
    {
        fields.retain(|_, field| !is_empty(field));
        *metadata = Value::Object(fields);
    }
}

fn is_empty(field: &Value) -> bool {
    match field {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Number(number) => number.as_i64() == Some(0),
        Value::Bool(_) => false,
    }
}

fn kind_of_json(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

impl Item {
    /// The rule that keeps the object when its work is deleted, if it is to stay.
    pub(super) fn orphaning_rule(&self) -> Option<OrphaningRule> {
        if !self.orphan {
            return None;
        }
        let Id { group, kind, namespace, name } = self.id.clone();
        Some(OrphaningRule { group, resource: resource_of(&kind), name, namespace })
    }
}

/// The resource of a kind, as it is most likely called.
fn resource_of(kind: &str) -> String {
    // kube's own pluralization indexes the letter before the last one.
    match kind.len() {
        0 | 1 => format!("{}s", kind.to_ascii_lowercase()),
        _ => ApiResource::from_gvk(&GroupVersionKind::gvk("", "", kind)).plural,
    }
}

#[cfg(test)]
mod tests;
