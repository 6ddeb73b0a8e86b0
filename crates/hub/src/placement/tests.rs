//! What is planned for placements, from what the watches bring.

use ocm_api::labels::CLUSTER_SET;
use serde_json::{Value, json};

use super::{
    plan::{Plan, Step},
    testing::{World, at, cluster, decision, placement, set, tainted},
};

fn world(clusters: usize) -> World {
    let mut world = World::new();
    for index in 0..clusters {
        let parity = if index % 2 == 0 { "even" } else { "odd" };
        world.cluster(cluster(&format!("c{index:03}"), &[("parity", parity)]));
    }
    world
}

/// Plans a placement of this spec, and does what the plan says.
fn settle(world: &mut World, spec: Value) -> Plan {
    world.placement(placement("p", spec));
    world.settle("p", at(0))
}

fn even() -> Value {
    json!([{"requiredClusterSelector": {"labelSelector": {"matchLabels": {"parity": "even"}}}}])
}

/// `type=status reason` of both conditions.
fn conditions(plan: &Plan) -> Vec<String> {
    let said = |condition: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition| {
        format!("{}={} {}", condition.type_, condition.status, condition.reason)
    };
    plan.status.conditions.iter().map(said).collect()
}

fn satisfied(plan: &Plan) -> (String, String) {
    let found = plan.status.conditions.iter().find(|condition| condition.type_ == "PlacementSatisfied").unwrap();
    (found.reason.clone(), found.message.clone())
}

fn misconfigured(plan: &Plan) -> Option<String> {
    let found = plan.status.conditions.iter().find(|condition| condition.type_ == "PlacementMisconfigured").unwrap();
    (found.status == "True").then(|| found.message.clone())
}

#[test]
fn clusters_that_fit_are_chosen_and_listed_in_a_decision() {
    let mut world = world(4);
    let plan = settle(&mut world, json!({"predicates": even()}));
    assert_eq!(world.decided("p"), ["c000", "c002"]);
    let [Step::Create(made)] = &plan.steps[..] else { panic!("{:?}", plan.steps) };
    assert_eq!((&*made.name, &*made.group, &*made.index), ("p-decision-1", "", "0"));
    let expected = ["PlacementMisconfigured=False Succeedconfigured", "PlacementSatisfied=True AllDecisionsScheduled"];
    assert_eq!(conditions(&plan), expected);
    assert_eq!(plan.status.number_of_selected_clusters, 2);
    assert_eq!(plan.status.decision_groups[0].decisions, ["p-decision-1"]);
    assert_eq!(plan.scores, [("c000".into(), 100), ("c002".into(), 100)]);
}

#[test]
fn what_is_settled_is_planned_again_without_a_step() {
    let mut world = world(4);
    let first = settle(&mut world, json!({"numberOfClusters": 2}));
    let again = world.plan("p", at(3600));
    assert_eq!((again.steps, again.status), (vec![], first.status));
}

#[test]
fn fewer_clusters_than_wanted_are_told_with_their_number() {
    let mut world = world(3);
    let plan = settle(&mut world, json!({"numberOfClusters": 5}));
    let (reason, message) = satisfied(&plan);
    assert_eq!(reason, "NotAllDecisionsScheduled");
    assert!(message.starts_with("3 clusters are chosen, 2 more are wanted"), "{message}");
    assert_eq!(plan.status.number_of_selected_clusters, 3);
}

#[test]
fn no_cluster_that_fits_or_none_wanted_leaves_one_empty_decision() {
    for spec in [
        json!({"predicates": [{"requiredClusterSelector": {"labelSelector": {"matchLabels": {"x": "y"}}}}]}),
        json!({"numberOfClusters": 0}),
    ] {
        let mut world = world(2);
        let plan = settle(&mut world, spec);
        assert_eq!(satisfied(&plan).0, "NoManagedClusterMatched");
        assert_eq!((plan.wanted.len(), plan.wanted[0].clusters.len()), (1, 0));
        assert_eq!(plan.status.decision_groups[0].clusters_count, 0);
    }
}

