//! A cluster as OCM's expressions read it.
//!
//! OCM reads a ManagedCluster into a struct of Go, and expressions read the JSON of that. So some fields always exist, others
//! exist only if they are not empty, and quantities have one form, however the object is stored.

use ocm_apimachinery::quantity::Quantity;
use serde_json::{Map, Value, json};

type Object = Map<String, Value>;

/// Reads a ManagedCluster.
pub(super) fn read(json: &[u8]) -> serde_json::Result<Value> {
    let mut cluster = serde_json::from_slice(json)?;
    if let Value::Object(cluster) = &mut cluster {
        part(cluster, "metadata", metadata);
        part(cluster, "spec", spec);
        part(cluster, "status", status);
    }
    Ok(cluster)
}

/// A part that always exists.
fn part(parent: &mut Object, field: &str, complete: fn(&mut Object)) {
    exists(parent, field, json!({}));
    parent.get_mut(field).and_then(Value::as_object_mut).into_iter().for_each(complete);
}

fn metadata(metadata: &mut Object) {
    metadata.remove("managedFields");
    exists(metadata, "creationTimestamp", Value::Null);
    unless_empty(metadata, &["labels", "annotations", "finalizers", "ownerReferences"]);
}

fn spec(spec: &mut Object) {
    exists(spec, "hubAcceptsClient", json!(false));
    unless_empty(spec, &["leaseDurationSeconds", "managedClusterClientConfigs", "taints"]);
    for taint in items(spec, "taints") {
        exists(taint, "timeAdded", Value::Null);
        unless_empty(taint, &["value"]);
    }
}

fn status(status: &mut Object) {
    exists(status, "conditions", Value::Null);
    part(status, "version", |version| unless_empty(version, &["kubernetes"]));
    unless_empty(status, &["allocatable", "capacity", "clusterClaims", "managedNamespaces"]);
    items(status, "clusterClaims").for_each(|claim| unless_empty(claim, &["name", "value"]));
    for field in ["allocatable", "capacity"] {
        let resources = status.get_mut(field).and_then(Value::as_object_mut);
        resources.into_iter().flat_map(Map::values_mut).for_each(normalize);
    }
}

/// A field that always exists.
fn exists(object: &mut Object, field: &str, zero: Value) {
    let value = object.entry(field).or_insert(Value::Null);
    if value.is_null() {
        *value = zero;
    }
}

/// Fields that exist only if they are not empty.
fn unless_empty(object: &mut Object, fields: &[&str]) {
    object.retain(|field, value| !fields.contains(&field.as_str()) || !is_empty(value));
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

/// The objects in a list.
fn items<'a>(object: &'a mut Object, field: &str) -> impl Iterator<Item = &'a mut Object> {
    let items = object.get_mut(field).and_then(Value::as_array_mut);
    items.into_iter().flatten().filter_map(Value::as_object_mut)
}

/// A quantity in the form in which Kubernetes prints it.
fn normalize(amount: &mut Value) {
    let text = amount.as_str().map_or_else(|| amount.to_string(), str::to_owned);
    if let Ok(quantity) = text.parse::<Quantity>() {
        *amount = quantity.to_string().into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(cluster: &Value) -> Value {
        super::read(cluster.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn some_fields_always_exist() {
        let metadata = json!({"name": "c1", "creationTimestamp": null});
        let status = json!({"conditions": null, "version": {}});
        assert_eq!(
            read(&json!({"metadata": {"name": "c1"}})),
            json!({"metadata": metadata, "spec": {"hubAcceptsClient": false}, "status": status}),
        );
    }

    #[test]
    fn other_fields_exist_only_if_they_are_not_empty() {
        let taint = |value: &str| json!({"key": "a", "value": value, "effect": "NoSelect", "timeAdded": "t"});
        let cluster = json!({
            "metadata": {"labels": {}, "annotations": {"a": ""}, "managedFields": [{}], "creationTimestamp": "t"},
            "spec": {"hubAcceptsClient": true, "leaseDurationSeconds": 0, "taints": [taint(""), taint("x")]},
            "status": {"conditions": [], "version": {"kubernetes": ""}, "clusterClaims": [{"name": "a", "value": ""}],
                "capacity": {}},
        });
        let expected = json!({
            "metadata": {"annotations": {"a": ""}, "creationTimestamp": "t"},
            "spec": {"hubAcceptsClient": true,
                "taints": [{"key": "a", "effect": "NoSelect", "timeAdded": "t"}, taint("x")]},
            "status": {"conditions": [], "version": {}, "clusterClaims": [{"name": "a"}]},
        });
        assert_eq!(read(&cluster), expected);
    }

    #[test]
    fn quantities_have_one_form() {
        let resources = json!({"cpu": "1000m", "pods": 110, "memory": "2048Mi", "odd": "x"});
        let read = read(&json!({"status": {"allocatable": resources}}));
        let expected = json!({"cpu": "1", "pods": "110", "memory": "2Gi", "odd": "x"});
        assert_eq!(read["status"]["allocatable"], expected);
    }
}
