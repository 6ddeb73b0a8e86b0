//! What is written so that decisions become what they should be.

use serde_json::json;

use super::{settle, world};
use crate::placement::{
    plan::Step,
    testing::{at, decision, placement},
};

#[test]
fn more_than_a_hundred_clusters_take_more_decisions_and_fewer_take_them_back() {
    let mut world = world(201);
    let plan = settle(&mut world, json!({}));
    assert_eq!(plan.steps.len(), 3);
    assert_eq!(plan.status.decision_groups[0].decisions, ["p-decision-1", "p-decision-2", "p-decision-3"]);
    let fewer = settle(&mut world, json!({"numberOfClusters": 150}));
    let deleted: Vec<_> = fewer.steps.iter().filter(|step| matches!(step, Step::Delete(_))).collect();
    assert_eq!(deleted, [&Step::Delete("p-decision-3".into())]);
    assert_eq!(world.decided("p").len(), 150);
}

#[test]
fn decisions_that_somebody_edited_deleted_or_added_are_put_right() {
    let mut world = world(2);
    let plan = settle(&mut world, json!({}));
    let mut edited = plan.desired[0].clone();
    edited.clusters.pop();
    assert_eq!(world.decision(decision("p", &edited, true)).len(), 1);
    assert!(matches!(&world.settle("p", at(0)).steps[..], [Step::List(_)]));
    edited.clone_from(&plan.desired[0]);
    edited.group = "theirs".into();
    assert_eq!(world.decision(decision("p", &edited, true)).len(), 1);
    assert!(matches!(&world.settle("p", at(0)).steps[..], [Step::Label(_)]));
    assert_eq!(world.no_decision("p-decision-1").len(), 1);
    assert!(matches!(&world.settle("p", at(0)).steps[..], [Step::Create(_)]));
    edited.name = "theirs".into();
    assert_eq!(world.decision(decision("p", &edited, true)).len(), 1);
    assert_eq!(world.settle("p", at(0)).steps, [Step::Delete("theirs".into())]);
}

#[test]
fn a_decision_of_its_name_without_its_labels_is_taken_over() {
    let mut world = world(1);
    world.placement(placement("p", json!({})));
    let desired = world.plan("p", at(0)).desired.remove(0);
    let mut foreign = decision("p", &desired, false);
    foreign.metadata.labels = None;
    world.decision(foreign);
    let steps = world.plan("p", at(0)).steps;
    assert!(matches!(&steps[..], [Step::List(_), Step::Label(_)]), "{steps:?}");
}
