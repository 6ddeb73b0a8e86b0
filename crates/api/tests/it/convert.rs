//! Conversion between the versions of add-ons loses nothing but what its documentation names.

use ocm_api::addon::convert::convert;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use crate::properties::{lost, object, versions};
use crate::{kinds, round_trip};

const V1ALPHA1: &str = "addon.open-cluster-management.io/v1alpha1";
const V1BETA1: &str = "addon.open-cluster-management.io/v1beta1";
const KUBE: &str = "kubernetes.io/kube-apiserver-client";
const NONE: &str = "__reserved_no_default__";

/// What a running OCM left behind, as its own webhook showed it.
const OBSERVED: &str = include_str!("fixtures/addons-of-ocm.yaml");

fn is_converted(object: &Value) -> bool {
    [V1ALPHA1, V1BETA1].iter().any(|version| object["apiVersion"] == *version)
        && ["ClusterManagementAddOn", "ManagedClusterAddOn"].iter().any(|kind| object["kind"] == *kind)
}

fn other(object: &Value) -> &'static str {
    if object["apiVersion"] == V1ALPHA1 { V1BETA1 } else { V1ALPHA1 }
}

fn there_and_back(object: &Value) -> (Value, Value) {
    let there = convert(object.clone(), other(object)).unwrap_or_else(|error| panic!("{error}: {object}"));
    let own = object["apiVersion"].as_str().unwrap();
    let back = convert(there.clone(), own).unwrap_or_else(|error| panic!("{error}: {there}"));
    (there, back)
}

/// The object without what is lost according to the documentation of the conversion.
fn without_losses(mut object: Value) -> Value {
    let old = object["apiVersion"] == V1ALPHA1;
    for config in list(&mut object, "/spec/defaultConfigs") {
        if config["name"] == NONE {
            config.as_object_mut().unwrap().remove("namespace");
        }
    }
    for reference in list(&mut object, "/status/configReferences").filter(|_| old) {
        reference.as_object_mut().unwrap().remove("name");
        reference.as_object_mut().unwrap().remove("namespace");
    }
    // The pattern of the field, which generated objects leave alone, has no empty namespace.
    if object["spec"]["installNamespace"] == "" {
        object["spec"].as_object_mut().unwrap().remove("installNamespace");
    }
    let mut driver = None;
    let mut at_api_server = false;
    for registration in list(&mut object, "/status/registrations") {
        if old {
            at_api_server |= registration["signerName"] == KUBE;
            if registration["signerName"] == KUBE && registration["subject"].is_object() {
                registration["subject"].as_object_mut().unwrap().remove("organizationUnit");
            }
        } else {
            one_type(registration, &mut driver);
        }
    }
    if old && !at_api_server && object.get("status").is_some() {
        object["status"].as_object_mut().unwrap().remove("kubeClientDriver");
    }
    object
}

/// A registration of v1beta1 with the settings of its own type only, and the driver of the first.
fn one_type(registration: &mut Value, first: &mut Option<Option<Value>>) {
    let fields = registration.as_object_mut().unwrap();
    if fields["type"] == "customSigner" {
        fields.remove("kubeClient");
        return;
    }
    fields.remove("customSigner");
    let settings = fields.entry("kubeClient").or_insert_with(|| json!({})).as_object_mut().unwrap();
    let own = settings.remove("driver");
    if let Some(driver) = first.get_or_insert(own) {
        settings.insert("driver".to_owned(), driver.clone());
    }
}

fn list<'a>(object: &'a mut Value, path: &str) -> impl Iterator<Item = &'a mut Value> {
    object.pointer_mut(path).and_then(Value::as_array_mut).into_iter().flatten()
}

/// Generated objects hold what the conversion goes by: both kinds of signers, known types, reserved names.
fn realistic(mut object: Value, choices: &[bool]) -> Value {
    let mut choices = choices.iter().cycle();
    let mut yes = || *choices.next().unwrap();
    for registration in list(&mut object, "/status/registrations") {
        if registration.get("signerName").is_some() && yes() {
            registration["signerName"] = json!(KUBE);
        }
        if registration.get("type").is_some() {
            registration["type"] = json!(if yes() { "kubeClient" } else { "customSigner" });
        }
    }
    for config in list(&mut object, "/spec/defaultConfigs") {
        if yes() {
            config["name"] = json!(NONE);
        }
    }
    if object["apiVersion"] == V1BETA1 && object["kind"] == "ManagedClusterAddOn" && yes() {
        object["metadata"]["annotations"] =
            json!({ "addon.open-cluster-management.io/v1alpha1-install-namespace": "hello", "mine": "1" });
    }
    object
}

#[test]
fn generated_objects_lose_nothing_on_the_way_to_the_other_version_and_back() {
    let mut checked = 0;
    for (api_version, kind, schema) in versions() {
        if !is_converted(&json!({ "apiVersion": api_version, "kind": kind })) {
            continue;
        }
        let objects = (object(&api_version, &kind, &schema), prop::collection::vec(any::<bool>(), 8));
        let objects = objects.prop_map(|(object, choices)| realistic(object, &choices));
        let mut runner = TestRunner::new(Config { cases: 200, failure_persistence: None, ..Config::default() });
        let outcome = runner.run(&objects, |object| {
            let (there, back) = there_and_back(&object);
            let lost = lost("", &without_losses(object), &back);
            prop_assert!(lost.is_empty(), "{lost:#?}\n{there:#}");
            // What the types of the other version cannot read, controllers cannot either.
            let read = (kinds::of(&there).again)(&there);
            prop_assert!(read.is_ok(), "{read:?}\n{there:#}");
            Ok(())
        });
        outcome.unwrap_or_else(|error| panic!("{api_version} {kind}: {error}"));
        checked += 1;
    }
    assert_eq!(checked, 4);
}

#[test]
fn what_ocm_left_behind_is_the_same_after_a_round_trip() {
    let objects = ocm_apimachinery::yaml::from_str_multi::<Value>(OBSERVED).unwrap();
    assert_eq!(objects.len(), 5);
    for object in objects {
        let (there, back) = there_and_back(&object);
        assert_eq!(back, object, "{there:#}");
        let (_, there_again) = there_and_back(&there);
        assert_eq!(there_again, there);
    }
}

#[test]
fn objects_with_every_field_lose_nothing() {
    let objects: Vec<Value> = round_trip::fixtures().into_iter().filter(is_converted).collect();
    assert_eq!(objects.len(), 4);
    for object in objects {
        let (there, back) = there_and_back(&object);
        let lost = lost("", &without_losses(object), &back);
        assert!(lost.is_empty(), "{lost:#?}\n{there:#}");
    }
}
