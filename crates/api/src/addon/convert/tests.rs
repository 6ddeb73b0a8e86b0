use serde_json::{Value, json};

use super::{ConvertError, convert};

const V1ALPHA1: &str = "addon.open-cluster-management.io/v1alpha1";
const V1BETA1: &str = "addon.open-cluster-management.io/v1beta1";
const NAMESPACE: &str = "addon.open-cluster-management.io/v1alpha1-install-namespace";
const KUBE: &str = "kubernetes.io/kube-apiserver-client";

fn addon(api_version: &str, more: &Value) -> Value {
    object(api_version, "ManagedClusterAddOn", more)
}

fn management(api_version: &str, more: &Value) -> Value {
    object(api_version, "ClusterManagementAddOn", more)
}

fn object(api_version: &str, kind: &str, more: &Value) -> Value {
    let mut object = json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": "a" } });
    object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    object
}

/// Checks the conversion in both directions.
#[track_caller]
fn assert_same(old: &Value, new: &Value) {
    assert_eq!(&convert(old.clone(), V1BETA1).unwrap(), new);
    assert_eq!(&convert(new.clone(), V1ALPHA1).unwrap(), old);
}

fn error(object: Value, to: &str) -> String {
    convert(object, to).unwrap_err().to_string()
}

#[test]
fn the_install_namespace_is_an_annotation_in_v1beta1() {
    let old = addon(V1ALPHA1, &json!({ "spec": { "installNamespace": "hello" } }));
    let metadata = json!({ "name": "a", "annotations": { NAMESPACE: "hello" } });
    let new = addon(V1BETA1, &json!({ "metadata": metadata, "spec": {}, "status": { "addOnMeta": {} } }));
    assert_same(&old, &new);
}

#[test]
fn other_annotations_stay() {
    let annotations = json!({ NAMESPACE: "hello", "mine": "1" });
    let new = addon(V1BETA1, &json!({ "metadata": { "name": "a", "annotations": annotations } }));
    let old = convert(new, V1ALPHA1).unwrap();
    assert_eq!(old["metadata"]["annotations"], json!({ "mine": "1" }));
    assert_eq!(old["spec"]["installNamespace"], "hello");
}

#[test]
fn a_namespace_that_cannot_be_one_is_passed_on_so_that_the_object_can_be_repaired() {
    let metadata = json!({ "name": "a", "annotations": { NAMESPACE: "No Namespace" } });
    let old = convert(addon(V1BETA1, &json!({ "metadata": metadata })), V1ALPHA1).unwrap();
    assert_eq!(old["spec"]["installNamespace"], "No Namespace");
    let empty = json!({ "name": "a", "annotations": { NAMESPACE: "" } });
    let old = convert(addon(V1BETA1, &json!({ "metadata": empty })), V1ALPHA1).unwrap();
    assert_eq!(old["spec"], json!({}));
}

#[test]
fn a_kind_of_configuration_without_a_default_has_a_reserved_name_in_v1beta1() {
    let default = json!({ "namespace": "fleet", "name": "global" });
    let supported = json!([
        { "group": "g", "resource": "with", "defaultConfig": default },
        { "group": "g", "resource": "without" },
    ]);
    let defaults = json!([
        { "group": "g", "resource": "with", "namespace": "fleet", "name": "global" },
        { "group": "g", "resource": "without", "name": "__reserved_no_default__" },
    ]);
    let old = management(V1ALPHA1, &json!({ "spec": { "supportedConfigs": supported } }));
    let new = management(V1BETA1, &json!({ "spec": { "defaultConfigs": defaults }, "status": {} }));
    assert_same(&old, &new);
}

#[test]
fn the_status_of_a_management_addon_spells_one_field_differently() {
    let references = json!([{ "group": "g", "resource": "r", "desiredConfig": { "name": "n", "specHash": "h" } }]);
    let old = json!({ "spec": {}, "status": { "defaultconfigReferences": references, "installProgressions": [] } });
    let new = json!({ "spec": {}, "status": { "defaultConfigReferences": references, "installProgressions": [] } });
    assert_same(&management(V1ALPHA1, &old), &management(V1BETA1, &new));
}

