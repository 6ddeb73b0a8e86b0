use ocm_runtime::feature_gates::{FeatureGates, Known};
use serde_json::{Value, json};

use super::super::{Admission, Webhook};
use crate::testing::{client_answered_with, now};

fn work(executor: &Value) -> Value {
    let manifest = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b"}});
    json!({
        "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": {"name": "w", "namespace": "cluster1"},
        "spec": {"workload": {"manifests": [manifest]}, "executor": executor}
    })
}

fn executor(name: &str) -> Value {
    let account = json!({"namespace": "team", "name": name});
    json!({"subject": {"type": "ServiceAccount", "serviceAccount": account}})
}

fn replica_set(manifests: &Value) -> Value {
    let template = json!({"workload": {"manifests": manifests}, "executor": executor("deployer")});
    json!({
        "apiVersion": "work.open-cluster-management.io/v1alpha1", "kind": "ManifestWorkReplicaSet",
        "metadata": {"name": "w", "namespace": "ns"}, "spec": {"manifestWorkTemplate": template}
    })
}

fn with(object: &Value, change: &Value) -> Value {
    let mut object = object.clone();
    ocm_apimachinery::merge::apply(&mut object, change);
    object
}

fn review(old: Option<&Value>, new: &Value) -> Vec<u8> {
    let gvk = json!({"group": "work.open-cluster-management.io", "version": "v1", "kind": new["kind"]});
    let gvr = json!({"group": "work.open-cluster-management.io", "version": "v1", "resource": "manifestworks"});
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "42", "kind": gvk, "resource": gvr, "name": "w", "object": new, "oldObject": old,
            "operation": if old.is_some() { "UPDATE" } else { "CREATE" },
            "userInfo": {"username": "jane", "groups": ["g"]},
        }
    })
    .to_string()
    .into_bytes()
}

/// Admission with these feature gates and no others, where the hub gives these answers about rights.
fn admission(gates: &[&str], answers: &[bool]) -> Admission {
    let review = |allowed: &bool| {
        let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {},
            "status": {"allowed": allowed}});
        (201, review)
    };
    let known = crate::feature_gates::known().into_iter().map(|gate| Known { built: true, ..gate });
    let given: Vec<_> = gates.iter().map(|gate| format!("{gate}=true")).collect();
    let gates = FeatureGates::parse(&known.collect::<Vec<_>>(), &given).unwrap();
    Admission::new(Some(client_answered_with(answers.iter().map(review).collect())), gates)
}

/// The refusal of a change; `None` if it is allowed. OCM's code for all is 400.
async fn refused(admission: &Admission, webhook: Webhook, old: Option<&Value>, new: &Value) -> Option<String> {
    let answer = admission.answer(webhook, &review(old, new), now()).await.unwrap();
    let response = serde_json::from_slice::<Value>(&answer.body).unwrap()["response"].clone();
    if response["allowed"] == true {
        return None;
    }
    assert_eq!(response["status"]["code"], 400, "{response}");
    assert_eq!(response["status"]["reason"], "BadRequest");
    response["status"]["message"].as_str().map(str::to_owned)
}

async fn work_refused(gates: &[&str], answers: &[bool], old: Option<&Value>, new: &Value) -> Option<String> {
    refused(&admission(gates, answers), Webhook::ValidateWork, old, new).await
}

