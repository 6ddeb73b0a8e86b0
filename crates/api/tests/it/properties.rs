//! Whatever a schema allows, its type keeps.

use std::collections::BTreeMap;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Map, Value, json};

use crate::crds::every;
use crate::kinds;

/// Texts that are left out when they are empty: records of old agents lack it, and newer agents never write it empty.
const LEFT_OUT: [&str; 1] = [".spec.agentID"];

/// A type whose version hubs of OCM do not serve, and so no definition of ours does.
const NOT_SERVED: (&str, &str) = ("addon.open-cluster-management.io/v1beta1", "AddOnTemplate");

#[test]
fn every_kind_in_every_version_has_a_definition_and_a_type() {
    let defined = versions().into_iter().map(|(api_version, kind, _)| (api_version, kind));
    let mut defined: Vec<(String, String)> = defined.collect();
    let types = kinds::all().into_iter().filter(|kind| (kind.api_version, kind.kind) != NOT_SERVED);
    let types = types.map(|kind| (kind.api_version.to_owned(), kind.kind.to_owned()));
    let mut types: Vec<(String, String)> = types.collect();
    defined.sort();
    types.sort();
    assert_eq!(defined, types);
}

#[test]
fn objects_that_the_schemas_allow_lose_nothing() {
    for (api_version, kind, schema) in versions() {
        let objects = object(&api_version, &kind, &schema);
        let mut runner = TestRunner::new(Config { cases: 48, failure_persistence: None, ..Config::default() });
        let checked = runner.run(&objects, |object| {
            let again = (kinds::of(&object).again)(&object).map_err(|error| TestCaseError::fail(error.to_string()))?;
            let lost = lost("", &object, &again);
            prop_assert!(lost.is_empty(), "{lost:#?}");
            Ok(())
        });
        checked.unwrap_or_else(|error| panic!("{api_version} {kind}: {error}"));
    }
}

/// API version, kind and schema of every version of every definition.
pub(crate) fn versions() -> Vec<(String, String, Value)> {
    let mut versions = Vec::new();
    for crd in every() {
        let spec = crd.definition.spec;
        for version in spec.versions {
            let api_version = format!("{}/{}", spec.group, version.name);
            let schema = serde_json::to_value(version.schema.unwrap()).unwrap()["openAPIV3Schema"].take();
            versions.push((api_version, spec.names.kind.clone(), schema));
        }
    }
    versions
}

pub(crate) fn object(api_version: &str, kind: &str, schema: &Value) -> BoxedStrategy<Value> {
    let mut schema = schema.clone();
    let type_meta = json!({ "apiVersion": api_version, "kind": kind });
    for known in ["apiVersion", "kind", "metadata"] {
        schema["properties"].as_object_mut().unwrap().remove(known);
    }
    let metadata = btree_map("[a-z]{1,8}", "[a-z]{0,8}", 1..3);
    let parts = (metadata, value(&schema));
    let whole = parts.prop_map(move |(labels, mut object)| {
        let fields = object.as_object_mut().unwrap();
        fields.extend(type_meta.as_object().unwrap().clone());
        fields.insert("metadata".to_owned(), json!({ "name": "a", "labels": labels }));
        object
    });
    whole.boxed()
}

/// Values of the types that a schema names, with unknown values among those of enums. Patterns and limits are left alone:
/// it is not a type's business to refuse anything.
fn value(schema: &Value) -> BoxedStrategy<Value> {
    if schema["x-kubernetes-preserve-unknown-fields"] == true {
        return btree_map("[a-z]{1,4}", anything(), 1..3).prop_map(|fields| json!(fields)).boxed();
    }
    if schema["x-kubernetes-int-or-string"] == true {
        return int_or_string(schema);
    }
    match schema["type"].as_str().unwrap() {
        "object" if schema.get("additionalProperties").is_some() => {
            let entries = btree_map("[a-z]{1,8}", value(&schema["additionalProperties"]), 0..3);
            entries.prop_map(|entries| json!(entries)).boxed()
        }
        "object" => fields(schema),
        "array" => vec(value(&schema["items"]), 0..3).prop_map(Value::Array).boxed(),
        "string" => string(schema),
        "integer" if schema["format"] == "int32" => any::<i32>().prop_map(|number| json!(number)).boxed(),
        "integer" => any::<i64>().prop_map(|number| json!(number)).boxed(),
        "boolean" => any::<bool>().prop_map(|yes| json!(yes)).boxed(),
        other => panic!("no values of type {other}"),
    }
}

