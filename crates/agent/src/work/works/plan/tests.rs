use std::sync::Arc;

use kube::core::{ApiResource, GroupVersionKind};
use ocm_api::work::v1::ManifestWork;
use serde_json::{Value, json};

use super::*;
use crate::work::{
    Settings, manifest,
    mapper::RestMapping,
    works::resolve::{ResolvedManifest, Target},
};

fn observed(work: Value, applied: Option<Value>) -> Observed {
    let mut value = json!({"metadata": {"name": "w", "namespace": "c1"}, "spec": {"workload": {"manifests": [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b"}}
    ]}}});
    json_patch(&mut value, work);
    Observed {
        work: Arc::new(serde_json::from_value::<ManifestWork>(value).unwrap()),
        applied_work: applied.map(|value| Arc::new(serde_json::from_value(value).unwrap())),
        manifests: vec![manifest("a"), manifest("not-recorded")],
        former: Vec::new(),
        stuck: None,
        settings: Arc::new(Settings::new("c1", "https://hub", "agent1")),
    }
}

fn manifest(name: &str) -> ResolvedManifest {
    let value = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "b"}});
    let parsed = manifest::parse(&[value.into()]).remove(0);
    let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("", "v1", "ConfigMap"), "configmaps");
    let mapping = RestMapping { resource, namespaced: true };
    let (meta, rank) = (parsed.meta("configmaps", true), parsed.rank());
    ResolvedManifest {
        meta,
        rank,
        target: Ok(Target { object: parsed.desired.unwrap(), mapping, is_owned: true, options: Default::default() }),
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
        "spec": {"hubHash": "h", "agentID": "agent1", "manifestWorkName": "w"},
        "status": {"appliedResources": [{"resource": "configmaps", "version": "v1", "name": "a", "namespace": "b"}]}
    })
}

#[test]
fn a_new_work_gets_a_record_with_its_labels_and_a_finalizer() {
    let observed = observed(json!({"metadata": {"labels": {"x": "y"}}}), None);
    let Plan::Apply(plan) = plan(&observed) else { panic!("not applied") };
    assert_eq!(plan.applied_work.name_any(), format!("{}-w", observed.settings.hub_hash));
    assert_eq!(plan.applied_work.labels()["x"], "y");
    assert_eq!(plan.applied_work.finalizers(), [finalizers::APPLIED_MANIFEST_WORK]);
    assert_eq!(
        (plan.applied_work.spec.agent_id.as_str(), plan.applied_work.spec.manifest_work_name.as_str()),
        ("agent1", "w")
    );
}

#[test]
fn a_record_keeps_its_labels_and_follows_the_agents_id() {
    let record = with(applied(), json!({"spec": {"agentID": "old"}}));
    let observed = observed(json!({"metadata": {"labels": {"new": "1"}}}), Some(record));
    let Plan::Apply(plan) = plan(&observed) else { panic!("not applied") };
    assert_eq!(plan.applied_work.metadata.labels, None);
    assert_eq!(plan.applied_work.spec.agent_id, "agent1");
    assert_eq!(
        plan.applied_work.finalizers(),
        [finalizers::APPLIED_MANIFEST_WORK],
        "a record that has lost it gets it back"
    );
    assert_eq!(plan.recorded.len(), 1);
}

fn condition(plan: Plan) -> (NewCondition, Requeue) {
    match plan {
        Plan::SetCondition { condition, requeue } => (condition, requeue),
        other => panic!("no condition: {other:?}"),
    }
}

#[test]
fn a_work_that_asks_for_what_is_not_built_is_refused() {
    let unknown = json!({"spec": {"deleteOption": {"propagationPolicy": "FromTheFuture"}}});
    let (refused, _) = condition(plan(&observed(unknown, None)));
    assert_eq!((refused.type_, refused.status), ("Applied", "False"));
    assert!(refused.message.contains("spec.deleteOption"), "{}", refused.message);
}

fn record_being_deleted() -> Option<Value> {
    Some(with(applied(), json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})))
}

