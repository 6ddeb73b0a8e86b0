//! What is planned for placements, from what the watches bring.

mod cel;
mod frozen;
mod scores;
mod writes;

use ocm_api::labels::CLUSTER_SET;
use serde_json::{Value, json};

use super::{
    plan::{Plan, Step},
    testing::{World, at, cluster, placement, set, tainted},
};

fn world(clusters: usize) -> World {
    let mut world = World::new();
    for index in 0..clusters {
        let parity = if index % 2 == 0 { "even" } else { "odd" };
        world.cluster(cluster(&format!("c{index:03}"), &[("parity", parity)]));
    }
    world
}

/// Creates a placement with this spec, plans it, and carries out the plan.
fn settle(world: &mut World, spec: Value) -> Plan {
    world.placement(placement("p", spec));
    world.settle("p", at(0))
}

fn even() -> Value {
    json!([{"requiredClusterSelector": {"labelSelector": {"matchLabels": {"parity": "even"}}}}])
}

/// `type=status reason` of both conditions.
fn conditions(plan: &Plan) -> Vec<String> {
    let line = |condition: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition| {
        format!("{}={} {}", condition.type_, condition.status, condition.reason)
    };
    plan.status.conditions.iter().map(line).collect()
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
fn the_status_says_how_many_clusters_are_missing() {
    let mut world = world(3);
    let plan = settle(&mut world, json!({"numberOfClusters": 5}));
    let (reason, message) = satisfied(&plan);
    assert_eq!(reason, "NotAllDecisionsScheduled");
    assert!(message.starts_with("3 clusters are selected, 2 more are requested"), "{message}");
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
        assert_eq!((plan.desired.len(), plan.desired[0].clusters.len()), (1, 0));
        assert_eq!(plan.status.decision_groups[0].clusters_count, 0);
    }
}

#[test]
fn without_a_binding_an_intersection_or_a_member_nothing_is_selected_and_the_status_says_why() {
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

/// Ten placements of two clusters each, out of ten clusters.
fn crowded() -> World {
    let mut world = world(10);
    for index in 0..10 {
        let name = format!("p{index}");
        world.placement(placement(&name, json!({"numberOfClusters": 2})));
        world.settle(&name, at(0));
    }
    world
}

#[test]
fn placements_share_the_clusters_evenly() {
    let world = crowded();
    let mut all: Vec<_> = (0..10).flat_map(|index| world.decided(&format!("p{index}"))).collect();
    all.sort_unstable();
    let times: Vec<_> = all.chunk_by(|one, other| one == other).map(<[String]>::len).collect();
    assert_eq!(times, [2; 10]);
}

#[test]
fn a_hub_that_starts_over_settled_placements_with_nothing_to_gain_moves_nothing() {
    let mut world = crowded().restarted();
    for index in 0..10 {
        assert_eq!(world.settle(&format!("p{index}"), at(3600)).steps, [], "p{index}");
    }
}

#[test]
fn a_plan_counts_for_others_before_it_is_written() {
    let mut world = world(4);
    world.placement(placement("one", json!({"numberOfClusters": 2})));
    world.placement(placement("two", json!({"numberOfClusters": 2})));
    let one = world.plan("one", at(0));
    world.index.record_plan(&super::testing::key("one"), one.desired, one.status);
    world.settle("two", at(0));
    assert_eq!(world.decided("two"), ["c002", "c003"]);
}

#[test]
fn a_placement_is_planned_again_when_a_toleration_with_a_time_limit_ends() {
    let mut world = World::new();
    world.cluster(tainted(cluster("c1", &[]), "sick", "NoSelect"));
    let tolerate = json!({"tolerations": [{"key": "sick", "operator": "Exists", "tolerationSeconds": 60}]});
    let plan = settle(&mut world, tolerate);
    assert_eq!(plan.requeue_after.unwrap().as_secs(), 60);
    assert_eq!(world.decided("p"), ["c1"]);
    assert_eq!(world.settle("p", at(59)).requeue_after.unwrap().as_secs(), 1);
    let over = world.settle("p", at(60));
    assert_eq!((over.requeue_after, satisfied(&over).0.as_str()), (None, "NoManagedClusterMatched"));
    assert_eq!(world.decided("p"), [""; 0]);
}

#[test]
fn a_taint_without_a_time_counts_from_when_it_was_first_seen() {
    let mut world = world(1);
    let tolerate = json!({"tolerations": [{"key": "sick", "operator": "Exists", "tolerationSeconds": 60}]});
    settle(&mut world, tolerate);
    let mut sick = tainted(cluster("c000", &[]), "sick", "NoSelect");
    sick.spec.taints[0].time_added = None;
    world.now = 100;
    assert_eq!(world.cluster(sick.clone()).len(), 1);
    assert_eq!(world.settle("p", at(100)).requeue_after.unwrap().as_secs(), 60);
    assert_eq!(world.decided("p"), ["c000"], "it is not evicted at once");
    world.now = 130;
    sick.metadata.labels = Some([("other".to_owned(), "change".to_owned())].into());
    world.cluster(sick);
    assert_eq!(world.settle("p", at(159)).requeue_after.unwrap().as_secs(), 1, "another change does not extend it");
    world.settle("p", at(160));
    assert_eq!(world.decided("p"), [""; 0]);
}

/// The clusters that the first decision of a plan lists.
fn listed(plan: &Plan) -> Vec<&str> {
    plan.desired[0].clusters.iter().map(|name| &**name).collect()
}

#[tokio::test]
async fn placements_that_are_planned_at_the_same_time_choose_as_if_one_after_another() {
    use crate::placement::{
        planning::{InPlanning, PlanningLock},
        testing::key,
    };

    let mut world = world(16);
    let names: Vec<_> = (0..16).map(|index| format!("p{index}")).collect();
    for name in &names {
        world.placement(placement(name, json!({"numberOfClusters": 1})));
    }
    let (world, lock) = (std::sync::Arc::new(world), PlanningLock::default());
    // Every task has its snapshot before any of them goes on, unless the lock keeps it from that.
    let plans = names.into_iter().map(|name| {
        let (world, lock) = (world.clone(), lock.clone());
        tokio::spawn(async move {
            let find = |_: &_| Some(world.object(&name));
            let planning = InPlanning::begin(&lock, &world.index, &key(&name), find).await.unwrap();
            let plan = planning.plan(at(0)).unwrap();
            tokio::task::yield_now().await;
            planning.record(&world.index, &plan);
            plan
        })
    });
    let mut chosen = Vec::new();
    for plan in plans.collect::<Vec<_>>() {
        chosen.extend(listed(&plan.await.unwrap()).into_iter().map(str::to_owned));
    }
    chosen.sort_unstable();
    chosen.dedup();
    assert_eq!(chosen.len(), 16, "{chosen:?}");
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
