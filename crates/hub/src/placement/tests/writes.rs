//! What is written so that decisions become what they should be.

use kube::Api;
use ocm_runtime::Cache;
use ocm_scheduler::DesiredDecision;
use serde_json::json;

use super::{settle, world};
use crate::{
    placement::{
        apply::{DecisionWrite, Writer},
        plan::Step,
        testing::{NAMESPACE, at, cluster, decision, placement},
    },
    testing::client_answered_with,
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
fn a_cluster_that_leaves_a_large_placement_changes_one_decision() {
    let mut world = world(350);
    settle(&mut world, json!({}));
    world.no_cluster("c000");
    let steps = world.settle("p", at(0)).steps;
    assert!(matches!(&steps[..], [Step::List(desired)] if desired.clusters.len() == 99), "{steps:?}");
    world.cluster(cluster("c999", &[]));
    let steps = world.settle("p", at(0)).steps;
    assert!(matches!(&steps[..], [Step::List(desired)] if desired.name == "p-decision-1"), "{steps:?}");
    assert_eq!(world.decided("p").len(), 350);
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

#[tokio::test]
async fn a_decision_that_cannot_be_written_does_not_keep_the_others_from_being_written() {
    let desired = |name: &str| {
        let (name, group, index) = (name.to_owned(), String::new(), "0".to_owned());
        DesiredDecision { name, group, index, clusters: Vec::new() }
    };
    let (first, second) = (desired("p-decision-1"), desired("p-decision-2"));
    let mut stored = decision("p", &second, false);
    stored.metadata.resource_version = Some("1".into());
    let refused =
        json!({"kind": "Status", "status": "Failure", "reason": "Forbidden", "message": "quota", "code": 403});
    let client = client_answered_with(vec![(403, refused), (201, json!(stored))]);
    let (cache, placement) = (Cache::default(), placement("p", json!({})));
    let writer = Writer { api: Api::namespaced(client, NAMESPACE), cache: &cache, placement: &placement };
    let mut writes = Vec::new();
    let error = writer.write_all(&[Step::Create(first), Step::Create(second)], &mut writes).await.unwrap_err();
    assert!(error.to_string().contains("p-decision-1"), "{error}");
    assert!(matches!(&writes[..], [DecisionWrite::Created(made)] if made.metadata == stored.metadata), "{writes:?}");
}