/// Kubernetes' quantities may be numbers too, but are written as text.
fn int_or_string(schema: &Value) -> BoxedStrategy<Value> {
    let quantity = schema["pattern"].as_str().is_some_and(|pattern| pattern.contains("KMGTPE"));
    match quantity {
        true => select(vec!["100m", "2Gi", "1"]).prop_map(|text| json!(text)).boxed(),
        false => {
            prop_oneof![any::<i32>().prop_map(|number| json!(number)), Just(json!("25%")), Just(json!("3"))].boxed()
        }
    }
}

fn fields(schema: &Value) -> BoxedStrategy<Value> {
    let required = |name: &String| schema["required"].as_array().is_some_and(|names| names.contains(&json!(name)));
    let properties = schema["properties"].as_object().cloned().unwrap_or_default();
    let mut all = Just(Map::new()).boxed();
    for (name, property) in properties {
        let field = if required(&name) {
            value(&property).prop_map(Some).boxed()
        } else {
            proptest::option::of(value(&property)).boxed()
        };
        let add = move |(mut fields, field): (Map<String, Value>, Option<Value>)| {
            fields.extend(field.map(|value| (name.clone(), value)));
            fields
        };
        all = (all, field).prop_map(add).boxed();
    }
    all.prop_map(Value::Object).boxed()
}

fn string(schema: &Value) -> BoxedStrategy<Value> {
    if let Some(known) = schema["enum"].as_array() {
        let mut values = known.clone();
        values.push(json!("FromTheFuture"));
        return select(values).boxed();
    }
    match schema["format"].as_str() {
        Some("date-time") => select(vec![json!("2026-11-21T16:08:42Z"), json!("1999-12-31T23:59:59Z")]).boxed(),
        Some("byte") => select(vec![json!(""), json!("Q0E="), json!("AAEC")]).boxed(),
        Some(other) => panic!("no strings of format {other}"),
        None => "[a-zA-Z0-9 ./:äß-]{0,8}".prop_map(Value::String).boxed(),
    }
}

fn anything() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::from), any::<i64>().prop_map(Value::from)];
    let tree = leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            btree_map("[a-z]{0,3}", inner, 0..3).prop_map(|fields: BTreeMap<String, Value>| json!(fields)),
        ]
    });
    tree.boxed()
}

/// Paths whose value differs between `before` and `after`. Empty values may be missing, as Go omits them.
pub(crate) fn lost(path: &str, before: &Value, after: &Value) -> Vec<String> {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            let check = |(name, value): (&String, &Value)| {
                let path = format!("{path}.{name}");
                match after.get(name) {
                    Some(there) => lost(&path, value, there),
                    None if says_nothing(value) => Vec::new(),
                    None if value == "" && LEFT_OUT.contains(&path.as_str()) => Vec::new(),
                    None => vec![format!("{path}: {value}")],
                }
            };
            before.iter().flat_map(check).collect()
        }
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            let items = before.iter().zip(after).enumerate();
            items.flat_map(|(index, (before, after))| lost(&format!("{path}[{index}]"), before, after)).collect()
        }
        (before, after) if before == after => Vec::new(),
        (before, after) => vec![format!("{path}: {before} became {after}")],
    }
}

/// An empty list or map, and an object with nothing else in it.
fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(says_nothing),
        _ => false,
    }
}
