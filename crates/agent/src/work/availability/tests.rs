use serde_json::{Value, json};

use ocm_runtime::{Context, conditions::find};

use super::*;
use crate::{
    testing::{Mock, not_found},
    work::testing,
};

fn work(change: &Value) -> Value {
    let time = "2026-01-01T00:00:00Z";
    let condition = |type_: &str, reason: &str, message: &str| {
        json!({"type": type_, "status": "True", "reason": reason, "message": message, "observedGeneration": 2,
            "lastTransitionTime": time})
    };
    let mut available = condition("Available", "ResourceAvailable", "The object exists");
    let mut synced = condition("StatusFeedbackSynced", "NoStatusFeedbackSynced", "");
    available["observedGeneration"] = Value::Null;
    synced["observedGeneration"] = Value::Null;
    let mut work = json!({
        "metadata": {"name": "w", "namespace": "c1", "generation": 2, "uid": "1", "resourceVersion": "1"},
        "spec": {"workload": {"manifests": []}},
        "status": {
            "conditions": [condition("Applied", "x", ""), condition("Available", "ResourcesAvailable", "All objects exist")],
            "resourceStatus": {"manifests": [{"conditions": [available, synced],
                "resourceMeta": {"ordinal": 0, "version": "v1", "kind": "Pod", "resource": "pods", "name": "a", "namespace": "b"}}]}
        }
    });
    ocm_apimachinery::merge::apply(&mut work, change);
    work
}

fn parsed(change: &Value) -> ManifestWork {
    serde_json::from_value(work(change)).unwrap()
}

async fn observed(change: &Value, answer: (u16, Value)) -> (Observed, Vec<String>) {
    let hub = Mock::default().listing(testing::WORKS, &json!([work(change)]));
    let managed = Mock::answering(vec![answer]);
    let watches = ObjectWatches::new(&Context::new(), managed.client(), 9);
    let controller = Availability::new(testing::shared(&hub, &managed).await, watches);
    (controller.observe(&"w".to_owned()).await.unwrap().unwrap(), managed.asked())
}

fn pod() -> (u16, Value) {
    (200, json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": {"name": "a"}}))
}

#[test]
fn only_works_whose_current_generation_was_applied_are_polled() {
    assert!(Polled::of(&parsed(&json!({}))).is_some());
    assert_eq!(Polled::of(&parsed(&json!({"metadata": {"generation": 3}}))), None);
    assert_eq!(Polled::of(&parsed(&json!({"status": null}))), None);
}

#[test]
fn what_is_kept_of_an_object_is_small() {
    let names = ["network-policies-of-the-team", "deployment-of-the-frontend"];
    let meta = json!({"ordinal": 41, "group": "networking.k8s.io", "version": "v1", "kind": "NetworkPolicy",
        "resource": "networkpolicies", "name": names[0], "namespace": names[1]});
    let entry = json!({"conditions": [], "resourceMeta": meta});
    let entries = vec![entry; 100];
    let polled = Polled::of(&parsed(&json!({"status": {"resourceStatus": {"manifests": entries}}}))).unwrap();
    let bytes = size_of_val(&*polled.objects) + size_of_val(&*polled.reported);
    assert!(bytes < 100 * 220, "{bytes}");
    assert_eq!(polled.objects().len(), 100);
}

#[test]
fn a_work_that_is_being_deleted_is_polled_on() {
    let deleted = json!({"metadata": {"generation": 3, "deletionTimestamp": "2026-01-01T00:00:00Z"}});
    assert!(Polled::of(&parsed(&deleted)).is_some());
}

#[tokio::test]
async fn a_work_whose_objects_are_as_its_status_says_is_not_read() {
    let (observed, asked) = observed(&json!({}), pod()).await;
    assert!(observed.work.is_none());
    assert_eq!(asked, ["GET /api/v1/namespaces/b/pods/a"]);
    assert_eq!(Availability::plan(&observed, Timestamp::UNIX_EPOCH), None);
}

#[tokio::test]
async fn an_object_that_went_missing_turns_its_condition_and_that_of_the_work() {
    let (observed, _) = observed(&json!({}), not_found()).await;
    let status = Availability::plan(&observed, Timestamp::UNIX_EPOCH).unwrap().status.unwrap();
    let available = find(&status.resource_status.manifests[0].conditions, "Available").unwrap();
    assert_eq!((available.status.as_str(), available.reason.as_str()), ("False", "ResourceNotAvailable"));
    assert_eq!(find(&status.conditions, "Available").unwrap().status, "False");
}

#[tokio::test]
async fn a_condition_of_the_work_that_does_not_follow_from_its_objects_is_corrected() {
    let applied = work(&json!({}))["status"]["conditions"][0].clone();
    let (observed, _) = observed(&json!({"status": {"conditions": [applied]}}), pod()).await;
    let status = Availability::plan(&observed, Timestamp::UNIX_EPOCH).unwrap().status.unwrap();
    assert_eq!(find(&status.conditions, "Available").unwrap().status, "True");
}

#[tokio::test]
async fn an_entry_of_the_status_whose_name_is_no_path_segment_is_not_requested() {
    let odd =
        json!({"ordinal": 0, "version": "v1", "kind": "Pod", "resource": "pods", "name": "a/log", "namespace": "b"});
    let entries = json!([{"conditions": [], "resourceMeta": odd}]);
    let (observed, asked) = observed(&json!({"status": {"resourceStatus": {"manifests": entries}}}), pod()).await;
    assert_eq!((observed.outcomes[0].object.clone(), asked.len()), (ObjectState::Unmapped, 0));
}
