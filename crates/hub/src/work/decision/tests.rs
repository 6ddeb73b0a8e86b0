//! Each rule with one example.

use jiff::SignedDuration;
use ocm_runtime::ObjectKey;
use serde_json::json;

use super::{
    Counts, remove_all,
    testing::{ACTIVE, DONE, World, all, condition, progressive, set, set_named, shown, work},
};
use crate::{
    decisions::{GRACE, UNREADABLE},
    rollout::Status,
    testing::now,
    work::{
        facts::{Work, set_of},
        kinds::ReplicaWork,
    },
};

/// A set that follows placement `p` with that strategy, which has chosen these clusters.
fn world(strategy: serde_json::Value, clusters: &[&str]) -> World {
    World::new(set("a", &[("p", strategy)])).choosing("p", clusters)
}

#[test]
fn every_chosen_cluster_gets_a_work_at_once_with_type_all() {
    let mut world = world(all(), &["c1", "c2"]);
    assert_eq!(world.desired(), ["c1 p current", "c2 p current"]);
    let decision = world.decide();
    assert!(decision.has_pending());
    assert_eq!(decision.progress.total(), Counts { chosen: 2, pending: 2, ..Counts::default() });
}

#[test]
fn a_changed_template_reaches_some_clusters_at_a_time_and_the_next_when_they_are_done() {
    let mut world = world(progressive(1), &["c1", "c2"]);
    world.add("c1", "p", DONE);
    world.add("c2", "p", DONE);
    assert_eq!(world.desired(), ["c1 p current", "c2 p current"]);
    world.change_template("b");
    assert_eq!(world.desired(), ["c1 p current", "c2 p kept"]);
    world.add("c1", "p", ACTIVE);
    assert_eq!(world.desired(), ["c1 p current", "c2 p kept"]);
    world.add("c1", "p", DONE);
    assert_eq!(world.desired(), ["c1 p current", "c2 p current"]);
    world.add("c2", "p", DONE);
    assert!(!world.decide().has_pending());
}

#[test]
fn works_that_do_not_report_progress_stop_a_progressive_rollout_after_the_first_clusters() {
    let mut world = world(progressive(1), &["c1", "c2"]);
    world.add("c1", "p", &[("Applied", "True"), ("Available", "True")]);
    assert_eq!(world.desired(), ["c1 p current"]);
    assert!(!world.before.progress.reports_progress);
    let rule = json!({"condition": "Progressing", "type": "CEL", "celExpressions": ["false"]});
    let config = json!({"resourceIdentifier": {"resource": "configmaps", "name": "a"}, "conditionRules": [rule]});
    let template = json!({"workload": {"manifests": []}, "manifestConfigs": [config]});
    let reporting = set_named("s", "a", &json!({"manifestWorkTemplate": template}));
    assert!(reporting.template.reports_progress());
}

#[test]
fn mandatory_groups_come_first() {
    let settings = json!({"maxConcurrency": 5, "mandatoryDecisionGroups": [{"groupIndex": 1}]});
    let mut world = World::new(set("a", &[("p", json!({"type": "Progressive", "progressive": settings}))]));
    world.choose("p", &[&["c1", "c2"], &["c3"]]);
    assert_eq!(world.desired(), ["c3 p current"]);
    world.add("c3", "p", DONE);
    assert_eq!(world.desired(), ["c1 p current", "c2 p current", "c3 p current"]);
}

#[test]
fn a_rollout_goes_group_by_group_and_again_after_the_soak_and_before_the_deadline() {
    let settings = json!({"minSuccessTime": "1m", "progressDeadline": "10m"});
    let strategy = json!({"type": "ProgressivePerGroup", "progressivePerGroup": settings});
    let mut world = World::new(set("a", &[("p", strategy)]));
    world.choose("p", &[&["c1"], &["c2"]]);
    assert_eq!(world.desired(), ["c1 p current"]);
    world.add("c1", "p", ACTIVE);
    assert_eq!(world.decide().recheck_after, Some(SignedDuration::from_mins(10)));
    world.add("c1", "p", DONE);
    assert_eq!(world.desired(), ["c1 p current"]);
    assert_eq!(world.before.recheck_after, Some(SignedDuration::from_mins(1)));
    world.pass(SignedDuration::from_mins(1));
    assert_eq!(world.desired(), ["c1 p current", "c2 p current"]);
}

#[test]
fn a_failure_that_is_not_tolerated_stops_the_rollout_and_what_has_the_template_stays() {
    let mut world = world(progressive(1), &["c1", "c2"]);
    let failed = [("Applied", "True"), ("Progressing", "True"), ("Degraded", "True")];
    world.add("c1", "p", &failed);
    assert_eq!(world.desired(), ["c1 p current"]);
}

