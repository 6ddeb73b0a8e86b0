//! Checking what an author gives: is each an object, has it a name, can a work hold it.

use std::collections::BTreeSet;

use kube::core::{ApiResource, GroupVersionKind};
use ocm_api::{
    annotations,
    limits::MAX_MANIFEST_BYTES,
    work::v1::{Manifest, OrphaningRule},
};
use serde_json::Value;

/// An object that is fit for a work.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Item {
    /// Which object.
    pub(crate) id: Id,
    /// All of it.
    pub(crate) manifest: Manifest,
    /// How many bytes it takes.
    pub(crate) size: usize,
    /// Whether it stays on the cluster when the add-on goes.
    orphan: bool,
    version: String,
}

/// Names an object. Two versions of a kind are one object.
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
    #[error("{0} is there twice")]
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
    let version = text(&value, "/apiVersion").to_owned();
    for (field, there) in [("apiVersion", &version), ("kind", &id.kind), ("metadata.name", &id.name)] {
        if there.is_empty() {
            return Err(ManifestError::Missing { position, what: id.to_string().trim().to_owned(), field });
        }
    }
    if is_hook(&value, &id) {
        return Err(ManifestError::Hook(id));
    }
    drop_nulls(&mut value);
    let orphan = has_key(&value, "/metadata/annotations", annotations::ADDON_DELETION_ORPHAN);
    let size = value.to_string().len();
    if size > MAX_MANIFEST_BYTES {
        return Err(ManifestError::TooBig { id, size });
    }
    Ok(Item { id, manifest: value.into(), size, orphan, version })
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

/// The API server drops them from the metadata of what is inside a work, so it would never be the same as what is wanted.
fn drop_nulls(value: &mut Value) {
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|_, field| !field.is_null());
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
    /// What leaves the object behind when its work goes, if it is to stay.
    pub(super) fn orphaning_rule(&self) -> Option<OrphaningRule> {
        let version = self.version.rsplit('/').next().unwrap_or_default();
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(&self.id.group, version, &self.id.kind)).plural;
        let Id { group, namespace, name, .. } = self.id.clone();
        self.orphan.then_some(OrphaningRule { group, resource, name, namespace })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn errors(values: &[Value]) -> String {
        let manifests: Vec<_> = values.iter().cloned().map(Manifest::from).collect();
        read(&manifests).unwrap_err().to_string()
    }

    fn object(name: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "n"}})
    }

    #[test]
    fn what_is_no_object_with_version_kind_and_name_is_refused_by_its_place() {
        assert_eq!(errors(&[object("a"), json!("text")]), "manifest 1 is not an object but a text");
        let with = |key: &str| {
            let mut value = object("a");
            value[key] = Value::Null;
            errors(&[value])
        };
        assert!(with("apiVersion").starts_with("manifest 0 (ConfigMap n/a) has no apiVersion"));
        assert!(with("kind").contains("has no kind"));
        assert!(with("metadata").contains("has no metadata.name"));
        let list = json!({"apiVersion": "v1", "kind": "List", "items": [object("a")]});
        assert!(errors(&[list]).starts_with("manifest 0 (List) has no metadata.name"));
    }

    #[test]
    fn the_same_object_twice_is_refused_also_in_two_versions() {
        assert_eq!(errors(&[object("a"), object("b"), object("a")]), "ConfigMap n/a is there twice");
        let version =
            |version: &str| json!({"apiVersion": format!("x.io/{version}"), "kind": "X", "metadata": {"name": "a"}});
        assert_eq!(errors(&[version("v1"), version("v2")]), "X a is there twice");
    }

    #[test]
    fn what_no_work_can_hold_is_refused() {
        let mut big = object("a");
        big["data"] = json!({"x": "x".repeat(MAX_MANIFEST_BYTES)});
        assert!(errors(&[big]).starts_with("ConfigMap n/a takes 5"));
    }

    #[test]
    fn pre_delete_hooks_are_refused_by_name_and_the_key_means_nothing_on_other_kinds() {
        for place in ["annotations", "labels"] {
            let metadata = json!({"name": "a", "namespace": "n", place: {(annotations::ADDON_PRE_DELETE): ""}});
            let hook = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata});
            assert!(errors(&[hook]).starts_with("Job n/a is to run before the add-on is deleted"));
            let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
            assert!(read(&[map.into()]).is_ok());
        }
    }

    #[test]
    fn an_object_that_is_to_stay_is_named_by_its_resource() {
        let metadata =
            json!({"name": "a", "namespace": "n", "annotations": {(annotations::ADDON_DELETION_ORPHAN): ""}});
        let policy = json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata});
        let items = read(&[policy.into(), object("b").into()]).unwrap();
        let rule = items[0].orphaning_rule().unwrap();
        assert_eq!((rule.group.as_str(), rule.resource.as_str()), ("networking.k8s.io", "networkpolicies"));
        assert_eq!((rule.namespace.as_str(), rule.name.as_str()), ("n", "a"));
        assert_eq!(items[1].orphaning_rule(), None);
    }

    #[test]
    fn nothing_in_the_metadata_is_null() {
        let mut value = object("a");
        value["metadata"]["creationTimestamp"] = Value::Null;
        assert_eq!(read(&[value.into()]).unwrap()[0].manifest.value(), object("a"));
    }
}