#[tokio::test]
async fn a_work_without_an_executor_needs_no_right_unless_the_gate_is_on() {
    let new = work(&json!(null));
    assert_eq!(work_refused(&[], &[], None, &new).await, None);
    let gate = ["NilExecutorValidating"];
    assert_eq!(work_refused(&gate, &[true], None, &new).await, None);
    let message = work_refused(&gate, &[false], None, &new).await.unwrap();
    for part in ["user jane may not", "cluster1", "without spec.executor", "system:serviceaccount::klusterlet-work-sa"]
    {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert_eq!(work_refused(&gate, &[], Some(&new), &new).await, None, "it has had none before");
    let removed = work_refused(&gate, &[false], Some(&work(&executor("a"))), &new).await;
    assert!(removed.is_some_and(|message| message.contains("klusterlet-work-sa")));
}

#[tokio::test]
async fn an_executor_takes_the_right_to_use_it_when_it_is_set_or_changed() {
    let (plain, new) = (work(&json!(null)), work(&executor("deployer")));
    for old in [None, Some(&plain), Some(&work(&executor("other")))] {
        assert_eq!(work_refused(&[], &[true], old, &new).await, None);
        let message = work_refused(&[], &[false], old, &new).await.unwrap();
        for part in
            ["user jane may not", "team/deployer", "cluster1", "execute-as", "system:serviceaccount:team:deployer"]
        {
            assert!(message.contains(part), "{part}: {message}");
        }
    }
    let labelled = with(&new, &json!({"metadata": {"labels": {"a": "b"}}}));
    assert_eq!(work_refused(&[], &[], Some(&new), &labelled).await, None);
    assert_eq!(work_refused(&[], &[], Some(&new), &plain).await, None, "without the gate it can be removed");
    assert!(work_refused(&[], &[], None, &new).await.unwrap().contains("cannot find out"), "no answer is no right");
}

#[tokio::test]
async fn an_executor_that_is_no_service_account_is_refused_with_the_field() {
    for (executor, field) in [
        (json!({"subject": {"type": "User"}}), "spec.executor.subject.type is User"),
        (json!({"subject": {"type": "ServiceAccount"}}), "spec.executor.subject.serviceAccount is missing"),
        (json!({}), "spec.executor.subject.serviceAccount is missing"),
        (json!("deployer"), "spec.executor cannot be read"),
    ] {
        let message = work_refused(&[], &[], None, &work(&executor)).await.unwrap();
        assert!(message.starts_with(field), "{message}");
    }
}

#[tokio::test]
async fn manifests_are_checked_before_rights_and_on_every_update() {
    let empty = with(&work(&executor("a")), &json!({"spec": {"workload": {"manifests": []}}}));
    let labelled = with(&empty, &json!({"metadata": {"labels": {"a": "b"}}}));
    for old in [None, Some(&empty)] {
        let message = work_refused(&[], &[false], old, &labelled).await.unwrap();
        assert!(message.starts_with("spec.workload.manifests is empty"), "{message}");
    }
}

#[tokio::test]
async fn a_work_that_is_being_deleted_gets_rid_of_its_finalizer_whatever_is_in_it() {
    let deleted = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a"]},
        "spec": {"workload": {"manifests": []}}});
    let old = with(&work(&json!(null)), &deleted);
    let released = with(&old, &json!({"metadata": {"finalizers": []}}));
    assert_eq!(work_refused(&[], &[], Some(&old), &released).await, None);
    let edited = with(&old, &json!({"spec": {"manifestConfigs": []}}));
    assert!(work_refused(&[], &[], Some(&old), &edited).await.is_some());
}

#[tokio::test]
async fn the_limit_of_the_size_is_that_of_the_command_line() {
    let admission = admission(&[], &[]).with_manifest_limit(50);
    let message = refused(&admission, Webhook::ValidateWork, None, &work(&json!(null))).await.unwrap();
    assert!(message.contains("and the limit is 50") && message.contains("--manifestLimit"), "{message}");
}

const SETS: &str = "ManifestWorkReplicaSet";

async fn set_refused(gates: &[&str], answers: &[bool], old: Option<&Value>, new: &Value) -> Option<String> {
    refused(&admission(gates, answers), Webhook::ValidateReplicaSet, old, new).await
}

