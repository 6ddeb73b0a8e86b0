//! What is done with a set, and what its status says.

use std::time::Instant;

use ocm_api::work::v1alpha1::ManifestWorkReplicaSet;
use ocm_runtime::{Context, Controller as _, Informers, conditions};
use serde_json::{Value, from_value, json, to_value};

use super::{
    Applied, Observed, Plan, ReplicaSetController,
    plan::plan,
    status::{Outcome, reported},
};
use crate::{
    HubConfig,
    context::HubContext,
    testing::{client_answered_with, now},
    work::{
        decision::testing::{DONE, World, all, progressive, set, set_named},
        facts::ReplicaSet,
        replica::Replica,
    },
};

fn world(set: ReplicaSet) -> World {
    World::new(set).choosing("p", &["c1", "c2"])
}

fn followed() -> ReplicaSet {
    set("a", &[("p", all())])
}

fn planned(world: &World) -> Plan {
    plan(&world.inputs(), now())
}

#[test]
fn a_set_gets_its_finalizer_before_it_gets_works() {
    let mut new = world(followed());
    new.set.has_finalizer = false;
    assert_eq!(planned(&new), Plan::AddFinalizer);
    new.set.has_finalizer = true;
    assert!(matches!(planned(&new), Plan::Decide(_)));
}

#[test]
fn a_set_whose_name_makes_no_label_is_refused_and_can_be_deleted() {
    let mut long = world(set_named(&"x".repeat(60), "a", &json!({})));
    assert_eq!(planned(&long), Plan::Unnameable);
    long.set.is_deleting = true;
    assert_eq!(planned(&long), Plan::Release);
    long.set.has_finalizer = false;
    assert_eq!(planned(&long), Plan::Nothing);
}

#[test]
fn a_deleted_set_waits_until_its_works_are_being_deleted_or_with_foreground_until_they_are_gone() {
    for is_foreground in [false, true] {
        let mut gone = world(followed());
        (gone.set.is_deleting, gone.set.is_foreground) = (true, is_foreground);
        assert_eq!(planned(&gone), Plan::Release);
        gone.add("c1", "p", DONE);
        assert!(matches!(planned(&gone), Plan::Decide(_)));
        gone.edit("c1", "p", |work| work.is_deleting = true);
        assert_eq!(matches!(planned(&gone), Plan::Decide(_)), is_foreground);
    }
}

/// The status of a set after a decision, and the patch that leads to it from `before`.
fn status_after(world: &mut World, before: &Value) -> Value {
    let progress = world.decide().progress;
    status(&Outcome::Decided(Box::new(progress)), before)
}

fn status(outcome: &Outcome, before: &Value) -> Value {
    let set = json!({"metadata": {"name": "settings", "namespace": "fleet"}, "spec": {"placementRefs": []}, "status": before});
    let set: ManifestWorkReplicaSet = from_value(set).unwrap();
    let new = reported(&set, outcome, now());
    to_value(new.status.unwrap()).unwrap()
}

/// A condition as `status reason`, and its message.
fn said(status: &Value, type_: &str) -> (String, String) {
    let known: ManifestWorkReplicaSet =
        from_value(json!({"metadata": {}, "spec": {"placementRefs": []}, "status": status})).unwrap();
    let conditions = known.status.unwrap().conditions;
    let found = conditions::find(&conditions, type_).unwrap();
    assert_eq!(found.observed_generation, None);
    (format!("{} {}", found.status, found.reason), found.message.clone())
}

fn reasons(status: &Value) -> [String; 3] {
    ["PlacementVerified", "PlacementRolledOut", "ManifestworkApplied"].map(|type_| said(status, type_).0)
}

