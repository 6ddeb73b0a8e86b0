use ocm_api::feature_gates;
use serde_json::json;

use super::*;
use crate::testing::{client_answered_with, now};

const USER: &str = "jane";

/// A review of a change: created where there is no old object.
fn review(version: &str, old: Option<&Value>, new: &Value) -> Vec<u8> {
    let name = &new["metadata"]["name"];
    let gvk = json!({"group": "cluster.open-cluster-management.io", "version": "v1", "kind": new["kind"]});
    let gvr = json!({"group": "cluster.open-cluster-management.io", "version": "v1", "resource": "x"});
    json!({
        "apiVersion": format!("admission.k8s.io/{version}"), "kind": "AdmissionReview",
        "request": {
            "uid": "42", "kind": gvk, "resource": gvr, "name": name, "object": new, "oldObject": old,
            "operation": if old.is_some() { "UPDATE" } else { "CREATE" },
            "userInfo": {"username": USER, "uid": "7", "groups": ["g"], "extra": {"k": ["v"]}},
        }
    })
    .to_string()
    .into_bytes()
}

fn cluster(more: &Value) -> Value {
    let mut cluster = json!({"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": {"name": "c1"}, "spec": {"hubAcceptsClient": false}});
    ocm_apimachinery::merge::apply(&mut cluster, more);
    cluster
}

fn in_set(set: &str) -> Value {
    cluster(&json!({"metadata": {"labels": {"cluster.open-cluster-management.io/clusterset": set}}}))
}

fn binding(name: &str, set: &str) -> Value {
    json!({"apiVersion": "cluster.open-cluster-management.io/v1beta2", "kind": "ManagedClusterSetBinding",
        "metadata": {"name": name, "namespace": "ns"}, "spec": {"clusterSet": set}})
}

fn accepted() -> Value {
    cluster(&json!({"spec": {"hubAcceptsClient": true}}))
}

/// What the hub answers to a SubjectAccessReview.
fn says(allowed: bool) -> (u16, Value) {
    (
        201,
        json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {}, "status": {"allowed": allowed}}),
    )
}

fn not_found() -> (u16, Value) {
    (404, json!({"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404, "message": "not found"}))
}

fn namespace(phase: &str) -> (u16, Value) {
    (200, json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "c1"}, "status": {"phase": phase}}))
}

/// The response to a change, when the hub gives these answers.
async fn response(webhook: Webhook, old: Option<&Value>, new: &Value, answers: Vec<(u16, Value)>) -> Value {
    let gates = FeatureGates::parse(&crate::feature_gates::known(), &[]).unwrap();
    let admission = Admission::new(Some(client_answered_with(answers)), gates);
    respond(&admission, webhook, &review("v1", old, new)).await
}

async fn respond(admission: &Admission, webhook: Webhook, body: &[u8]) -> Value {
    let answer = admission.answer(webhook, body, now()).await.unwrap();
    serde_json::from_slice::<Value>(&answer.body).unwrap()["response"].clone()
}

/// The code and message with which a change is refused.
async fn refused(webhook: Webhook, old: Option<&Value>, new: &Value, answers: Vec<(u16, Value)>) -> (u64, String) {
    let response = response(webhook, old, new, answers).await;
    assert_eq!(response["allowed"], false, "{response}");
    let status = &response["status"];
    (status["code"].as_u64().unwrap(), status["message"].as_str().unwrap().to_owned())
}

async fn allowed(webhook: Webhook, old: Option<&Value>, new: &Value, answers: Vec<(u16, Value)>) {
    let response = response(webhook, old, new, answers).await;
    assert_eq!(response["allowed"], true, "{response}");
}

/// The cluster as the mutating webhook leaves it.
async fn completed(old: Option<&Value>, new: &Value) -> Value {
    let response = response(Webhook::MutateCluster, old, new, vec![]).await;
    assert_eq!(response["allowed"], true, "{response}");
    let mut cluster = new.clone();
    if let Some(patch) = response.get("patch") {
        assert_eq!(response["patchType"], "JSONPatch");
        let bytes: Vec<u8> = serde_json::from_value(patch.clone()).unwrap();
        json_patch::patch(&mut cluster, &serde_json::from_slice::<json_patch::Patch>(&bytes).unwrap()).unwrap();
    }
    cluster
}

#[tokio::test]
async fn a_review_is_answered_in_its_own_version_and_with_its_uid() {
    let admission = Admission::new(None, FeatureGates::default());
    for version in webhooks::REVIEW_VERSIONS {
        let body = review(version, None, &cluster(&json!({})));
        let answer = admission.answer(Webhook::ValidateCluster, &body, now()).await.unwrap();
        let review: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(review["apiVersion"], format!("admission.k8s.io/{version}"));
        assert_eq!((&review["kind"], &review["response"]["uid"]), (&json!("AdmissionReview"), &json!("42")));
        assert!(review.get("request").is_none());
    }
}

