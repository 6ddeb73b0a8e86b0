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

/// A work that asks for the phase of its object, and what it reported.
fn with_rules(reported: &Value) -> Value {
    let rules = json!([{"type": "WellKnownStatus"}]);
    let id = json!({"group": "", "resource": "pods", "namespace": "b", "name": "a"});
    let mut entry = work(&json!({}))["status"]["resourceStatus"]["manifests"][0].clone();
    entry["conditions"][1]["reason"] = json!("StatusFeedbackSynced");
    entry["statusFeedback"] = json!({"values": reported});
    json!({"spec": {"manifestConfigs": [{"resourceIdentifier": id, "feedbackRules": rules}]},
        "status": {"resourceStatus": {"manifests": [entry]}}})
}

fn phase(phase: &str) -> Value {
    json!([{"name": "PodPhase", "fieldValue": {"type": "String", "string": phase}}])
}

fn running() -> (u16, Value) {
    (200, json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "status": {"phase": "Running"}}))
}

#[tokio::test]
async fn a_value_that_changed_is_reported_with_the_time_of_its_change() {
    let (observed, _) = observed(&with_rules(&phase("Pending")), running()).await;
    let status = Availability::plan(&observed, Timestamp::UNIX_EPOCH).unwrap().status.unwrap();
    let entry = &status.resource_status.manifests[0];
    assert_eq!(serde_json::to_value(&entry.status_feedback.values).unwrap(), phase("Running"));
    let time = |type_: &str| find(&entry.conditions, type_).unwrap().last_transition_time.0;
    assert_eq!(time("StatusFeedbackSynced"), Timestamp::UNIX_EPOCH);
    assert_ne!(time("Available"), Timestamp::UNIX_EPOCH, "whether the object exists has not changed");
}

#[tokio::test]
async fn a_work_whose_values_are_as_its_status_says_is_not_read() {
    let (observed, _) = observed(&with_rules(&phase("Running")), running()).await;
    assert!(observed.work.is_none());
}

#[tokio::test]
async fn values_stay_while_the_object_cannot_be_read() {
    let failure = (503, json!({"kind": "Status", "status": "Failure", "code": 503, "message": "no"}));
    for answer in [not_found(), failure] {
        let (observed, _) = observed(&with_rules(&phase("Pending")), answer).await;
        let status = Availability::plan(&observed, Timestamp::UNIX_EPOCH).unwrap().status.unwrap();
        let entry = &status.resource_status.manifests[0];
        assert_eq!(serde_json::to_value(&entry.status_feedback.values).unwrap(), phase("Pending"));
        let synced = find(&entry.conditions, "StatusFeedbackSynced").unwrap();
        assert_ne!(synced.last_transition_time.0, Timestamp::UNIX_EPOCH);
    }
}

#[test]
fn objects_are_followed_that_have_rules_and_ask_for_it() {
    for (scrape_type, watched) in [("Poll", 0), ("Watch", 1)] {
        let mut change = with_rules(&json!([]));
        change["spec"]["manifestConfigs"][0]["feedbackScrapeType"] = json!(scrape_type);
        assert_eq!(followed(&Polled::of(&parsed(&change)).unwrap()).len(), watched, "{scrape_type}");
        change["spec"]["manifestConfigs"][0]["feedbackRules"] = json!([]);
        assert_eq!(followed(&Polled::of(&parsed(&change)).unwrap()).len(), 0, "without rules");
    }
}
