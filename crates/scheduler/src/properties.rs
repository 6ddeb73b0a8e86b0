//! What an explanation and the selection it explains have in common.

use std::collections::BTreeMap;

use jiff::Timestamp;
use ocm_api::cluster::{
    v1::ManagedCluster,
    v1alpha1::AddOnPlacementScore,
    v1beta1::{Placement, PlacementDecision},
    v1beta2::{ManagedClusterSet, ManagedClusterSetBinding},
};
use proptest::{collection::vec, option, prelude::*};
use serde_json::{Value, from_value, json};

use crate::{
    explain::{Explanation, Verdict, explain},
    facts::Name,
    rules::Rules,
    schedule::{PREDICATE, ScheduleContext, TAINT_TOLERATION, schedule},
    snapshot::{Objects, Snapshot},
};

pub(crate) fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

/// A cluster of a fleet in which few things vary, so that many of them meet some rule.
fn cluster() -> impl Strategy<Value = Value> {
    let taint =
        (prop::sample::select(vec!["a", "b"]), effect(), option::of(-100..0_i64)).prop_map(|(key, effect, added)| {
            let added = added.map(|seconds| now() + jiff::SignedDuration::from_secs(seconds));
            json!({"key": key, "effect": effect, "timeAdded": added})
        });
    (value(), value(), vec(taint, 0..3), option::of(1..9_u8), any::<bool>()).prop_map(
        |(label, claim, taints, cpu, is_in_set)| {
            let amount = json!(cpu.map_or(json!({}), |cpu| json!({"cpu": cpu.to_string()})));
            json!({
                "metadata": {"labels": {"l": label, "in": is_in_set.to_string()}},
                "spec": {"hubAcceptsClient": true, "taints": taints},
                "status": {"clusterClaims": [{"name": "c", "value": claim}], "allocatable": amount, "capacity": amount},
            })
        },
    )
}

fn effect() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["NoSelect", "PreferNoSelect", "NoSelectIfNew"])
}

fn value() -> impl Strategy<Value = String> {
    (0..3_u8).prop_map(|value| value.to_string())
}

fn requirement(key: &'static str) -> impl Strategy<Value = Value> {
    let operator = prop::sample::select(vec!["In", "NotIn", "Exists", "DoesNotExist", "Like"]);
    (operator, value()).prop_map(move |(operator, value)| {
        let values = if operator.ends_with("In") { json!([value]) } else { json!([]) };
        json!({"key": key, "operator": operator, "values": values})
    })
}

fn predicate() -> impl Strategy<Value = Value> {
    let cel = prop::sample::subsequence(
        vec![
            "managedCluster.metadata.labels.l != '0'",
            "managedCluster.scores('r')[0].value > 0",
            "managedCluster.status.allocatable.cpu == '2'",
        ],
        0..2,
    );
    (vec(requirement("l"), 0..2), vec(requirement("c"), 0..2), cel).prop_map(|(labels, claims, cel)| {
        json!({"requiredClusterSelector": {"labelSelector": {"matchExpressions": labels},
            "claimSelector": {"matchExpressions": claims}, "celSelector": {"celExpressions": cel}}})
    })
}

fn toleration() -> impl Strategy<Value = Value> {
    let key = option::of(prop::sample::select(vec!["a", "b"]));
    (key, option::of(effect()), option::of(0..120_i64)).prop_map(|(key, effect, seconds)| {
        json!({"key": key, "operator": "Exists", "effect": effect, "tolerationSeconds": seconds})
    })
}

fn prioritizer() -> impl Strategy<Value = Value> {
    let built_in = ["Balance", "Steady", "ResourceAllocatableCPU", "ResourceAllocatableMemory"];
    let built_in = built_in.map(|name| json!({"type": "BuiltIn", "builtIn": name}));
    let addon = json!({"type": "AddOn", "addOn": {"resourceName": "r", "scoreName": "s"}});
    let coordinates: Vec<_> = built_in.into_iter().chain([addon]).collect();
    (prop::sample::select(coordinates), -10..=10_i32)
        .prop_map(|(coordinate, weight)| json!({"scoreCoordinate": coordinate, "weight": weight}))
}

/// The scores that an add-on gives some cluster, which may have expired.
fn score() -> impl Strategy<Value = AddOnPlacementScore> {
    (0..8_usize, -100..=100_i32, option::of(-9..9_i64)).prop_map(|(cluster, score, end)| {
        let end = end.map(|seconds| now() + jiff::SignedDuration::from_secs(seconds));
        from_value(json!({
            "metadata": {"name": "r", "namespace": format!("c{cluster}")},
            "status": {"scores": [{"name": "s", "value": score}], "validUntil": end},
        }))
        .unwrap()
    })
}

fn placement() -> impl Strategy<Value = Placement> {
    let wanted = option::of(-1..6_i32);
    (vec(predicate(), 0..3), vec(toleration(), 0..3), vec(prioritizer(), 0..3), wanted).prop_map(
        |(predicates, tolerations, prioritizers, wanted)| {
            let spec = json!({"predicates": predicates, "tolerations": tolerations, "numberOfClusters": wanted,
                "prioritizerPolicy": {"configurations": prioritizers}});
            from_value(json!({"metadata": {"name": "p", "namespace": "n"}, "spec": spec})).unwrap()
        },
    )
}