#[tokio::test]
async fn what_is_no_review_is_refused() {
    let admission = Admission::new(None, FeatureGates::default());
    let conversion = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview"}).to_string();
    let empty = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}).to_string();
    for (body, cause) in
        [("{", "is no AdmissionReview"), (&conversion, "ConversionReview of"), (&empty, "has no request")]
    {
        let error = admission.answer(Webhook::ValidateCluster, body.as_bytes(), now()).await.unwrap_err().to_string();
        assert!(error.contains(cause), "{error}");
    }
}

#[tokio::test]
async fn an_object_of_another_shape_is_refused_with_the_field() {
    let odd = cluster(&json!({"spec": {"leaseDurationSeconds": "long"}}));
    let (code, message) = refused(Webhook::ValidateCluster, None, &odd, vec![]).await;
    assert_eq!(code, 400);
    assert!(message.contains("long"), "{message}");
}

#[tokio::test]
async fn a_cluster_without_a_set_joins_the_default_one() {
    let label = "/metadata/labels/cluster.open-cluster-management.io~1clusterset";
    for new in [cluster(&json!({})), in_set("")] {
        assert_eq!(completed(None, &new).await.pointer(label), Some(&json!("default")));
        assert_eq!(completed(Some(&new), &new).await.pointer(label), Some(&json!("default")));
    }
    assert_eq!(completed(None, &in_set("mine")).await, in_set("mine"));
    let off =
        FeatureGates::parse(&crate::feature_gates::known(), &[format!("{}=false", feature_gates::DEFAULT_CLUSTER_SET)]);
    let admission = Admission::new(None, off.unwrap());
    let response = respond(&admission, Webhook::MutateCluster, &review("v1", None, &cluster(&json!({})))).await;
    assert_eq!((&response["allowed"], response.get("patch")), (&json!(true), None));
}

#[tokio::test]
async fn taints_get_their_times_and_times_of_users_are_refused_by_key() {
    let taint = |time: Value| json!({"spec": {"taints": [{"key": "k", "effect": "NoSelect", "timeAdded": time}]}});
    let created = completed(None, &cluster(&taint(json!("2020-01-01T00:00:00Z")))).await;
    assert_eq!(created.pointer("/spec/taints/0/timeAdded"), Some(&json!("2027-01-15T08:00:00Z")));
    let (old, new) = (cluster(&taint(Value::Null)), cluster(&taint(json!("2020-01-01T00:00:00Z"))));
    let (code, message) = refused(Webhook::MutateCluster, Some(&old), &new, vec![]).await;
    assert_eq!(code, 400);
    assert!(message.contains("timeAdded") && message.ends_with(": k"), "{message}");
}

#[tokio::test]
async fn a_cluster_that_cannot_be_is_refused_with_every_error() {
    let mut odd = cluster(&json!({"spec": {"leaseDurationSeconds": -1, "managedClusterClientConfigs": [
        {"url": "https://fine:6443"}, {"url": "http://a"}, {"url": "https://"}]}}));
    odd["metadata"]["name"] = json!("kube-system");
    let (code, message) = refused(Webhook::ValidateCluster, None, &odd, vec![]).await;
    assert_eq!(code, 400);
    for cause in [
        "metadata.name: kube-system",
        "managedClusterClientConfigs[1].url",
        "managedClusterClientConfigs[2].url",
        "leaseDurationSeconds",
    ] {
        assert!(message.contains(cause), "{cause}: {message}");
    }
    assert!(!message.contains("Configs[0]"), "{message}");
    let mut edited = odd.clone();
    edited["metadata"]["annotations"] = json!({"a": "b"});
    allowed(Webhook::ValidateCluster, Some(&odd), &edited, vec![]).await;
}

#[tokio::test]
async fn accepting_a_cluster_takes_the_right_to_and_denying_it_does_not() {
    let (new, old) = (accepted(), cluster(&json!({})));
    for old in [None, Some(&old)] {
        allowed(Webhook::ValidateCluster, old, &new, vec![not_found(), says(true)]).await;
        let (code, message) =
            refused(Webhook::ValidateCluster, old, &new, vec![namespace("Active"), says(false)]).await;
        assert_eq!(code, 403);
        assert!(message.starts_with("user jane may not accept cluster c1"), "{message}");
    }
    allowed(Webhook::ValidateCluster, Some(&new), &old, vec![]).await;
    allowed(Webhook::ValidateCluster, Some(&new), &new, vec![]).await;
}