#[test]
fn the_deprecated_configuration_of_either_kind_is_kept_in_an_annotation() {
    let configuration = json!({ "crdName": "c", "lastObservedGeneration": 3 });
    let text = r#"{"crdName":"c","lastObservedGeneration":3}"#;
    let metadata = json!({ "name": "a", "annotations": { "addon.open-cluster-management.io/v1alpha1-addon-configuration": text } });
    let old = management(V1ALPHA1, &json!({ "spec": { "addOnConfiguration": configuration } }));
    let new = management(V1BETA1, &json!({ "metadata": metadata, "spec": {}, "status": {} }));
    assert_same(&old, &new);
    let old = addon(V1ALPHA1, &json!({ "spec": {}, "status": { "addOnConfiguration": configuration } }));
    let new = addon(V1BETA1, &json!({ "metadata": metadata, "spec": {}, "status": { "addOnMeta": {} } }));
    assert_same(&old, &new);
}

#[test]
fn an_annotation_that_holds_no_configuration_stays_where_it_is() {
    for text in ["mine", "{}", "[]", r#"{"crdName":3}"#, r#"{"lastObservedGeneration":"x"}"#] {
        let annotations = json!({ "addon.open-cluster-management.io/v1alpha1-addon-configuration": text });
        let more = json!({ "metadata": { "name": "a", "annotations": annotations }, "spec": {} });
        let old = convert(management(V1BETA1, &more), V1ALPHA1).unwrap();
        assert_eq!((&old["metadata"]["annotations"], &old["spec"]), (&annotations, &json!({})), "{text}");
        let old = convert(addon(V1BETA1, &more), V1ALPHA1).unwrap();
        assert_eq!((&old["metadata"]["annotations"], old.get("status")), (&annotations, None), "{text}");
    }
}

#[test]
fn a_reference_repeats_the_name_of_the_desired_configuration_in_v1alpha1() {
    let desired = json!({ "namespace": "fleet", "name": "global", "specHash": "h" });
    let old = json!({ "resource": "r", "name": "global", "namespace": "fleet", "desiredConfig": desired });
    let new = json!({ "resource": "r", "desiredConfig": desired });
    let old = addon(V1ALPHA1, &json!({ "spec": {}, "status": { "configReferences": [old] } }));
    let new = addon(V1BETA1, &json!({ "spec": {}, "status": { "addOnMeta": {}, "configReferences": [new] } }));
    assert_same(&old, &new);
    let nothing_desired = json!({ "configReferences": [{ "resource": "r", "desiredConfig": null }] });
    let old = convert(addon(V1BETA1, &json!({ "status": nothing_desired })), V1ALPHA1).unwrap();
    assert_eq!(old["status"]["configReferences"][0]["name"], "", "the field is required");
}

#[test]
fn registrations_are_told_apart_by_type_in_v1beta1_and_by_signer_in_v1alpha1() {
    let subject = json!({ "user": "u", "groups": ["g"] });
    let old = json!({
        "kubeClientDriver": "csr",
        "registrations": [
            { "signerName": KUBE, "subject": subject },
            { "signerName": "example.com/s", "subject": { "user": "u", "groups": ["g"], "organizationUnit": ["o"] } },
        ],
    });
    let custom = json!({ "user": "u", "groups": ["g"], "organizationUnits": ["o"] });
    let new = json!({
        "addOnMeta": {},
        "registrations": [
            { "type": "kubeClient", "kubeClient": { "subject": subject, "driver": "csr" } },
            { "type": "customSigner", "customSigner": { "signerName": "example.com/s", "subject": custom } },
        ],
    });
    assert_same(
        &addon(V1ALPHA1, &json!({ "spec": {}, "status": old })),
        &addon(V1BETA1, &json!({ "spec": {}, "status": new })),
    );
}

#[test]
fn the_driver_of_the_first_registration_at_the_api_server_is_that_of_all() {
    let kube = |settings: &Value| json!({ "type": "kubeClient", "kubeClient": settings });
    let custom = json!({ "type": "customSigner", "customSigner": { "signerName": "example.com/s" } });
    let drivers = |registrations: Value| {
        let new = addon(V1BETA1, &json!({ "status": { "registrations": registrations } }));
        let old = convert(new, V1ALPHA1).unwrap();
        let new = convert(old.clone(), V1BETA1).unwrap();
        let list = new["status"]["registrations"].as_array().unwrap().iter();
        (old["status"]["kubeClientDriver"].clone(), list.map(|r| r["kubeClient"]["driver"].clone()).collect::<Vec<_>>())
    };
    let (none, csr, token) = (json!({}), json!({ "driver": "csr" }), json!({ "driver": "token" }));
    let (all, each) = drivers(json!([custom, kube(&token), kube(&csr)]));
    assert_eq!((all, each), (json!("token"), vec![Value::Null, json!("token"), json!("token")]));
    let (all, each) = drivers(json!([kube(&none), kube(&csr)]));
    assert_eq!((all, each), (Value::Null, vec![Value::Null, Value::Null]));
}

