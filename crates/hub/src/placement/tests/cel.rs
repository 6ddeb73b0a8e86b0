//! Placements that select clusters by CEL expressions.

use ocm_api::cluster::v1::ManagedCluster;
use serde_json::{Value, json};

use super::{even, misconfigured, satisfied, settle, world};
use crate::placement::{
    planning::{InPlanning, PlanningLock},
    testing::{World, at, cluster, key, placement, scores},
};

fn cel(expressions: &[&str]) -> Value {
    json!({"predicates": [{"requiredClusterSelector": {"celSelector": {"celExpressions": expressions}}}]})
}

fn with_version(name: &str, version: &str) -> ManagedCluster {
    let mut cluster = cluster(name, &[]);
    cluster.status = Some(serde_json::from_value(json!({"version": {"kubernetes": version}})).unwrap());
    cluster
}

#[test]
fn clusters_of_which_all_expressions_are_true_are_selected() {
    let mut world = world(4);
    let expressions = ["managedCluster.metadata.labels.parity == 'odd'", "managedCluster.metadata.name > 'c001'"];
    let plan = settle(&mut world, cel(&expressions));
    assert_eq!((world.decided("p"), misconfigured(&plan)), (vec!["c003".to_owned()], None));
}

#[test]
fn a_label_selector_beside_expressions_must_match_too() {
    let mut world = world(4);
    let mut spec = json!({"predicates": even()});
    spec["predicates"][0]["requiredClusterSelector"]["celSelector"] =
        json!({"celExpressions": ["managedCluster.metadata.name > 'c000'"]});
    settle(&mut world, spec);
    assert_eq!(world.decided("p"), ["c002"]);
}

#[test]
fn an_invalid_expression_empties_the_decisions_and_one_without_a_value_selects_nothing() {
    let mut world = world(2);
    settle(&mut world, json!({}));
    let plan = settle(&mut world, cel(&["true", "managedCluster.metadata.("]));
    let problem = misconfigured(&plan).unwrap();
    let field = "spec.predicates[0].requiredClusterSelector.celSelector.celExpressions[1]: compilation failed: ";
    assert!(problem.starts_with(field), "{problem}");
    assert_eq!(world.decided("p"), [""; 0]);
    let plan = settle(&mut world, cel(&["managedCluster.status.version.kubernetes != ''"]));
    assert_eq!((misconfigured(&plan), satisfied(&plan).0.as_str()), (None, "NoManagedClusterMatched"));
}

#[test]
fn any_field_of_a_cluster_counts_but_only_for_placements_with_expressions_that_it_decides() {
    let mut world = World::new();
    world.cluster(with_version("c1", "v1.30.0"));
    settle(&mut world, json!({}));
    assert_eq!(world.cluster(with_version("c1", "v1.31.0")), []);
    world.placement(placement("new", cel(&["managedCluster.status.version.kubernetes.startsWith('v1.32')"])));
    world.settle("new", at(0));
    assert_eq!(world.decided("new"), [""; 0]);
    assert_eq!(world.cluster(with_version("c1", "v1.32.0")), [key("new")]);
    world.settle("new", at(0));
    assert_eq!(world.decided("new"), ["c1"]);
    assert_eq!(world.cluster(with_version("c1", "v1.32.1")), [], "it still matches");
    assert_eq!(world.cluster(with_version("c1", "v1.33.0")), [key("new")]);
}

#[test]
fn scores_that_only_an_expression_reads_count_when_they_change() {
    let mut world = world(2);
    world
        .placement(placement("p", cel(&["managedCluster.scores('usage').exists(s, s.name == 'cpu' && s.value > 50)"])));
    world.settle("p", at(0));
    assert_eq!(world.decided("p"), [""; 0]);
    let of = |value: i32| json!({"scores": [{"name": "cpu", "value": value}]});
    assert_eq!(world.scores(scores("c001", of(60))), [key("p")]);
    world.settle("p", at(0));
    assert_eq!(world.decided("p"), ["c001"]);
    assert_eq!(world.scores(scores("c001", of(70))), []);
    assert_eq!(world.no_scores("c001"), [key("p")]);
    world.settle("p", at(0));
    assert_eq!(world.decided("p"), [""; 0]);
}

#[test]
fn documents_of_clusters_are_kept_only_while_a_placement_has_expressions() {
    let mut world = world(1);
    let has_document = |world: &World, placement: &str| {
        let snapshot = world.index.snapshot(&key(placement)).unwrap();
        snapshot.inputs.clusters["c000"].document.is_some()
    };
    settle(&mut world, json!({}));
    assert!(!has_document(&world, "p"));
    world.placement(placement("cel", cel(&["true"])));
    assert!(has_document(&world, "p"));
    world.cluster(cluster("c000", &[("more", "x")]));
    assert!(has_document(&world, "p"));
    world.no_placement("cel");
    assert!(!has_document(&world, "p"));
}

#[tokio::test]
async fn planning_evaluates_expressions_beforehand_so_that_others_are_planned_in_between() {
    let mut world = world(3);
    world.placement(placement("p", cel(&["managedCluster.metadata.name != ''"])));
    let find = |_: &_| Some(world.object("p"));
    let (lock, key) = (PlanningLock::default(), key("p"));
    let mut begin = std::pin::pin!(InPlanning::begin(&lock, &world.index, &key, find));
    let mut polls = 0;
    std::future::poll_fn(|context| {
        polls += 1;
        std::future::Future::poll(begin.as_mut(), context).map(|planning| assert!(planning.is_some()))
    })
    .await;
    assert_eq!(polls, 4, "once after each cluster, and once more");
    let snapshot = world.index.snapshot(&key).unwrap().inputs;
    assert!(snapshot.clusters.values().all(|cluster| !snapshot.rules.evaluate(cluster)));
}