#[test]
fn without_a_binding_an_intersection_or_a_member_nothing_is_chosen_and_the_reason_told() {
    let mut world = world(2);
    world.set(set("bare", json!({})));
    world.placement(placement("p", json!({"clusterSets": ["bare"]})));
    assert_eq!(
        satisfied(&world.plan("p", at(0))),
        (
            "NoIntersection".into(),
            "None of the ManagedClusterSets in spec.clusterSets is bound to this namespace: bare".into()
        )
    );
    world.bind("bare");
    let (reason, message) = satisfied(&world.plan("p", at(0)));
    assert_eq!((reason.as_str(), message.ends_with(": bare")), ("AllManagedClusterSetsEmpty", true));
    world.unbind("bare");
    world.unbind("global");
    assert_eq!(satisfied(&world.plan("p", at(0))).0, "NoManagedClusterSetBindings");
    world.bind("no-such-set");
    assert_eq!(satisfied(&world.plan("p", at(0))).0, "NoManagedClusterSetBindings");
}

#[test]
fn exclusive_sets_have_the_clusters_whose_label_names_them() {
    let mut world = World::default();
    world.set(set("a", json!({})));
    world.set(set("b", json!({})));
    world.bind("a");
    world.cluster(cluster("c1", &[(CLUSTER_SET, "a")]));
    world.cluster(cluster("c2", &[(CLUSTER_SET, "b")]));
    settle(&mut world, json!({}));
    assert_eq!(world.decided("p"), ["c1"]);
    world.bind("b");
    world.settle("p", at(0));
    assert_eq!(world.decided("p"), ["c1", "c2"]);
}

#[test]
fn a_cluster_that_is_being_deleted_is_no_longer_chosen() {
    let mut world = world(2);
    settle(&mut world, json!({}));
    let mut leaving = cluster("c001", &[]);
    leaving.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at(0)));
    assert_eq!(world.cluster(leaving).len(), 1);
    world.settle("p", at(0));
    assert_eq!(world.decided("p"), ["c000"]);
}

#[test]
fn clusters_already_chosen_are_kept_when_as_good_ones_come() {
    let mut world = World::new();
    for name in ["m", "n"] {
        world.cluster(cluster(name, &[]));
    }
    settle(&mut world, json!({"numberOfClusters": 2}));
    world.cluster(cluster("a", &[]));
    assert_eq!(world.settle("p", at(0)).steps, []);
    assert_eq!(world.decided("p"), ["m", "n"]);
}

#[test]
fn placements_share_the_clusters_evenly() {
    let mut world = world(10);
    for index in 0..10 {
        let name = format!("p{index}");
        world.placement(placement(&name, json!({"numberOfClusters": 2})));
        world.settle(&name, at(0));
    }
    let mut all: Vec<_> = (0..10).flat_map(|index| world.decided(&format!("p{index}"))).collect();
    all.sort_unstable();
    let times: Vec<_> = all.chunk_by(|one, other| one == other).map(<[String]>::len).collect();
    assert_eq!(times, [2; 10]);
}

#[test]
fn a_plan_counts_for_others_before_it_is_written() {
    let mut world = world(4);
    world.placement(placement("one", json!({"numberOfClusters": 2})));
    world.placement(placement("two", json!({"numberOfClusters": 2})));
    let one = world.plan("one", at(0));
    world.index.expect(&super::testing::key("one"), one.wanted, one.status);
    world.settle("two", at(0));
    assert_eq!(world.decided("two"), ["c002", "c003"]);
}

#[test]
fn a_toleration_with_a_time_limit_is_looked_at_again_when_it_ends() {
    let mut world = World::new();
    world.cluster(tainted(cluster("c1", &[]), "sick", "NoSelect"));
    let tolerate = json!({"tolerations": [{"key": "sick", "operator": "Exists", "tolerationSeconds": 60}]});
    let plan = settle(&mut world, tolerate);
    assert_eq!(plan.again.unwrap().as_secs(), 60);
    assert_eq!(world.decided("p"), ["c1"]);
    assert_eq!(world.settle("p", at(59)).again.unwrap().as_secs(), 1);
    let over = world.settle("p", at(60));
    assert_eq!((over.again, satisfied(&over).0.as_str()), (None, "NoManagedClusterMatched"));
    assert_eq!(world.decided("p"), [""; 0]);
}

