use ocm_api::cluster::{
    v1::ManagedCluster,
    v1beta1::Placement,
    v1beta2::{ManagedClusterSet, ManagedClusterSetBinding},
};
use proptest::prelude::*;
use serde_json::{from_value, json};

use super::*;
use crate::{
    explain::{Verdict, explain},
    properties::{now, snapshot},
    snapshot::Objects,
};

/// A placement with this spec in namespace `apps`, to which set `blue` is bound, and clusters with these labels and specs.
fn world(spec: &Value, clusters: &[(&str, Value, Value)]) -> Snapshot {
    let placement: Placement =
        from_value(json!({"metadata": {"name": "p", "namespace": "apps"}, "spec": spec})).unwrap();
    let cluster = |(name, labels, taints): &(&str, Value, Value)| {
        let spec = json!({"hubAcceptsClient": true, "taints": taints});
        from_value::<ManagedCluster>(json!({"metadata": {"name": name, "labels": labels}, "spec": spec})).unwrap()
    };
    let clusters: Vec<_> = clusters.iter().map(cluster).collect();
    let set = |name: &str| from_value::<ManagedClusterSet>(json!({"metadata": {"name": name}, "spec": {}})).unwrap();
    let binding = json!({"metadata": {"name": "blue", "namespace": "apps"}, "spec": {"clusterSet": "blue"}});
    let binding: ManagedClusterSetBinding = from_value(binding).unwrap();
    let objects =
        Objects { clusters: &clusters, sets: &[set("blue"), set("red")], bindings: &[binding], ..Objects::default() };
    Snapshot::of(&placement, &objects, now())
}

fn advice(snapshot: &Snapshot, cluster: &str) -> Option<Vec<String>> {
    smallest_change(snapshot, cluster, now()).map(|changes| changes.iter().map(ToString::to_string).collect())
}

fn in_set(set: &str) -> Value {
    json!({ CLUSTER_SET: set })
}

#[test]
fn a_selected_cluster_needs_no_change_and_one_that_does_not_exist_has_none() {
    let world = world(&json!({}), &[("c1", in_set("blue"), json!([]))]);
    assert_eq!(advice(&world, "c1"), Some(vec![]));
    assert_eq!(advice(&world, "absent"), None);
}

#[test]
fn a_cluster_of_another_set_needs_a_binding_and_one_of_no_set_a_label() {
    let world =
        world(&json!({"clusterSets": ["blue"]}), &[("c1", in_set("red"), json!([])), ("c2", json!({}), json!([]))]);
    let bound = ["label the cluster cluster.open-cluster-management.io/clusterset=blue"];
    assert_eq!(advice(&world, "c2").unwrap(), bound);
    assert_eq!(advice(&world, "c1").unwrap(), bound, "one change, where the other way needs two");
    let all_sets = self::world(&json!({}), &[("c1", in_set("red"), json!([]))]);
    assert_eq!(advice(&all_sets, "c1").unwrap(), ["bind ManagedClusterSet red to the placement's namespace"]);
}

#[test]
fn of_several_predicates_the_one_is_met_that_needs_the_fewest_labels() {
    let spec = json!({"predicates": [
        {"requiredClusterSelector": {"labelSelector": {"matchLabels": {"env": "prod", "tier": "web"}}}},
        {"requiredClusterSelector": {"labelSelector": {"matchLabels": {"edge": "yes"}}}},
    ]});
    let world = world(&spec, &[("c1", in_set("blue"), json!([]))]);
    assert_eq!(advice(&world, "c1").unwrap(), ["label the cluster edge=yes"]);
}