#[test]
fn nothing_is_applied_while_the_record_is_being_deleted() {
    let mut observed = observed(json!({}), record_being_deleted());
    assert!(matches!(plan(&observed), Plan::Nothing));
    observed.stuck = Some(vec!["secrets ns/a: forbidden".into()]);
    let (blocked, _) = condition(plan(&observed));
    assert_eq!((blocked.type_, blocked.status), ("Applied", "False"));
    assert!(blocked.message.contains("secrets ns/a: forbidden"), "{}", blocked.message);
}

/// A work that is being deleted and reports so.
fn announced() -> Value {
    let condition = json!({"type": "Deleting", "status": "True", "reason": "x", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    with(deleted(), json!({"status": {"conditions": [condition]}}))
}

#[test]
fn a_deletion_is_announced_before_anything_is_deleted() {
    let (deleting, requeue) = condition(plan(&observed(deleted(), Some(applied()))));
    assert_eq!((deleting.type_, deleting.status, requeue), ("Deleting", "True", Requeue::After(Duration::ZERO)));
    assert!(deletion(plan(&observed(announced(), Some(applied())))).release.is_empty());
}

fn deletion(plan: Plan) -> DeletePlan {
    match plan {
        Plan::Delete(plan) => *plan,
        other => panic!("not deleted: {other:?}"),
    }
}

fn resource_names(resources: &[AppliedManifestResourceMeta]) -> Vec<&str> {
    resources.iter().map(|resource| resource.name.as_str()).collect()
}

#[test]
fn what_a_deleted_work_applied_and_its_record_does_not_list_is_recorded_before_the_record_is_deleted() {
    let mut observed = observed(announced(), Some(applied()));
    observed.manifests.push(manifest("nowhere"));
    observed.manifests.last_mut().unwrap().meta.namespace.clear();
    let plan = deletion(plan(&observed));
    assert_eq!(resource_names(&plan.unrecorded), ["not-recorded"], "an object without a namespace was never applied");
    assert_eq!((plan.unrecorded[0].uid.as_ref(), plan.release.len()), (None, 0));
}

#[test]
fn a_kind_that_cannot_be_looked_up_does_not_block_a_deletion_unless_objects_are_to_stay() {
    let mut foreground = observed(announced(), Some(applied()));
    let failed = || {
        let source = Box::new(kube::Error::LinesCodecMaxLineLengthExceeded);
        ApplyError::Request(ocm_runtime::Error::Request { verb: "list", noun: "kinds".into(), source })
    };
    foreground.manifests[1].target = Err(failed());
    assert!(deletion(plan(&foreground)).unrecorded.is_empty());
    let work = with(announced(), json!({"spec": {"deleteOption": {"propagationPolicy": "Orphan"}}}));
    let mut orphan = observed(work, Some(applied()));
    orphan.manifests[1].target = Err(failed());
    assert_eq!(condition(plan(&orphan)).0.type_, "Deleting");
}

#[test]
fn a_deleted_work_waits_for_its_record_and_says_what_cannot_be_deleted() {
    let mut waiting = observed(announced(), record_being_deleted());
    assert!(matches!(plan(&waiting), Plan::Nothing));
    waiting.stuck = Some(vec!["secrets ns/a: forbidden".into()]);
    let (deleting, _) = condition(plan(&waiting));
    assert_eq!((deleting.type_, deleting.status), ("Deleting", "True"));
    assert!(deleting.message.ends_with("secrets ns/a: forbidden"), "{}", deleting.message);
    assert!(matches!(plan(&observed(announced(), None)), Plan::RemoveFinalizer));
}

#[test]
fn a_record_with_another_id_is_adopted_before_it_is_deleted_or_waited_for() {
    let old = json!({"spec": {"agentID": "old"}});
    let live = plan(&observed(json!({}), Some(with(record_being_deleted().unwrap(), old.clone()))));
    assert!(matches!(live, Plan::Adopt(_)), "a live work is applied again when its record is gone: {live:?}");
    for record in [applied(), record_being_deleted().unwrap()] {
        let record = with(record, old.clone());
        for work in [deleted(), announced()] {
            let Plan::Adopt(adopted) = plan(&observed(work, Some(record.clone()))) else { panic!("not adopted") };
            assert_eq!(adopted.spec.agent_id, "old", "it is patched as it was read");
        }
        let held_by_another =
            json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["other"]}});
        assert!(matches!(plan(&observed(held_by_another, Some(record))), Plan::Nothing));
    }
}