#[test]
fn fields_from_the_future_pass_through() {
    let future = json!({ "new": [1, 2.5, null] });
    let spec = json!({ "future": future, "supportedConfigs": [{ "resource": "r", "future": future }] });
    let old = management(V1ALPHA1, &json!({ "spec": spec, "status": { "future": future } }));
    let again = convert(convert(old.clone(), V1BETA1).unwrap(), V1ALPHA1).unwrap();
    assert_eq!(again, old);
    let registration = json!({ "signerName": KUBE, "future": future });
    let old = addon(V1ALPHA1, &json!({ "spec": { "future": future }, "status": { "registrations": [registration] } }));
    let again = convert(convert(old.clone(), V1BETA1).unwrap(), V1ALPHA1).unwrap();
    assert_eq!(again, old);
}

#[test]
fn parts_of_objects_can_be_converted() {
    for version in [V1ALPHA1, V1BETA1] {
        for more in [json!({}), json!({ "spec": null, "status": null }), json!({ "spec": {}, "status": {} })] {
            for to in [V1ALPHA1, V1BETA1] {
                convert(addon(version, &more), to).unwrap();
                convert(management(version, &more), to).unwrap();
            }
        }
    }
    let part = management(V1ALPHA1, &json!({ "spec": { "supportedConfigs": [{ "defaultConfig": {} }] } }));
    let again = convert(convert(part.clone(), V1BETA1).unwrap(), V1ALPHA1).unwrap();
    assert_eq!(again, part);
}

#[test]
fn an_object_in_the_version_asked_for_stays_as_it_is() {
    let old = addon(V1ALPHA1, &json!({ "spec": { "installNamespace": "hello" } }));
    assert_eq!(convert(old.clone(), V1ALPHA1).unwrap(), old);
}

#[test]
fn other_kinds_and_versions_are_refused_by_name() {
    let message = error(object(V1ALPHA1, "AddOnTemplate", &json!({})), V1BETA1);
    assert!(message.contains("AddOnTemplate") && message.contains("only ClusterManagementAddOn"), "{message}");
    let message = error(addon(V1ALPHA1, &json!({})), "addon.open-cluster-management.io/v1");
    assert!(message.contains("cannot be converted to addon.open-cluster-management.io/v1:"), "{message}");
    let message = error(addon("example.com/v1alpha1", &json!({})), V1BETA1);
    assert!(message.contains("ManagedClusterAddOn example.com/v1alpha1"), "{message}");
}

#[test]
fn what_is_no_object_is_refused() {
    for value in [json!(null), json!([]), json!("a"), json!({}), json!({ "apiVersion": V1ALPHA1, "kind": 3 })] {
        assert_eq!(convert(value, V1BETA1).unwrap_err(), ConvertError::Untyped);
    }
    let no_metadata = json!({ "apiVersion": V1ALPHA1, "kind": "ManagedClusterAddOn" });
    assert_eq!(convert(no_metadata, V1BETA1).unwrap_err(), ConvertError::Untyped);
}

#[test]
fn a_field_of_the_wrong_type_is_named_with_its_path() {
    let message = error(addon(V1ALPHA1, &json!({ "spec": [] })), V1BETA1);
    assert_eq!(message, "spec is not an object");
    let message = error(addon(V1ALPHA1, &json!({ "spec": { "installNamespace": 1 } })), V1BETA1);
    assert_eq!(message, "spec.installNamespace is not a string");
    let message = error(addon(V1ALPHA1, &json!({ "status": { "registrations": [{}, 1] } })), V1BETA1);
    assert_eq!(message, "status.registrations[1] is not an object");
    let message = error(addon(V1BETA1, &json!({ "status": { "registrations": [{ "type": "Guess" }] } })), V1ALPHA1);
    assert_eq!(message, "status.registrations[0].type is not kubeClient or customSigner");
    let message = error(management(V1ALPHA1, &json!({ "spec": { "supportedConfigs": {} } })), V1BETA1);
    assert_eq!(message, "spec.supportedConfigs is not a list");
    let message = error(management(V1BETA1, &json!({ "metadata": { "annotations": 1 }, "spec": {} })), V1ALPHA1);
    assert_eq!(message, "metadata.annotations is not an object");
}
