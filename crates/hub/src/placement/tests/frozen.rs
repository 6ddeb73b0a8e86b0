//! Placements with mistakes, and those whose decisions stay as they are.

use kube::ResourceExt as _;
use ocm_api::labels::{DECISION_GROUP_INDEX, PLACEMENT};
use ocm_scheduler::DesiredDecision;
use serde_json::{Value, json};

use super::{even, misconfigured, satisfied, settle, world};
use crate::placement::{
    plan::Step,
    testing::{World, at, cluster, decision, placement, set},
};

fn unreadable() -> Value {
    let wrong = json!({"key": "a", "operator": "Like"});
    json!({"selectorType": "LabelSelector", "labelSelector": {"matchExpressions": [wrong]}})
}

#[test]
fn an_invalid_spec_empties_the_decisions_and_the_status_names_the_field() {
    for (spec, field) in [
        (json!({"prioritizerPolicy": {"configurations": [{"scoreCoordinate": {"builtIn": "NoSuch"}}]}}), "builtIn"),
        (json!({"numberOfClusters": -1}), "spec.numberOfClusters is -1"),
        (
            json!({"predicates": [{"requiredClusterSelector": {"celSelector": {"celExpressions": ["x"]}}}]}),
            "celExpressions[0]",
        ),
        (json!({"tolerations": [{"value": "x"}]}), "spec.tolerations[0].key"),
        (json!({"predicates": [{"requiredClusterSelector": {"labelSelector": {"matchLabels": {"a": "b c"}}}}]}), "b c"),
    ] {
        let mut world = world(2);
        settle(&mut world, json!({}));
        let plan = settle(&mut world, spec);
        let problem = misconfigured(&plan).unwrap();
        assert!(problem.contains(field), "{problem}");
        assert_eq!(satisfied(&plan).0, "NoManagedClusterMatched");
        assert_eq!(world.decided("p"), [""; 0]);
        assert_eq!(plan.desired.len(), 1);
    }
}

#[test]
fn a_wrong_predicate_goes_unnoticed_without_clusters_to_filter() {
    let mut world = World::new();
    let wrong = json!({"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}});
    let plan = settle(&mut world, json!({"predicates": [{"requiredClusterSelector": wrong}]}));
    assert_eq!((misconfigured(&plan), satisfied(&plan).0.as_str()), (None, "AllManagedClusterSetsEmpty"));
}

#[test]
fn a_name_too_long_for_a_label_is_refused_and_nothing_is_made() {
    let mut world = world(1);
    let name = "p".repeat(64);
    world.placement(placement(&name, json!({})));
    let plan = world.plan(&name, at(0));
    assert!(misconfigured(&plan).unwrap().contains("metadata.name has 64 characters"));
    assert_eq!((plan.steps.len(), plan.status.decision_groups.len()), (0, 0));
}

#[test]
fn a_set_that_cannot_be_read_leaves_decisions_as_they_are_and_the_status_names_it() {
    let mut world = world(2);
    settle(&mut world, json!({}));
    assert_eq!(world.set(set("global", unreadable())).len(), 1);
    let plan = world.settle("p", at(0));
    let (reason, message) = satisfied(&plan);
    assert_eq!(reason, "NotAllDecisionsScheduled");
    assert!(message.contains("ManagedClusterSet global") && message.contains("Like"), "{message}");
    assert_eq!((plan.steps.len(), misconfigured(&plan)), (0, None));
}

#[test]
fn invalid_tolerations_are_reported_as_long_as_a_cluster_meets_the_predicates() {
    let mut world = World::new();
    world.cluster(cluster("c1", &[]));
    world.cluster(cluster("c2", &[]));
    let plan = settle(&mut world, json!({"predicates": even(), "tolerations": [{"value": "x"}]}));
    assert_eq!(misconfigured(&plan), None);
    assert_eq!(world.cluster(cluster("c3", &[("parity", "even")])).len(), 1);
    let problem = misconfigured(&world.settle("p", at(0))).unwrap();
    assert!(problem.contains("spec.tolerations[0].key"), "{problem}");
    assert_eq!(world.no_cluster("c3").len(), 1);
    assert_eq!(misconfigured(&world.settle("p", at(0))), None);
}

#[test]
fn beside_a_set_that_cannot_be_read_a_cluster_that_goes_is_left_out_once_the_set_is_put_right() {
    let mut world = world(2);
    settle(&mut world, json!({}));
    world.set(set("special", unreadable()));
    assert_eq!(world.bind("special").len(), 1);
    world.settle("p", at(0));
    world.no_cluster("c000");
    assert_eq!((world.settle("p", at(0)).steps, world.decided("p").len()), (vec![], 2));
    assert_eq!(world.set(set("special", json!({}))).len(), 1);
    world.settle("p", at(0));
    assert_eq!(world.decided("p"), ["c001"]);
}

#[test]
fn decisions_that_stay_belong_to_the_first_group_unless_their_label_says_otherwise() {
    let mut world = world(2);
    for (number, index) in [(1, None), (2, Some("x")), (3, Some("1"))] {
        let name = format!("p-decision-{number}");
        let desired =
            DesiredDecision { name, group: String::new(), index: String::new(), clusters: vec!["c000".into()] };
        let mut old = decision("p", &desired, true);
        old.labels_mut().retain(|key, _| key == PLACEMENT);
        old.labels_mut().extend(index.map(|index| (DECISION_GROUP_INDEX.to_owned(), index.to_owned())));
        world.decision(old);
    }
    world.set(set("global", unreadable()));
    let plan = settle(&mut world, json!({}));
    assert_eq!(plan.desired.iter().map(|desired| &*desired.index).collect::<Vec<_>>(), ["0", "0", "1"]);
    let groups: Vec<_> = plan.status.decision_groups.iter().map(|group| group.decisions.len()).collect();
    assert_eq!(groups, [2, 1]);
    assert!(plan.steps.iter().all(|step| matches!(step, Step::Label(_))), "{:?}", plan.steps);
}