#[test]
fn a_cluster_that_two_placements_choose_has_two_works() {
    let mut world = World::new(set("a", &[("p", all()), ("q", all())]));
    world.choose("p", &[&["c1"]]);
    world.choose("q", &[&["c1"]]);
    assert_eq!(world.desired(), ["c1 p current", "c1 q current"]);
    world.add("c1", "p", DONE);
    world.add("c1", "q", DONE);
    world.change_template("b");
    assert_eq!(world.desired(), ["c1 p current", "c1 q current"]);
    assert_eq!(world.before.progress.total().pending, 2);
}

#[test]
fn works_of_a_placement_that_is_no_longer_listed_are_deleted_and_so_is_one_without_a_placement() {
    let mut world = world(all(), &["c1"]);
    world.add("c1", "p", DONE);
    world.add("c1", "former", DONE);
    world.put(work(&world.set, ("c2", "x"), "", 0, DONE));
    assert_eq!(world.desired(), ["c1 former absent", "c1 p current", "c2  absent"]);
    let first = world.before.clone();
    world.pass(SignedDuration::from_secs(9));
    assert_eq!(world.decide(), first, "what was decided stays the same");
}

#[test]
fn the_work_of_a_cluster_that_left_is_deleted_after_a_moment_whatever_its_spec() {
    let mut world = world(all(), &["c1"]);
    world.add("c1", "p", DONE);
    world.add("c2", "p", DONE);
    world.change_template("b");
    assert_eq!(world.desired(), ["c1 p current", "c2 p leaving"]);
    assert_eq!(world.before.recheck_after, Some(GRACE));
    world.pass(GRACE);
    assert_eq!(world.desired(), ["c1 p current", "c2 p absent"]);
    assert_eq!(world.desired(), ["c1 p current", "c2 p absent"], "until it is gone");
}

#[test]
fn a_cluster_that_comes_back_in_time_keeps_its_work() {
    let mut world = world(all(), &[]);
    world.add("c1", "p", DONE);
    assert_eq!(world.desired(), ["c1 p leaving"]);
    world.choose("p", &[&["c1"]]);
    assert_eq!(world.desired(), ["c1 p current"]);
    world.choose("p", &[&[]]);
    world.pass(GRACE);
    assert_eq!(world.desired(), ["c1 p leaving"], "the time begins again");
}

#[test]
fn nothing_is_deleted_while_what_may_choose_the_cluster_cannot_be_read() {
    let mut world = world(all(), &[]);
    world.add("c1", "p", DONE);
    world.has_unreadable = true;
    world.decide();
    world.pass(GRACE);
    assert_eq!(world.desired(), ["c1 p leaving"]);
    assert_eq!(world.before.recheck_after, Some(UNREADABLE));
}

#[test]
fn a_placement_that_does_not_exist_stops_those_after_it_and_deletes_nothing() {
    let mut world = World::new(set("a", &[("p", all()), ("missing", all()), ("q", all())]));
    world.choose("p", &[&["c1"]]);
    world.choose("q", &[&["c1"]]);
    world.add("c2", "missing", DONE);
    world.add("c2", "q", DONE);
    assert_eq!(world.desired(), ["c1 p current"]);
    assert_eq!(world.before.progress.missing.as_deref(), Some("missing"));
}

#[test]
fn a_placement_that_cannot_be_followed_is_named_and_its_works_stay_while_others_go_on() {
    let wrong = json!({"type": "Sideways"});
    let long = "p".repeat(64);
    let mut world =
        World::new(set("a", &[("wrong", wrong), (long.as_str(), all()), ("p", all()), ("p", progressive(1))]));
    for placement in ["wrong", "p"] {
        world.choose(placement, &[&["c1"]]);
    }
    world.choose(long.leak(), &[&["c1"]]);
    world.add("c2", "wrong", DONE);
    world.add("c1", "wrong", DONE);
    assert_eq!(world.desired(), ["c1 p current"]);
    let problems = &world.before.progress.problems;
    assert_eq!(problems.len(), 3, "{problems:?}");
    assert!(
        problems[0].starts_with("spec.placementRefs[0].rolloutStrategy.type is \"Sideways\": use All"),
        "{problems:?}"
    );
    assert!(problems[1].contains("spec.placementRefs[1].name cannot be the value of a label"), "{problems:?}");
    assert!(problems[2].contains("spec.placementRefs[3] names placement p again"), "{problems:?}");
    let counted: Vec<_> = world.before.progress.placements.iter().map(|placement| placement.counts.total).collect();
    assert_eq!(counted, [1, 0, 0]);
}

#[test]
fn of_several_works_for_a_cluster_the_oldest_counts_that_is_not_being_deleted() {
    let mut world = world(progressive(1), &["c1", "c2"]);
    world.put(work(&world.set, ("c1", "a"), "p", 5, ACTIVE));
    world.put(work(&world.set, ("c1", "b"), "p", 0, DONE));
    world.put(work(&world.set, ("c1", "d"), "p", -5, ACTIVE));
    world.edit("c1", "d", |work| work.is_deleting = true);
    assert_eq!(world.desired(), ["c1 p current", "c2 p current"]);
    assert_eq!(world.before.progress.total().total, 1);
}

