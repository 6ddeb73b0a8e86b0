use std::sync::Arc;

use ocm_api::work::v1::ManifestWork;
use serde_json::{Value, json};

use super::*;
use crate::work::Settings;

fn observed(work: Value, applied: Option<Value>) -> Observed {
    let mut value = json!({"metadata": {"name": "w", "namespace": "c1"}, "spec": {"workload": {"manifests": [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b"}}
    ]}}});
    json_patch(&mut value, work);
    Observed {
        work: Arc::new(serde_json::from_value::<ManifestWork>(value).unwrap()),
        applied: applied.map(|value| Arc::new(serde_json::from_value(value).unwrap())),
        settings: Arc::new(Settings::new("c1", "https://hub", "agent1")),
    }
}

fn json_patch(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            from.into_iter().for_each(|(key, value)| json_patch(into.entry(key).or_insert(Value::Null), value));
        }
        (into, from) => *into = from,
    }
}

fn deleted() -> Value {
    json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": [finalizers::MANIFEST_WORK]}})
}

fn with(mut value: Value, more: Value) -> Value {
    json_patch(&mut value, more);
    value
}

fn applied() -> Value {
    json!({
        "metadata": {"name": "h-w", "uid": "1"},
        "spec": {"hubHash": "h", "manifestWorkName": "w"},
        "status": {"appliedResources": [{"resource": "configmaps", "version": "v1", "name": "a", "namespace": "b"}]}
    })
}

#[test]
fn a_new_work_gets_a_record_with_its_labels_and_a_finalizer() {
    let observed = observed(json!({"metadata": {"labels": {"x": "y"}}}), None);
    let Plan::Apply(plan) = plan(&observed) else { panic!("not applied") };
    assert_eq!(plan.record.name_any(), format!("{}-w", observed.settings.hub_hash));
    assert_eq!(plan.record.labels()["x"], "y");
    assert_eq!(plan.record.finalizers(), [finalizers::APPLIED_MANIFEST_WORK]);
    assert_eq!((plan.record.spec.agent_id.as_str(), plan.record.spec.manifest_work_name.as_str()), ("agent1", "w"));
}

#[test]
fn a_record_keeps_its_labels_and_follows_the_agents_id() {
    let observed = observed(json!({"metadata": {"labels": {"new": "1"}}}), Some(applied()));
    let Plan::Apply(plan) = plan(&observed) else { panic!("not applied") };
    assert_eq!(plan.record.metadata.labels, None);
    assert_eq!(plan.record.spec.agent_id, "agent1");
    assert_eq!(plan.record.finalizers(), [finalizers::APPLIED_MANIFEST_WORK], "a record that has lost it gets it back");
    assert_eq!(plan.recorded.len(), 1);
}

#[test]
fn a_work_that_asks_for_what_is_not_built_is_refused() {
    let executor = json!({"subject": {"type": "ServiceAccount", "serviceAccount": {"namespace": "a", "name": "b"}}});
    let observed = observed(json!({"spec": {"executor": executor}}), None);
    assert!(matches!(plan(&observed), Plan::Refuse(reason) if reason.contains("spec.executor")));
}

#[test]
fn nothing_is_applied_while_the_record_is_being_deleted() {
    let record = with(applied(), json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
    assert!(matches!(plan(&observed(json!({}), Some(record))), Plan::Nothing));
}

#[test]
fn a_deleted_work_deletes_its_record_and_goes_when_that_is_gone() {
    assert!(matches!(plan(&observed(deleted(), Some(applied()))), Plan::Delete { release, .. } if release.is_empty()));
    let record = with(applied(), json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
    assert!(matches!(plan(&observed(deleted(), Some(record))), Plan::Nothing));
    assert!(matches!(plan(&observed(deleted(), None)), Plan::LetGo));
}

#[test]
fn objects_of_a_work_that_orphans_are_released_before_the_record_goes() {
    let work = with(deleted(), json!({"spec": {"deleteOption": {"propagationPolicy": "Orphan"}}}));
    assert!(matches!(plan(&observed(work, Some(applied()))), Plan::Delete { release, .. } if release.len() == 1));
}

#[test]
fn a_deleted_work_that_is_to_keep_some_objects_is_held_until_its_owner_decides() {
    let work = with(deleted(), json!({"spec": {"deleteOption": {"propagationPolicy": "SelectivelyOrphan"}}}));
    assert!(
        matches!(plan(&observed(work.clone(), Some(applied()))), Plan::Hold(reason) if reason.contains("Foreground"))
    );
    assert!(matches!(plan(&observed(work, None)), Plan::LetGo), "nothing was applied, so nothing can be lost");
}

#[test]
fn a_work_that_another_finalizer_holds_is_left_alone() {
    let work = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["other"]}});
    assert!(matches!(plan(&observed(work, Some(applied()))), Plan::Nothing));
}
