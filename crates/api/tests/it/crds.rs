//! The generated CRDs equal OCM's, field by field.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use ocm_api::crds::{Crd, Side};
use serde_json::Value;

use crate::upstream;

/// Differences that must stay, as `<CRD name><path>`, each with its reason. None so far.
const ACCEPTED: [(&str, &str); 0] = [];

#[test]
fn every_definition_equals_upstreams_in_all_but_descriptions() {
    let mut differences = Vec::new();
    for Crd { definition, .. } in ocm_api::crds::all().unwrap() {
        let name = definition.metadata.name.clone().unwrap();
        let ours = comparable(serde_json::to_value(&definition).unwrap());
        let theirs = comparable(upstream::crd(&name));
        compare(&name, &theirs, &ours, &mut differences);
    }
    let unexpected: Vec<&String> =
        differences.iter().filter(|line| !ACCEPTED.iter().any(|(path, _)| line.starts_with(path))).collect();
    assert!(unexpected.is_empty(), "{} differences:\n{unexpected:#?}", unexpected.len());
}

#[test]
fn every_definition_names_a_side_and_a_file() {
    let all = ocm_api::crds::all().unwrap();
    let on = |side| -> Vec<String> { all.iter().filter(|crd| crd.side == side).map(Crd::file_name).collect() };
    let hub = [
        "cluster.open-cluster-management.io_managedclusters.yaml",
        "cluster.open-cluster-management.io_managedclustersets.yaml",
        "work.open-cluster-management.io_manifestworks.yaml",
    ];
    let managed = [
        "cluster.open-cluster-management.io_clusterclaims.yaml",
        "work.open-cluster-management.io_appliedmanifestworks.yaml",
    ];
    assert_eq!(on(Side::Hub), hub);
    assert_eq!(on(Side::Managed), managed);
}

#[test]
fn every_part_of_a_schema_has_a_description() {
    for Crd { definition, .. } in ocm_api::crds::all().unwrap() {
        let value = serde_json::to_value(&definition).unwrap();
        let schema = &value["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        let mut missing = Vec::new();
        undescribed("", schema, &mut missing);
        assert!(missing.is_empty(), "{}: {missing:#?}", definition.metadata.name.unwrap());
    }
}

fn undescribed(path: &str, schema: &Value, missing: &mut Vec<String>) {
    if path == ".metadata" {
        // The API server refuses a description there.
        assert_eq!(schema, &serde_json::json!({"type": "object"}));
        return;
    }
    if schema.get("description").is_none() && !path.ends_with("[]") {
        missing.push(path.to_owned());
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        undescribed(&format!("{path}.{name}"), property, missing);
    }
    if schema.get("items").is_some() {
        undescribed(&format!("{path}[]"), &schema["items"], missing);
    }
}

/// A definition in one spelling: read into Kubernetes' type, which knows every field, and without what is not compared.
fn comparable(value: Value) -> Value {
    let typed: CustomResourceDefinition = serde_json::from_value(without_descriptions(value)).unwrap();
    let mut value = serde_json::to_value(typed).unwrap();
    value.as_object_mut().unwrap().remove("status");
    value
}

fn without_descriptions(value: Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .into_iter()
            .filter(|(key, value)| !(key == "description" && value.is_string()))
            .map(|(key, value)| (key, without_descriptions(value)))
            .collect(),
        Value::Array(items) => items.into_iter().map(without_descriptions).collect(),
        other => other,
    }
}

fn compare(path: &str, theirs: &Value, ours: &Value, differences: &mut Vec<String>) {
    match (theirs, ours) {
        (Value::Object(left), Value::Object(right)) => {
            let keys: std::collections::BTreeSet<&String> = left.keys().chain(right.keys()).collect();
            for key in keys {
                let path = format!("{path}.{key}");
                match (left.get(key), right.get(key)) {
                    (Some(left), Some(right)) => compare(&path, left, right, differences),
                    (left, right) => differences.push(format!("{path}: upstream {left:?}, ours {right:?}")),
                }
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() && !path.ends_with(".required") => {
            for (index, (left, right)) in left.iter().zip(right).enumerate() {
                compare(&format!("{path}[{index}]"), left, right, differences);
            }
        }
        (left, right) if sorted(path, left) == sorted(path, right) => {}
        (left, right) => differences.push(format!("{path}: upstream {left}, ours {right}")),
    }
}

/// `required` is a set.
fn sorted(path: &str, value: &Value) -> Value {
    let mut value = value.clone();
    if let (true, Value::Array(items)) = (path.ends_with(".required"), &mut value) {
        items.sort_by_key(ToString::to_string);
    }
    value
}