#[test]
fn what_has_begun_and_is_not_seen_yet_takes_part_in_the_rollout() {
    let mut world = world(progressive(1), &["c2"]);
    assert_eq!(world.desired(), ["c2 p current"]);
    world.choose("p", &[&["c1", "c2"]]);
    assert_eq!(world.desired(), ["c2 p current"], "its work may have been written");
    world.change_template("b");
    assert_eq!(world.desired(), ["c1 p current"], "not from this template");
}

#[test]
fn a_work_for_which_admission_changed_the_template_is_up_to_date() {
    let mut world = world(all(), &["c1"]);
    world.add("c1", "p", DONE);
    world.change_template("b");
    let template = world.set.template.digest.clone();
    world.edit("c1", "p", |work| work.written_from = Some(template));
    assert!(!world.decide().has_pending());
}

#[test]
fn works_are_counted_by_their_conditions_and_not_those_that_wait_for_the_template() {
    let mut world = world(all(), &["c1", "c2", "c3", "c4"]);
    world.add("c4", "p", DONE);
    world.change_template("b");
    world.add("c1", "p", DONE);
    world.add("c2", "p", &[("Applied", "True"), ("Available", "False"), ("Progressing", "True"), ("Degraded", "True")]);
    world.add("c3", "p", DONE);
    world.edit("c3", "p", |work| work.is_deleting = true);
    world.add("c9", "p", DONE);
    world.failures.insert(("c4".into(), "p".into()), "no".into());
    let progress = world.decide().progress;
    let expected =
        Counts { chosen: 4, total: 3, applied: 2, available: 1, progressing: 1, degraded: 1, succeeded: 2, pending: 1 };
    assert_eq!(progress.total(), expected);
    assert_eq!((progress.failed, progress.failure), (1, Some(("c4".into(), "no".to_owned()))));
}

#[test]
fn all_works_of_a_deleted_set_are_deleted() {
    let mut world = World::new(set("a", &[("p", all())]));
    world.add("c1", "p", DONE);
    world.add("c2", "other", DONE);
    assert_eq!(shown(&remove_all(&world.inputs(), now())), ["c1 p absent", "c2 other absent"]);
}

#[test]
fn a_label_names_one_set_however_many_dots_its_name_has() {
    let dotted = set_named("my.app.v1", "a", &json!({}));
    assert_eq!((dotted.label(), dotted.has_label()), ("fleet.my.app.v1", true));
    assert_eq!(set_of(dotted.label()), Some(dotted.key.clone()));
    assert_eq!(set_of("nodot"), None);
    let long = "x".repeat(58);
    assert!(!set_named(&long, "a", &json!({})).has_label(), "fleet. and 58 characters");
    assert!(set_named(&long[1..], "a", &json!({})).has_label());
}

/// Status of a rollout by `type status generation` of each condition of a work of generation 2.
fn status(conditions: &[(&str, &str, i64)]) -> Status {
    let conditions: Vec<_> =
        conditions.iter().map(|(type_, status, at)| condition(type_, status, *at, now())).collect();
    let labels = json!({"work.open-cluster-management.io/manifestworkreplicaset": "n.s"});
    let metadata = json!({"name": "w", "namespace": "c1", "generation": 2, "labels": labels});
    let work = json!({"metadata": metadata, "spec": {}, "status": {"conditions": conditions}});
    let (set, work) = Work::of(&serde_json::from_value::<ReplicaWork>(work).unwrap()).unwrap();
    assert_eq!(set, ObjectKey::new("n", "s"));
    work.rollout_status().0
}

#[test]
fn the_status_of_a_rollout_follows_the_conditions_of_the_current_generation() {
    let (applied, progressing) = (("Applied", "True", 2), ("Progressing", "True", 2));
    assert_eq!(status(&[]), Status::ToApply);
    assert_eq!(status(&[applied]), Status::ToApply);
    assert_eq!(status(&[progressing]), Status::ToApply);
    assert_eq!(status(&[applied, ("Progressing", "True", 1)]), Status::ToApply);
    assert_eq!(status(&[("Applied", "True", 1), progressing]), Status::ToApply);
    assert_eq!(status(&[("Applied", "False", 2), progressing]), Status::ToApply);
    assert_eq!(status(&[applied, progressing, ("Degraded", "False", 1)]), Status::ToApply);
    assert_eq!(status(&[applied, progressing]), Status::Progressing);
    assert_eq!(status(&[applied, progressing, ("Degraded", "False", 2)]), Status::Progressing);
    assert_eq!(status(&[applied, progressing, ("Degraded", "True", 2)]), Status::Failed);
    assert_eq!(status(&[applied, ("Progressing", "False", 2), ("Degraded", "True", 2)]), Status::Succeeded);
    assert_eq!(status(&[applied, ("Progressing", "Unknown", 2)]), Status::Progressing);
}