#[test]
fn each_taint_is_tolerated_and_a_cluster_behind_the_cut_needs_a_higher_number() {
    let taints =
        json!([{"key": "gpu", "value": "yes", "effect": "NoSelect"}, {"key": "old", "effect": "NoSelectIfNew"}]);
    let clusters = [("c1", in_set("blue"), json!([])), ("c2", in_set("blue"), taints)];
    let world = world(&json!({"numberOfClusters": 1}), &clusters);
    let expected = [
        "tolerate taint gpu=yes:NoSelect in spec.tolerations, or remove it",
        "tolerate taint old:NoSelectIfNew in spec.tolerations, or remove it",
        "raise spec.numberOfClusters to 2",
    ];
    assert_eq!(advice(&world, "c2").unwrap(), expected);
}

#[test]
fn what_only_an_expression_decides_has_no_known_change_unless_labels_decide_it() {
    let spec = |expression: &str| {
        json!({"predicates": [{"requiredClusterSelector": {
            "labelSelector": {"matchLabels": {"env": "prod"}}, "celSelector": {"celExpressions": [expression]}}}]})
    };
    let clusters = [("c1", in_set("blue"), json!([]))];
    assert_eq!(advice(&world(&spec("managedCluster.metadata.name == 'other'"), &clusters), "c1"), None);
    let by_label = world(&spec("managedCluster.metadata.labels.env == 'prod'"), &clusters);
    assert_eq!(advice(&by_label, "c1").unwrap(), ["label the cluster env=prod"]);
}

#[test]
fn what_one_predicate_needs_is_left_out_if_another_one_does_without() {
    let spec = json!({"predicates": [
        {"requiredClusterSelector": {"labelSelector": {"matchLabels": {"env": "prod", "tier": "1"}}}},
        {"requiredClusterSelector": {"celSelector": {"celExpressions": ["managedCluster.metadata.labels.env != 'test'"]}}}]});
    let clusters = [("c1", json!({"cluster.open-cluster-management.io/clusterset": "blue", "env": "test"}), json!([]))];
    assert_eq!(advice(&world(&spec, &clusters), "c1").unwrap(), ["label the cluster env=prod"]);
}

#[test]
fn points_are_counted_to_the_last_selected_cluster_and_one_more_if_that_has_the_first_name() {
    let spec = |steady: i32| {
        json!({"numberOfClusters": 1, "prioritizerPolicy": {"configurations": [
            {"scoreCoordinate": {"type": "BuiltIn", "builtIn": "Steady"}, "weight": steady}]}})
    };
    let clusters = ["c1", "c2", "c3"].map(|name| (name, in_set("blue"), json!([])));
    let mut world = world(&spec(1), &clusters);
    assert_eq!(explain(&world, now()).points_needed("c2"), Some(1));
    assert_eq!(explain(&world, now()).points_needed("c1"), None);
    world.decided = [("d".to_owned(), vec!["c2".into()])].into();
    let explanation = explain(&world, now());
    assert_eq!(["c1", "c2", "c3"].map(|name| explanation.points_needed(name)), [Some(100), None, Some(101)]);
}

proptest! {
    #[test]
    fn the_smallest_change_selects_the_cluster_and_leaving_any_part_of_it_out_does_not(snapshot in snapshot()) {
        for name in snapshot.clusters.keys() {
            let Some(changes) = smallest_change(&snapshot, name, now()) else { continue };
            prop_assert!(selects(&snapshot, name, &changes, now()), "{name}: {changes:?}");
            for left_out in 0..changes.len() {
                let mut fewer = changes.clone();
                fewer.remove(left_out);
                prop_assert!(!selects(&snapshot, name, &fewer, now()), "{name}: {fewer:?} of {changes:?}");
            }
        }
    }

    #[test]
    fn a_cluster_that_fits_or_is_removed_by_its_taints_can_always_be_selected(snapshot in snapshot()) {
        for one in explain(&snapshot, now()).clusters {
            let is_selectable = match &one.verdict {
                Verdict::Ranked { .. } => true,
                Verdict::Removed { filter, .. } => *filter == "TaintToleration",
                _ => false,
            };
            let is_valid = snapshot.rules.problems().is_empty();
            prop_assert!(!(is_selectable && is_valid) || smallest_change(&snapshot, &one.name, now()).is_some());
        }
    }
}
