//! Which fields of an object differ from its manifest, and who has changed them, by `metadata.managedFields`.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use kube::core::DynamicObject;
use ocm_api::components;
use serde_json::{Value, json};

/// How many fields are named.
const NAMED: usize = 3;
/// Kubernetes records writes to the status under this subresource.
const STATUS: &str = "status";

/// The fields that others have changed, as far as the server says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ChangedFields {
    fields: Vec<ChangedField>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct ChangedField {
    path: String,
    manager: Option<String>,
    /// What was found, and what the manifest has, where that may be shown.
    values: Option<(String, String)>,
}

/// A step from an object to one of its fields.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Field(String),
    Index(usize),
}

impl ChangedFields {
    /// Those in which an object differs from its manifest and which others own; or else what the last one of them owns.
    pub(super) fn of(existing: &DynamicObject, manifest: &DynamicObject) -> Self {
        let (existing_json, writers) = (comparable(existing), Writers::of(existing));
        let shows_values = !is_secret(existing, manifest);
        let mut differing = Vec::new();
        differences(&comparable(manifest), Some(&existing_json), &mut Vec::new(), &mut differing);
        let changed = |path: &Vec<Step>| {
            let manager = writers.of_field(path, &existing_json)?;
            let values = shows_values.then(|| values(path, &existing_json, manifest)).flatten();
            Some(ChangedField { path: show(path), manager: Some(manager.to_owned()), values })
        };
        let owned: Vec<_> = differing.iter().filter_map(changed).collect();
        let fields = if owned.is_empty() { writers.fields_of_last(&differing) } else { owned };
        Self { fields }
    }

    /// Without the values, which may be others each time.
    pub(super) fn names(&self) -> String {
        let names = self.fields.iter().map(|field| ChangedField { values: None, ..field.clone() });
        Self { fields: names.collect() }.to_string()
    }
}

/// What a manifest and an object have in common.
fn comparable(object: &DynamicObject) -> Value {
    let mut fields = object.data.clone();
    if let Some(fields) = fields.as_object_mut() {
        fields.remove("status");
        let metadata = &object.metadata;
        fields.insert("metadata".into(), json!({"labels": metadata.labels, "annotations": metadata.annotations}));
    }
    fields
}

fn is_secret(existing: &DynamicObject, manifest: &DynamicObject) -> bool {
    [existing, manifest].into_iter().filter_map(|object| object.types.as_ref()).any(|types| types.kind == "Secret")
}

/// The fields of the manifest that the object has not, or has with another value.
fn differences(desired: &Value, existing: Option<&Value>, path: &mut Vec<Step>, found: &mut Vec<Vec<Step>>) {
    match (desired, existing) {
        (Value::Object(fields), Some(Value::Object(others))) => {
            for (field, value) in fields {
                path.push(Step::Field(field.clone()));
                differences(value, others.get(field), path, found);
                path.pop();
            }
        }
        (Value::Array(items), Some(Value::Array(others))) if items.len() == others.len() => {
            for (index, (item, other)) in items.iter().zip(others).enumerate() {
                path.push(Step::Index(index));
                differences(item, Some(other), path, found);
                path.pop();
            }
        }
        (desired, existing) if existing.unwrap_or(&Value::Null) != desired => found.push(path.clone()),
        _ => {}
    }
}

/// Numbers, truth values and images. Other texts may be confidential.
fn values(path: &[Step], existing: &Value, manifest: &DynamicObject) -> Option<(String, String)> {
    let is_image = matches!(path.last(), Some(Step::Field(field)) if field == "image");
    let shown = |value: &Value| match value {
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::String(text) if is_image => Some(text.clone()),
        _ => None,
    };
    Some((shown(at(existing, path)?)?, shown(at(&manifest.data, path)?)?))
}

fn at<'a>(value: &'a Value, path: &[Step]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, step| match step {
        Step::Field(field) => value.get(field),
        Step::Index(index) => value.get(index),
    })
}

fn show(path: &[Step]) -> String {
    let is_plain = |field: &str| field.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    let shown = |step: &Step| match step {
        Step::Field(field) if is_plain(field) => format!(".{field}"),
        Step::Field(field) => format!("[{field:?}]"),
        Step::Index(index) => format!("[{index}]"),
    };
    path.iter().map(shown).collect()
}

/// The others who have written an object, the last one first.
struct Writers<'a>(Vec<&'a ManagedFieldsEntry>);