#[test]
fn a_set_that_is_rolled_out_everywhere_reports_what_ocm_reports() {
    let mut world = world(followed());
    world.add("c1", "p", DONE);
    world.add("c2", "p", DONE);
    let status = status_after(&mut world, &json!({}));
    assert_eq!(reasons(&status), ["True AsExpected", "True Complete", "True AsExpected"]);
    for type_ in ["PlacementVerified", "PlacementRolledOut", "ManifestworkApplied"] {
        assert_eq!(said(&status, type_).1, "");
    }
    let order: Vec<_> =
        status["conditions"].as_array().unwrap().iter().map(|one| one["type"].as_str().unwrap()).collect();
    assert_eq!(order, ["PlacementVerified", "PlacementRolledOut", "ManifestworkApplied"]);
    let summary = json!({"total": 2, "applied": 2, "available": 2, "progressing": 0, "degraded": 0, "desiredTotal": 0, "updated": 0});
    assert_eq!(status["summary"], summary);
    let placement = json!({"name": "p", "availableDecisionGroups": "1 (2 / 2 clusters applied)", "summary": summary});
    assert_eq!(status["placementSummary"], json!([placement]));
}

#[test]
fn works_that_do_not_report_progress_leave_the_rollout_open_and_the_condition_says_what_to_do() {
    let mut world = world(followed());
    for cluster in ["c1", "c2"] {
        world.add(cluster, "p", &[("Applied", "True"), ("Available", "True")]);
    }
    let status = status_after(&mut world, &json!({}));
    assert_eq!(reasons(&status), ["True AsExpected", "False Progressing", "True AsExpected"]);
    let (_, message) = said(&status, "PlacementRolledOut");
    assert!(
        message.contains("0 of 2 clusters") && message.contains("add a condition rule for Progressing"),
        "{message}"
    );
}

#[test]
fn works_that_are_not_there_yet_are_not_as_expected() {
    let mut world = world(followed());
    world.add("c1", "p", DONE);
    let status = status_after(&mut world, &json!({}));
    assert_eq!(reasons(&status), ["True AsExpected", "False Progressing", "False NotAsExpected"]);
    assert_eq!(status["summary"]["total"], 1);
    assert_eq!(status["placementSummary"][0]["availableDecisionGroups"], "1 (1 / 2 clusters applied)");
    let (_, message) = said(&status, "ManifestworkApplied");
    assert_eq!(message, "Of 2 works, 1 are available, 0 progressing, 0 degraded");
}

#[test]
fn works_that_wait_for_their_turn_are_not_counted_as_in_ocm() {
    let mut world = world(set("a", &[("p", progressive(1))]));
    world.add("c1", "p", &[("Applied", "True"), ("Available", "True")]);
    let status = status_after(&mut world, &json!({}));
    assert_eq!(reasons(&status), ["True AsExpected", "False Progressing", "True AsExpected"]);
}

#[test]
fn progressing_and_degraded_works_decide_the_reason() {
    let applied = |conditions: &[(&'static str, &'static str)]| {
        let mut world = world(followed());
        world.add("c1", "p", DONE);
        world.add("c2", "p", conditions);
        said(&status_after(&mut world, &json!({})), "ManifestworkApplied").0
    };
    let both = [("Applied", "True"), ("Available", "True")];
    assert_eq!(applied(&[both[0], both[1], ("Progressing", "True")]), "False Processing");
    assert_eq!(applied(&[both[0], both[1], ("Progressing", "True"), ("Degraded", "True")]), "False NotAsExpected");
    assert_eq!(applied(&[both[0], both[1], ("Degraded", "True")]), "False NotAsExpected");
    assert_eq!(applied(&[both[0]]), "False NotAsExpected");
}

#[test]
fn placements_that_have_chosen_nothing_are_reported_as_empty() {
    let mut world = world(followed());
    world.choose("p", &[&[]]);
    let status = status_after(&mut world, &json!({}));
    let empty = "False PlacementDecisionEmpty";
    assert_eq!(reasons(&status), [empty, "True Complete", empty]);
    assert_eq!(status["placementSummary"][0]["availableDecisionGroups"], "1 (0 / 0 clusters applied)");
}