/// Decisions that list some of the clusters.
fn decision() -> impl Strategy<Value = PlacementDecision> {
    let placement = prop::sample::select(vec!["p", "other"]);
    (placement, vec(0..8_usize, 0..5)).prop_map(|(placement, listed)| {
        let listed: Vec<_> =
            listed.into_iter().map(|number| json!({"clusterName": format!("c{number}"), "reason": ""})).collect();
        from_value(json!({
            "metadata": {"name": "d", "namespace": "n",
                "labels": {"cluster.open-cluster-management.io/placement": placement}},
            "status": {"decisions": listed},
        }))
        .unwrap()
    })
}

/// Some clusters, of which those with the label are in the set that is bound.
pub(crate) fn snapshot() -> impl Strategy<Value = Snapshot> {
    let objects = (vec(cluster(), 0..8), vec(decision(), 0..3), vec(score(), 0..8));
    (placement(), objects).prop_map(|(placement, (clusters, decisions, scores))| {
        let named = |(number, mut cluster): (usize, Value)| {
            cluster["metadata"]["name"] = json!(format!("c{number}"));
            from_value::<ManagedCluster>(cluster).unwrap()
        };
        let clusters: Vec<_> = clusters.into_iter().enumerate().map(named).collect();
        let selector = json!({"selectorType": "LabelSelector", "labelSelector": {"matchLabels": {"in": "true"}}});
        let set: ManagedClusterSet =
            from_value(json!({"metadata": {"name": "s"}, "spec": {"clusterSelector": selector}})).unwrap();
        let binding: ManagedClusterSetBinding =
            from_value(json!({"metadata": {"name": "s", "namespace": "n"}, "spec": {"clusterSet": "s"}})).unwrap();
        let objects =
            Objects { clusters: &clusters, sets: &[set], bindings: &[binding], decisions: &decisions, scores: &scores };
        Snapshot::of(&placement, &objects, now())
    })
}

fn verdicts(explanation: &Explanation) -> BTreeMap<Name, &Verdict> {
    explanation.clusters.iter().map(|one| (one.name.clone(), &one.verdict)).collect()
}

proptest! {
    #[test]
    fn a_filter_admits_exactly_the_clusters_that_it_has_nothing_to_say_against(snapshot in snapshot()) {
        let Rules { predicates, tolerations, .. } = &*snapshot.rules;
        let context = ScheduleContext::of(&snapshot, now());
        for (name, cluster) in &*snapshot.clusters {
            if let Ok(predicates) = predicates {
                let admits = predicates.why_not(cluster).is_none();
                prop_assert_eq!(predicates.admits_at_once(cluster), Some(admits));
                prop_assert_eq!(predicates.admits(cluster), admits);
            }
            if let Ok(tolerations) = tolerations {
                let is_decided = context.has_decided(name);
                let why_not = tolerations.why_not(&cluster.taints, is_decided, now());
                prop_assert_eq!(tolerations.admits(&cluster.taints, is_decided, now()), why_not.is_none());
            }
        }
    }

    #[test]
    fn an_explanation_agrees_with_the_selection_in_every_cluster(snapshot in snapshot()) {
        let (schedule, explanation) = (schedule(&snapshot, now()), explain(&snapshot, now()));
        let verdicts = verdicts(&explanation);
        prop_assert_eq!(verdicts.len(), snapshot.clusters.len());
        let chosen: Vec<_> = schedule.selection.chosen.iter().map(|one| one.name.clone()).collect();
        let mut selected = Vec::new();
        for (name, verdict) in &verdicts {
            let is_candidate = schedule.candidates.iter().any(|one| one.name == name);
            prop_assert_eq!(is_candidate, !matches!(verdict, Verdict::NotEligible { .. }));
            let sum = schedule.selection.scores.iter().find(|(scored, _)| scored == name).map(|(_, sum)| *sum);
            if let Verdict::Undecided = verdict {
                prop_assert!(schedule.problem.is_some());
            }
            let Verdict::Ranked { scores, sum: explained, rank, is_selected, .. } = verdict else {
                prop_assert_eq!(sum, None);
                continue;
            };
            prop_assert_eq!(Some(*explained), sum);
            let weighted = scores.iter().zip(&explanation.prioritizers);
            let total: i64 = weighted.map(|(score, prioritizer)| score.score * i64::from(prioritizer.weight)).sum();
            prop_assert_eq!(total, *explained);
            if *is_selected {
                selected.push((*rank, name.clone()));
            }
        }
        if explanation.problem.is_none() {
            let passed: Vec<_> = schedule.selection.scores.iter().map(|(name, _)| name.clone()).collect();
            prop_assert_eq!(explanation.filters.iter().map(|filter| filter.name).collect::<Vec<_>>(), [PREDICATE, TAINT_TOLERATION]);
            prop_assert_eq!(&explanation.filters[1].left, &passed);
            prop_assert!(passed.iter().all(|name| explanation.filters[0].left.contains(name)));
        }
        selected.sort_unstable();
        prop_assert_eq!(selected.iter().map(|(_, name)| name.clone()).collect::<Vec<_>>(), chosen);
        prop_assert!(selected.iter().map(|(rank, _)| *rank).eq(1..=selected.len()));
        prop_assert_eq!((explanation.problem, explanation.decisions), (schedule.problem, schedule.decisions));
    }
}