#[tokio::test]
async fn a_cluster_is_not_accepted_while_its_namespace_is_deleted_or_nobody_can_say() {
    let (code, message) = refused(Webhook::ValidateCluster, None, &accepted(), vec![namespace("Terminating")]).await;
    assert_eq!(code, 403);
    assert!(message.contains("namespace c1 is terminating"), "{message}");
    let unavailable = (500, json!({"kind": "Status", "code": 500, "message": "no"}));
    let (code, _) = refused(Webhook::ValidateCluster, None, &accepted(), vec![unavailable.clone()]).await;
    assert_eq!(code, 403);
    let (code, message) = refused(Webhook::ValidateCluster, None, &accepted(), vec![not_found(), unavailable]).await;
    assert_eq!(code, 403);
    assert!(message.contains("cannot find out whether user jane may"), "{message}");
    let without_client = Admission::new(None, FeatureGates::default());
    let response = respond(&without_client, Webhook::ValidateCluster, &review("v1", None, &accepted())).await;
    assert_eq!(response["allowed"], false);
}

#[tokio::test]
async fn moving_a_cluster_takes_rights_on_both_sets() {
    for (old, new, answers, set) in [
        (Some(in_set("a")), in_set("b"), vec![says(false)], "a"),
        (Some(in_set("a")), in_set("b"), vec![says(true), says(false)], "b"),
        (Some(in_set("a")), cluster(&json!({})), vec![says(false)], "a"),
        (None, in_set("b"), vec![says(false)], "b"),
    ] {
        let (code, message) = refused(Webhook::ValidateCluster, old.as_ref(), &new, answers).await;
        assert_eq!(code, 403);
        assert!(message.ends_with(&format!("for {set}")), "{message}");
    }
    allowed(Webhook::ValidateCluster, Some(&in_set("a")), &in_set("b"), vec![says(true), says(true)]).await;
    allowed(Webhook::ValidateCluster, Some(&in_set("a")), &in_set("a"), vec![]).await;
}

#[tokio::test]
async fn changing_the_owners_of_a_cluster_takes_the_right_to_delete_it() {
    let owned = |uid: &str| {
        let owner = json!({"apiVersion": "v1", "kind": "Namespace", "name": "n", "uid": uid});
        cluster(&json!({"metadata": {"ownerReferences": [owner]}}))
    };
    let none = cluster(&json!({}));
    for (old, new) in [(None, owned("1")), (Some(none.clone()), owned("1")), (Some(owned("1")), none)] {
        let (code, message) = refused(Webhook::ValidateCluster, old.as_ref(), &new, vec![says(false)]).await;
        assert_eq!(code, 403);
        assert!(message.contains("metadata.ownerReferences of cluster c1") && message.contains("delete"), "{message}");
        allowed(Webhook::ValidateCluster, old.as_ref(), &new, vec![says(true)]).await;
    }
    allowed(Webhook::ValidateCluster, Some(&owned("1")), &owned("1"), vec![]).await;
}

#[tokio::test]
async fn a_deletion_is_allowed_whatever_the_object_is() {
    for webhook in Webhook::ALL {
        let mut body: Value = serde_json::from_slice(&review("v1", Some(&accepted()), &accepted())).unwrap();
        body["request"]["operation"] = json!("DELETE");
        body["request"]["object"] = Value::Null;
        let admission = Admission::new(None, FeatureGates::default());
        let response = respond(&admission, webhook, body.to_string().as_bytes()).await;
        assert_eq!((&response["allowed"], response.get("patch")), (&json!(true), None), "{response}");
    }
}

#[tokio::test]
async fn a_binding_has_the_name_of_its_set_and_takes_the_right_to_bind_it() {
    let webhook = Webhook::ValidateSetBinding;
    let (code, message) = refused(webhook, None, &binding("a", "b"), vec![]).await;
    assert_eq!(code, 400);
    assert!(message.contains("rename a to b"), "{message}");
    let (code, message) = refused(webhook, None, &binding("b", "b"), vec![says(false)]).await;
    assert_eq!(code, 403);
    assert!(message.starts_with("user jane may not bind cluster set b"), "{message}");
    allowed(webhook, None, &binding("b", "b"), vec![says(true)]).await;
    allowed(webhook, Some(&binding("b", "b")), &binding("b", "b"), vec![]).await;
    let (code, _) = refused(webhook, Some(&binding("b", "a")), &binding("b", "b"), vec![says(false)]).await;
    assert_eq!(code, 403, "another set is a new binding");
}

#[test]
fn the_requester_is_asked_about_with_all_that_is_known_of_them() {
    let request = review::read(&review("v1", None, &accepted())).unwrap();
    let change = Change::<ManagedCluster>::read(&request).unwrap();
    let right = cluster::rights(&change).remove(0);
    let spec = Requester::from(&request.user_info).review(right.attributes);
    assert_eq!((spec.user.as_deref(), spec.uid.as_deref()), (Some(USER), Some("7")));
    assert_eq!(spec.groups, Some(vec!["g".to_owned()]));
    assert_eq!(spec.extra.unwrap()["k"], ["v"]);
    let asked = spec.resource_attributes.unwrap();
    let asked = [asked.group, asked.resource, asked.subresource, asked.verb, asked.name].map(Option::unwrap);
    assert_eq!(asked, ["register.open-cluster-management.io", "managedclusters", "accept", "update", "c1"]);
}