#[test]
fn objects_of_a_work_that_orphans_are_released_before_the_record_goes_recorded_or_not() {
    let work = with(announced(), json!({"spec": {"deleteOption": {"propagationPolicy": "Orphan"}}}));
    let plan = deletion(plan(&observed(work, Some(applied()))));
    assert_eq!(resource_names(&plan.release), ["a", "not-recorded"]);
    assert!(plan.unrecorded.is_empty(), "what stays is not recorded for deletion");
}

#[test]
fn of_a_work_that_orphans_selectively_exactly_the_named_objects_are_released() {
    let rule = |name: &str| json!({"resource": "configmaps", "namespace": "b", "name": name});
    let orphans = |rules: Value| {
        json!({"spec": {"deleteOption": {"propagationPolicy": "SelectivelyOrphan",
            "selectivelyOrphans": {"orphaningRules": rules}}}})
    };
    let planned = |rules: Value| deletion(plan(&observed(with(announced(), orphans(rules)), Some(applied()))));
    let plan_of_one = planned(json!([rule("a")]));
    assert_eq!(resource_names(&plan_of_one.release), ["a"]);
    assert_eq!(resource_names(&plan_of_one.unrecorded), ["not-recorded"]);
    let plan_of_other = planned(json!([rule("not-recorded"), rule("elsewhere")]));
    assert_eq!(resource_names(&plan_of_other.release), ["not-recorded"]);
    assert!(plan_of_other.unrecorded.is_empty(), "what stays is not recorded for deletion");
    assert!(planned(json!([])).release.is_empty());
}

#[test]
fn an_object_that_a_work_only_reads_is_released_and_not_recorded_when_the_work_is_deleted() {
    let read = json!({"resourceIdentifier": {"resource": "configmaps", "namespace": "b", "name": "*"},
        "updateStrategy": {"type": "ReadOnly"}});
    let work = with(announced(), json!({"spec": {"manifestConfigs": [read]}}));
    let plan = deletion(plan(&observed(work, Some(applied()))));
    assert_eq!(resource_names(&plan.release), ["a", "not-recorded"]);
    assert!(plan.unrecorded.is_empty());
}

#[test]
fn a_kind_that_cannot_be_looked_up_blocks_a_deletion_only_where_a_rule_may_name_its_object() {
    let failed = || {
        let source = Box::new(kube::Error::LinesCodecMaxLineLengthExceeded);
        ApplyError::Request(ocm_runtime::Error::Request { verb: "list", noun: "kinds".into(), source })
    };
    let orphans = json!({"orphaningRules": [{"resource": "configmaps", "namespace": "b", "name": "a"}]});
    let option = json!({"propagationPolicy": "SelectivelyOrphan", "selectivelyOrphans": orphans});
    let work = with(announced(), json!({"spec": {"deleteOption": option}}));
    for (index, blocks) in [(0, true), (1, false)] {
        let mut observed = observed(work.clone(), Some(applied()));
        observed.manifests[index].target = Err(failed());
        assert_eq!(matches!(plan(&observed), Plan::SetCondition { .. }), blocks, "{index}");
    }
}

#[test]
fn a_deleted_work_with_an_unknown_policy_is_held_until_its_owner_decides() {
    let work = with(deleted(), json!({"spec": {"deleteOption": {"propagationPolicy": "FromTheFuture"}}}));
    let (held, _) = condition(plan(&observed(work.clone(), Some(applied()))));
    assert_eq!((held.type_, held.status), ("Deleting", "False"));
    assert!(held.message.contains("Foreground"), "{}", held.message);
    let nothing_applied = plan(&observed(work, None));
    assert!(matches!(nothing_applied, Plan::RemoveFinalizer), "nothing was applied, so nothing can be lost");
}

#[test]
fn a_work_that_another_finalizer_holds_is_left_alone() {
    let work = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["other"]}});
    assert!(matches!(plan(&observed(work, Some(applied()))), Plan::Nothing));
}