#[test]
fn a_placement_that_does_not_exist_changes_nothing_but_one_condition() {
    let mut world = world(set("a", &[("p", all()), ("gone", all())]));
    world.add("c1", "p", DONE);
    let before = json!({"summary": {"total": 7}});
    let status = status_after(&mut world, &before);
    assert_eq!(status["summary"]["total"], 7);
    assert_eq!(status["conditions"].as_array().unwrap().len(), 1);
    let (reason, message) = said(&status, "PlacementVerified");
    assert_eq!(reason, "False PlacementDecisionNotFound");
    assert!(message.starts_with("Placement fleet/gone does not exist: create it, or remove it"), "{message}");
}

#[test]
fn a_placement_that_cannot_be_followed_is_named() {
    let mut world = world(set("a", &[("p", json!({"type": "Sideways"}))]));
    let (reason, message) = said(&status_after(&mut world, &json!({})), "PlacementVerified");
    assert_eq!(reason, "False NotAsExpected");
    assert!(message.contains("spec.placementRefs[0].rolloutStrategy.type"), "{message}");
}

#[test]
fn a_work_that_could_not_be_written_is_named_with_its_cluster_and_the_answer() {
    let mut world = world(followed());
    world.add("c1", "p", DONE);
    world.failures.insert(("c2".into(), "p".into()), "quota exceeded".into());
    let (reason, message) = said(&status_after(&mut world, &json!({})), "ManifestworkApplied");
    assert_eq!(reason, "False NotAsExpected");
    assert_eq!(message, "The work on cluster c2 could not be written: quota exceeded. It is retried");
    world.failures.insert(("c1".into(), "p".into()), "not now".into());
    let (_, message) = said(&status_after(&mut world, &json!({})), "ManifestworkApplied");
    assert!(
        message.starts_with("The work on cluster c1 could not be written, nor that on 1 more: not now"),
        "{message}"
    );
}

#[test]
fn a_name_that_makes_no_label_is_explained() {
    let (reason, message) = said(&status(&Outcome::Unnameable, &json!({})), "ManifestworkApplied");
    assert_eq!(reason, "False InvalidManifestWorkName");
    assert!(message.contains("fleet.settings, which is not valid") && message.contains("shorter name"), "{message}");
}

#[test]
fn what_has_not_changed_is_not_written_again() {
    let mut world = world(followed());
    world.add("c1", "p", DONE);
    let first = status_after(&mut world, &json!({}));
    assert_eq!(status_after(&mut world, &first), first);
}

/// What the controller keeps of a set after it has been decided on and has ended by this plan.
async fn is_kept_after(end: Option<Plan>) -> bool {
    let context = Context::new();
    let informers = Informers::new(client_answered_with(Vec::new()), context.clone());
    let client = client_answered_with(vec![(200, json!({"metadata": {}, "items": []}))]);
    let hub = HubContext::new(client, informers, context.clock(), HubConfig::default());
    let controller = ReplicaSetController::new(&hub, hub.replica_sets());
    let inputs = world(followed()).inputs();
    let key = inputs.set.key.clone();
    let observed = Observed { inputs, since: Instant::now() };
    let decided = plan(&observed.inputs, now());
    assert!(matches!(controller.apply(&observed, decided.clone()).await, Ok(Applied::Done(_))), "it is verified first");
    let applied = controller.apply(&observed, decided).await.unwrap();
    controller.report(&observed, applied, now()).await.unwrap();
    let replica = Replica::new(&key, &("c1".into(), "p".into()));
    controller.store.record_outcome(&replica, Some("no".into()));
    assert!(controller.verified.contains(&observed.inputs.set) && !controller.store.failures(&key).is_empty());
    if let Some(end) = end {
        controller.apply(&observed, end).await.unwrap();
    } else {
        // The cache does not have it.
        assert!(controller.observe(&key).await.unwrap().is_none());
    }
    controller.store.knows(&key)
        || controller.recent.knows(&key)
        || controller.pace.knows(&key)
        || controller.verified.contains(&observed.inputs.set)
}

#[tokio::test]
async fn nothing_is_kept_of_a_set_that_is_gone_or_left_to_others() {
    assert!(!is_kept_after(None).await);
    assert!(!is_kept_after(Some(Plan::Nothing)).await);
}