#[tokio::test]
async fn the_manifests_of_a_replica_set_are_checked_as_those_of_works_are() {
    let config_map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    assert_eq!(set_refused(&[SETS], &[true], None, &replica_set(&json!([config_map]))).await, None);
    for (manifests, fault) in [
        (json!([]), " is empty"),
        (json!([{"apiVersion": "v1", "kind": "ConfigMap"}]), "[0].metadata.name is missing"),
        (json!([config_map, config_map]), "[1] is the same object as [0]"),
    ] {
        let message = set_refused(&[SETS], &[], None, &replica_set(&manifests)).await.unwrap();
        assert!(message.starts_with(&format!("spec.manifestWorkTemplate.workload.manifests{fault}")), "{message}");
    }
}

/// The hub creates the works, and may use every executor.
#[tokio::test]
async fn the_author_of_a_replica_set_needs_the_right_to_its_executor_in_all_namespaces() {
    let manifest = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    let new = replica_set(&json!([manifest]));
    let other = with(&new, &json!({"spec": {"manifestWorkTemplate": {"executor": executor("other")}}}));
    let plain = with(&new, &json!({"spec": {"manifestWorkTemplate": {"executor": null}}}));
    let elsewhere = with(&new, &json!({"spec": {"placementRefs": [{"name": "all"}]}}));
    for old in [None, Some(&plain), Some(&other), Some(&elsewhere)] {
        assert_eq!(set_refused(&[SETS], &[true], old, &new).await, None);
        let message = set_refused(&[SETS], &[false], old, &new).await.unwrap();
        for part in [
            "user jane may not apply a work in all namespaces as executor team/deployer (spec.manifestWorkTemplate.executor)",
            "execute-as",
            "for the name system:serviceaccount:team:deployer in all namespaces (by a ClusterRoleBinding)",
        ] {
            assert!(message.contains(part), "{part}: {message}");
        }
    }
    assert!(set_refused(&[SETS], &[], None, &new).await.unwrap().contains("cannot find out"), "no answer is no right");
    let labelled = with(&new, &json!({"metadata": {"labels": {"a": "b"}, "finalizers": ["c"]}}));
    assert_eq!(set_refused(&[SETS], &[], Some(&new), &labelled).await, None, "it names the executor already");
    assert_eq!(set_refused(&[SETS], &[], Some(&new), &plain).await, None);
    let user = json!({"spec": {"manifestWorkTemplate": {"executor": {"subject": {"type": "User"}}}}});
    let message = set_refused(&[SETS], &[], None, &with(&new, &user)).await.unwrap();
    assert!(message.starts_with("spec.manifestWorkTemplate.executor.subject.type is User"), "{message}");
    let ending = with(&other, &json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
    assert_eq!(set_refused(&[SETS], &[], Some(&ending), &ending).await, None, "its deletion is not held up");
}

#[tokio::test]
async fn a_replica_set_without_an_executor_takes_the_right_to_the_default_one_if_the_gate_is_on() {
    let manifest = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    let new = with(&replica_set(&json!([manifest])), &json!({"spec": {"manifestWorkTemplate": {"executor": null}}}));
    assert_eq!(set_refused(&[SETS], &[], None, &new).await, None);
    let gates = [SETS, "NilExecutorValidating"];
    assert_eq!(set_refused(&gates, &[true], None, &new).await, None);
    let message = set_refused(&gates, &[false], None, &new).await.unwrap();
    assert!(message.contains("for the name system:serviceaccount::klusterlet-work-sa in all namespaces"), "{message}");
    assert_eq!(set_refused(&gates, &[], Some(&new), &new).await, None);
}

#[tokio::test]
async fn replica_sets_are_checked_only_with_their_feature_gate() {
    let is_served =
        |gates: &[&str]| admission(gates, &[]).webhooks().any(|webhook| webhook == Webhook::ValidateReplicaSet);
    assert!(is_served(&["ManifestWorkReplicaSet"]) && !is_served(&[]));
    assert!(admission(&[], &[]).webhooks().any(|webhook| webhook == Webhook::ValidateWork));
}
