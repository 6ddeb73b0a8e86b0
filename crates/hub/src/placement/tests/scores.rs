//! Placements that prefer clusters by scores of add-ons.

use proptest::{collection::vec, option, prelude::*};
use serde_json::{Value, json};

use super::{satisfied, settle, world};
use crate::placement::{
    plan::Plan,
    testing::{World, at, cluster, key, placement, scores},
};

/// One cluster, the one with the highest score `cpu` in `usage`.
fn best() -> Value {
    let coordinate = json!({"type": "AddOn", "addOn": {"resourceName": "usage", "scoreName": "cpu"}});
    json!({"numberOfClusters": 1,
        "prioritizerPolicy": {"mode": "Exact", "configurations": [{"scoreCoordinate": coordinate}]}})
}

fn cpu(value: i32) -> Value {
    json!({"scores": [{"name": "cpu", "value": value}]})
}

fn until(value: i32, end: i64) -> Value {
    json!({"scores": [{"name": "cpu", "value": value}], "validUntil": at(end)})
}

#[test]
fn the_cluster_with_the_best_score_is_selected_also_if_the_scores_came_first() {
    let mut world = world(3);
    world.scores(scores("c003", cpu(90)));
    world.scores(scores("c001", cpu(10)));
    let plan = settle(&mut world, best());
    assert_eq!(world.decided("p"), ["c001"]);
    assert_eq!(plan.scores, [("c000".into(), 0), ("c001".into(), 10), ("c002".into(), 0)]);
    assert_eq!(world.cluster(cluster("c003", &[])), [key("p")]);
    world.settle("p", at(0));
    assert_eq!(world.decided("p"), ["c003"]);
}

#[test]
fn a_change_of_scores_concerns_the_placements_that_use_them() {
    let mut world = world(2);
    settle(&mut world, best());
    world.placement(placement("other", json!({"numberOfClusters": 1})));
    world.settle("other", at(0));
    assert_eq!(world.scores(scores("c001", cpu(5))), [key("p")]);
    world.settle("p", at(0));
    assert_eq!(world.decided("p"), ["c001"]);
    assert_eq!(world.scores(scores("c001", cpu(5))), []);
    let mut unused = scores("c000", cpu(90));
    unused.metadata.name = Some("unused".into());
    assert_eq!(world.scores(unused), []);
    assert_eq!(world.scores(scores("nowhere", cpu(90))), []);
    assert_eq!(world.no_scores("c001"), [key("p")]);
}

#[test]
fn a_score_that_expires_counts_as_0_from_then_on_and_the_placement_is_planned_then() {
    let mut world = world(2);
    world.scores(scores("c001", until(50, 60)));
    let plan = settle(&mut world, best());
    assert_eq!((world.decided("p"), plan.requeue_after.unwrap().as_millis()), (vec!["c001".to_owned()], 60_001));
    assert_eq!((plan.expired, satisfied(&plan_at(&world, 60)).0.as_str()), (None, "AllDecisionsScheduled"));
    assert_eq!(plan_at(&world, 60).expired, None);
    let over = world.settle("p", at(61));
    assert_eq!((world.decided("p"), over.requeue_after), (vec!["c000".to_owned()], None));
    let expired = over.expired.clone().unwrap();
    assert_eq!(expired, "These AddOnPlacementScores have expired and count as 0: c001/usage");
    assert!(satisfied(&over).1.ends_with(&expired), "{}", satisfied(&over).1);
}

fn plan_at(world: &World, seconds: i64) -> Plan {
    world.plan("p", at(seconds))
}

#[test]
fn of_many_expired_scores_only_some_are_named() {
    let mut world = world(8);
    for index in 0..8 {
        world.scores(scores(&format!("c00{index}"), until(1, -1)));
    }
    let expired = settle(&mut world, best()).expired.unwrap();
    assert!(expired.ends_with("c004/usage and 3 more"), "{expired}");
}

/// What happens to clusters and their scores.
#[derive(Clone, Debug)]
enum Event {
    Cluster { name: usize, is_noted: bool },
    NoCluster { name: usize },
    Scores { name: usize, value: i32, valid_for: Option<i64> },
    NoScores { name: usize },
    Passes { seconds: i64 },
}

fn event() -> impl Strategy<Value = Event> {
    let name = || 0..4_usize;
    prop_oneof![
        2 => (name(), any::<bool>()).prop_map(|(name, is_noted)| Event::Cluster { name, is_noted }),
        1 => name().prop_map(|name| Event::NoCluster { name }),
        4 => (name(), -3..4_i32, option::of(1..60_i64))
            .prop_map(|(name, value, valid_for)| Event::Scores { name, value, valid_for }),
        1 => name().prop_map(|name| Event::NoScores { name }),
        2 => (1..40_i64).prop_map(|seconds| Event::Passes { seconds }),
    ]
}

/// Applies an event at that second. Returns whether the placement is affected.
fn happen(world: &mut World, now: &mut i64, event: &Event) -> bool {
    let name = |name: usize| format!("c{name}");
    let affected = match event {
        Event::Cluster { name: one, is_noted } => {
            world.cluster(cluster(&name(*one), if *is_noted { &[("note", "x")] } else { &[] }))
        }
        Event::NoCluster { name: one } if world.has_cluster(&name(*one)) => world.no_cluster(&name(*one)),
        Event::Scores { name: one, value, valid_for } => {
            let status = match valid_for {
                Some(seconds) => until(*value, *now + seconds),
                None => cpu(*value),
            };
            world.scores(scores(&name(*one), status))
        }
        Event::NoScores { name: one } if world.has_scores(&name(*one)) => world.no_scores(&name(*one)),
        Event::Passes { seconds } => {
            *now += seconds;
            Vec::new()
        }
        Event::NoCluster { .. } | Event::NoScores { .. } => Vec::new(),
    };
    !affected.is_empty()
}

proptest! {
    #[test]
    fn nothing_changes_unless_the_placement_is_affected_or_due(
        uses_cel in any::<bool>(),
        events in vec(event(), 1..40),
    ) {
        let (mut world, mut now) = (World::new(), 0);
        let mut spec = best();
        if uses_cel {
            let expression = "managedCluster.scores('usage').all(s, s.value >= 0)";
            spec["predicates"] =
                json!([{"requiredClusterSelector": {"celSelector": {"celExpressions": [expression]}}}]);
        }
        world.placement(placement("p", spec));
        let again = |plan: &Plan, now: i64| plan.requeue_after.map(|after| at(now) + after);
        let first = world.settle("p", at(0));
        let (mut due, mut expired) = (again(&first, 0), first.expired);
        for event in &events {
            let is_affected = happen(&mut world, &mut now, event);
            let plan = world.plan("p", at(now));
            if is_affected || due.is_some_and(|due| due <= at(now)) {
                world.settle("p", at(now));
                (due, expired) = (again(&plan, now), plan.expired);
            } else {
                prop_assert_eq!(&plan.steps, &vec![], "the placement was not affected by {:?}", event);
                prop_assert_eq!((again(&plan, now), plan.expired), (due, expired.clone()));
            }
        }
    }
}