#[test]
fn a_taint_against_newcomers_spares_the_clusters_that_are_in() {
    let mut world = world(1);
    settle(&mut world, json!({}));
    world.cluster(tainted(cluster("c000", &[]), "full", "NoSelectIfNew"));
    world.cluster(tainted(cluster("c001", &[]), "full", "NoSelectIfNew"));
    world.settle("p", at(0));
    assert_eq!(world.decided("p"), ["c000"]);
}

#[test]
fn a_mistake_empties_the_decisions_and_is_told() {
    for (spec, field) in [
        (json!({"prioritizerPolicy": {"configurations": [{"scoreCoordinate": {"builtIn": "NoSuch"}}]}}), "builtIn"),
        (json!({"numberOfClusters": -1}), "spec.numberOfClusters is -1"),
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
        assert_eq!(plan.wanted.len(), 1);
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
fn what_is_not_built_is_refused_by_name_and_decisions_stay_as_they_are() {
    let addon = json!({"type": "AddOn", "addOn": {"resourceName": "r", "scoreName": "s"}});
    for (spec, field) in [
        (
            json!({"predicates": [{"requiredClusterSelector": {"celSelector": {"celExpressions": ["true"]}}}]}),
            "celSelector",
        ),
        (json!({"prioritizerPolicy": {"configurations": [{"scoreCoordinate": addon}]}}), "scoreCoordinate.type AddOn"),
    ] {
        let mut world = world(3);
        settle(&mut world, json!({"numberOfClusters": 2}));
        let plan = settle(&mut world, spec.clone());
        let problem = misconfigured(&plan).unwrap();
        assert!(problem.contains(field), "{problem}");
        assert_eq!(satisfied(&plan).0, "NotAllDecisionsScheduled");
        assert_eq!((plan.steps.len(), plan.status.number_of_selected_clusters), (0, 2));
        assert_eq!(world.decided("p"), ["c000", "c001"]);
        world.no_cluster("c000");
        world.settle("p", at(0));
        assert_eq!(world.decided("p"), ["c001"], "but not clusters it may no longer choose from");
        world.unbind("global");
        world.settle("p", at(0));
        assert_eq!(world.decided("p"), [""; 0]);
    }
}

#[test]
fn a_refused_placement_without_decisions_gets_an_empty_one() {
    let mut world = world(3);
    let cel = json!({"predicates": [{"requiredClusterSelector": {"celSelector": {"celExpressions": ["true"]}}}]});
    let plan = settle(&mut world, cel);
    assert_eq!(satisfied(&plan).0, "NoManagedClusterMatched");
    assert_eq!((plan.wanted.len(), plan.status.decision_groups.len()), (1, 1));
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
fn a_set_that_cannot_be_read_leaves_decisions_as_they_are_and_is_told() {
    let mut world = world(2);
    settle(&mut world, json!({}));
    let wrong = json!({"selectorType": "LabelSelector", "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}});
    assert_eq!(world.set(set("global", wrong)).len(), 1);
    let plan = world.settle("p", at(0));
    let (reason, message) = satisfied(&plan);
    assert_eq!(reason, "NotAllDecisionsScheduled");
    assert!(message.contains("ManagedClusterSet global") && message.contains("Like"), "{message}");
    assert_eq!((plan.steps.len(), misconfigured(&plan)), (0, None));
}

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
    let mut edited = plan.wanted[0].clone();
    edited.clusters.pop();
    assert_eq!(world.decision(decision("p", &edited, true)).len(), 1);
    assert!(matches!(&world.settle("p", at(0)).steps[..], [Step::List(_)]));
    edited.clone_from(&plan.wanted[0]);
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
    let wanted = world.plan("p", at(0)).wanted.remove(0);
    let mut foreign = decision("p", &wanted, false);
    foreign.metadata.labels = None;
    world.decision(foreign);
    let steps = world.plan("p", at(0)).steps;
    assert!(matches!(&steps[..], [Step::List(_), Step::Label(_)]), "{steps:?}");
}