impl<'a> Writers<'a> {
    fn of(object: &'a DynamicObject) -> Self {
        let entries = object.metadata.managed_fields.iter().flatten();
        let is_other = |entry: &&ManagedFieldsEntry| {
            let is_ours = entry.manager.as_ref().is_some_and(|name| name.starts_with(components::WORK_FIELD_MANAGER));
            !is_ours && entry.subresource.as_deref() != Some(STATUS)
        };
        let mut others: Vec<_> = entries.filter(is_other).collect();
        others.sort_by_key(|entry| std::cmp::Reverse(entry.time.as_ref().map(|time| time.0)));
        Self(others)
    }

    fn of_field(&self, path: &[Step], existing: &Value) -> Option<&'a str> {
        let owner = self.0.iter().find(|entry| fields(entry).is_some_and(|fields| owns(fields, path, existing)))?;
        owner.manager.as_deref()
    }

    /// A field that was removed has no owner, and one that the manifest lacks is no difference: the last one to write is
    /// named, with the fields that differ or with those they own.
    fn fields_of_last(&self, differing: &[Vec<Step>]) -> Vec<ChangedField> {
        let Some(last) = self.0.first() else { return Vec::new() };
        let mut paths: Vec<_> = differing.iter().map(|path| show(path)).collect();
        if let (true, Some(fields)) = (paths.is_empty(), fields(last)) {
            leaves(fields, String::new(), &mut paths);
        }
        let changed = |path| ChangedField { path, manager: last.manager.clone(), values: None };
        paths.into_iter().map(changed).collect()
    }
}

fn fields(entry: &ManagedFieldsEntry) -> Option<&Value> {
    entry.fields_v1.as_ref().map(|fields| &fields.0)
}

/// Whether a set of managed fields has a field, all of an object around it, or a part of it.
fn owns(fields: &Value, path: &[Step], existing: &Value) -> bool {
    let Some((step, rest)) = path.split_first() else { return true };
    let Some(fields) = fields.as_object() else { return false };
    if fields.is_empty() {
        return true;
    }
    match step {
        Step::Field(field) => {
            let (owned, value) = (fields.get(&format!("f:{field}")), existing.get(field).unwrap_or(&Value::Null));
            owned.is_some_and(|owned| owns(owned, rest, value))
        }
        Step::Index(index) => {
            let item = existing.get(index).unwrap_or(&Value::Null);
            fields.iter().any(|(key, owned)| selects(key, *index, item) && owns(owned, rest, item))
        }
    }
}

/// Whether the key of a list in managed fields selects this item of it.
fn selects(key: &str, index: usize, item: &Value) -> bool {
    match key.split_once(':') {
        Some(("k", keys)) => serde_json::from_str::<Value>(keys).is_ok_and(|keys| {
            keys.as_object().is_some_and(|keys| keys.iter().all(|(field, value)| item.get(field) == Some(value)))
        }),
        Some(("v", value)) => serde_json::from_str::<Value>(value).is_ok_and(|value| value == *item),
        Some(("i", number)) => number.parse() == Ok(index),
        _ => false,
    }
}

/// The fields of a set, without those of the metadata and the status.
fn leaves(fields: &Value, path: String, found: &mut Vec<String>) {
    let Some(fields) = fields.as_object().filter(|fields| !fields.is_empty()) else { return found.push(path) };
    for (key, owned) in fields.iter().filter(|(key, _)| !matches!(key.as_str(), "f:metadata" | "f:status" | ".")) {
        let step = match key.split_once(':') {
            Some(("f", field)) => show(&[Step::Field(field.to_owned())]),
            Some((_, item)) => format!("[{item}]"),
            None => continue,
        };
        leaves(owned, format!("{path}{step}"), found);
    }
}

/// `.spec.replicas (by kubectl-edit, 5 instead of 3)`.
impl fmt::Display for ChangedField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let manager = self.manager.as_ref().map(|manager| format!("by {manager}"));
        let values = self.values.as_ref().map(|(found, desired)| format!("{found} instead of {desired}"));
        let details: Vec<_> = manager.into_iter().chain(values).collect();
        f.write_str(&self.path)?;
        if details.is_empty() { Ok(()) } else { write!(f, " ({})", details.join(", ")) }
    }
}

