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
    assert_eq!(errors(&[object("a"), object("b"), object("a")]), "ConfigMap n/a is listed twice");
    let version =
        |version: &str| json!({"apiVersion": format!("x.io/{version}"), "kind": "X", "metadata": {"name": "a"}});
    assert_eq!(errors(&[version("v1"), version("v2")]), "X a is listed twice");
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
    let metadata = json!({"name": "a", "namespace": "n", "annotations": {(annotations::ADDON_DELETION_ORPHAN): ""}});
    let policy = json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata});
    let items = read(&[policy.into(), object("b").into()]).unwrap();
    let rule = items[0].orphaning_rule().unwrap();
    assert_eq!((rule.group.as_str(), rule.resource.as_str()), ("networking.k8s.io", "networkpolicies"));
    assert_eq!((rule.namespace.as_str(), rule.name.as_str()), ("n", "a"));
    assert_eq!(items[1].orphaning_rule(), None);
}

#[test]
fn a_kind_of_one_letter_has_a_resource_too() {
    let metadata = json!({"name": "a", "annotations": {(annotations::ADDON_DELETION_ORPHAN): ""}});
    let items = read(&[json!({"apiVersion": "example.com/v1", "kind": "Y", "metadata": metadata}).into()]).unwrap();
    assert_eq!(items[0].orphaning_rule().unwrap().resource, "ys");
}

#[test]
fn metadata_is_as_the_api_server_keeps_it() {
    let mut value = object("a");
    let empty = json!({"creationTimestamp": null, "labels": {}, "annotations": {}, "generateName": "",
        "finalizers": [], "generation": 0, "clusterName": "unknown"});
    value["metadata"].as_object_mut().unwrap().extend(empty.as_object().unwrap().clone());
    assert_eq!(read(&[value.into()]).unwrap()[0].manifest.value(), object("a"));
    let mut labelled = object("a");
    labelled["metadata"]["labels"] = json!({"a": ""});
    let kept = read(&[labelled.clone().into()]).unwrap()[0].manifest.value();
    assert_eq!(kept, labelled);
    labelled["metadata"]["labels"] = json!({"a": 1});
    assert_eq!(read(&[labelled.clone().into()]).unwrap()[0].manifest.value(), labelled, "it is refused later");
}