impl fmt::Display for ChangedFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named: Vec<_> = self.fields.iter().take(NAMED).map(ToString::to_string).collect();
        match (named.is_empty(), self.fields.len().saturating_sub(NAMED)) {
            (true, _) => f.write_str("fields that the API server does not name"),
            (_, 0) => f.write_str(&named.join("; ")),
            (_, more) => write!(f, "{}; and {more} more", named.join("; ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(kind: &str, body: &Value, writers: &Value) -> DynamicObject {
        let mut object = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "a", "managedFields": writers}});
        ocm_apimachinery::merge::apply(&mut object, body);
        serde_json::from_value(object).unwrap()
    }

    fn writer(manager: &str, second: u8, fields: &Value) -> Value {
        json!({"manager": manager, "operation": "Update", "time": format!("2026-01-01T00:00:0{second}Z"), "fieldsV1": fields})
    }

    fn changed(kind: &str, manifest: &Value, existing: &Value, writers: &Value) -> String {
        let none = json!([]);
        ChangedFields::of(&object(kind, existing, writers), &object(kind, manifest, &none)).to_string()
    }

    #[test]
    fn a_changed_field_is_named_with_its_manager_and_both_values() {
        let writers = json!([
            writer("work-agent", 1, &json!({"f:spec": {"f:replicas": {}}})),
            writer("kubectl-edit", 2, &json!({"f:spec": {"f:replicas": {}}})),
            writer("other", 3, &json!({"f:spec": {"f:paused": {}}})),
        ]);
        let text = changed(
            "Deployment",
            &json!({"spec": {"replicas": 3}}),
            &json!({"spec": {"replicas": 5, "revisionHistoryLimit": 10}}),
            &writers,
        );
        assert_eq!(text, ".spec.replicas (by kubectl-edit, 5 instead of 3)");
    }

    #[test]
    fn items_of_lists_are_found_by_their_keys() {
        let containers =
            |image: &str| json!({"spec": {"containers": [{"name": "web", "image": image}, {"name": "b"}]}});
        let fields = json!({"f:spec": {"f:containers": {"k:{\"name\":\"web\"}": {"f:image": {}}}}});
        let writers = json!([writer("kubectl-set", 2, &fields)]);
        let text = changed("Deployment", &containers("web:1"), &containers("web:2"), &writers);
        assert_eq!(text, ".spec.containers[0].image (by kubectl-set, web:2 instead of web:1)");
    }

    #[test]
    fn values_that_may_be_confidential_are_not_shown() {
        let writers = json!([writer("kubectl-edit", 2, &json!({"f:data": {"f:a": {}}}))]);
        let text =
            changed("Secret", &json!({"data": {"a": "b3Vycw=="}}), &json!({"data": {"a": "dGhlaXJz"}}), &writers);
        assert_eq!(text, ".data.a (by kubectl-edit)");
        let text = changed("ConfigMap", &json!({"data": {"a": "ours"}}), &json!({"data": {"a": "theirs"}}), &writers);
        assert_eq!(text, ".data.a (by kubectl-edit)");
    }

    #[test]
    fn a_removed_label_has_no_owner_and_the_last_other_writer_is_named() {
        let writers = json!([
            writer("first", 1, &json!({"f:spec": {}})),
            writer("kubectl-label", 2, &json!({"f:metadata": {"f:labels": {"f:x": {}}}})),
        ]);
        let manifest = json!({"metadata": {"labels": {"app.kubernetes.io/name": "a"}}});
        let text = changed("ConfigMap", &manifest, &json!({"metadata": {"labels": {"x": "1"}}}), &writers);
        assert_eq!(text, ".metadata.labels[\"app.kubernetes.io/name\"] (by kubectl-label)");
    }

    #[test]
    fn fields_that_the_manifest_lacks_are_those_that_the_last_other_writer_owns() {
        let writers = json!([writer("pauser", 2, &json!({"f:spec": {"f:paused": {}}, "f:status": {"f:x": {}}}))]);
        let text = changed("Deployment", &json!({"spec": {}}), &json!({"spec": {"paused": true}}), &writers);
        assert_eq!(text, ".spec.paused (by pauser)");
    }

    #[test]
    fn few_fields_are_named_and_the_rest_counted() {
        let data = |value: &str| json!({"data": {"a": value, "b": value, "c": value, "d": value, "e": value}});
        let writers = json!([writer("m", 2, &json!({"f:data": {}}))]);
        let text = changed("ConfigMap", &data("1"), &data("2"), &writers);
        assert_eq!(text, ".data.a (by m); .data.b (by m); .data.c (by m); and 2 more");
        assert_eq!(
            changed("ConfigMap", &data("1"), &data("2"), &json!([])),
            "fields that the API server does not name"
        );
    }

    #[test]
    fn names_leave_out_what_differs_each_time() {
        let writers = json!([writer("hpa", 2, &json!({"f:spec": {"f:replicas": {}}}))]);
        let existing = object("Deployment", &json!({"spec": {"replicas": 5}}), &writers);
        let manifest = object("Deployment", &json!({"spec": {"replicas": 3}}), &json!([]));
        assert_eq!(ChangedFields::of(&existing, &manifest).names(), ".spec.replicas (by hpa)");
    }
}
