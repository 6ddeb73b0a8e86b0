//! Which placements a change can affect.

use kube::ResourceExt as _;
use ocm_api::annotations::PLACEMENT_DISABLE;
use serde_json::{Value, json};

use crate::placement::testing::{World, at, cluster, decision, key, placement, set, tainted};

fn predicate(key: &str, value: &str) -> Value {
    json!([{"requiredClusterSelector": {"labelSelector": {"matchLabels": {key: value}}}}])
}

/// Placements for prod, for dev and for everything, and a cluster of each; all settled.
fn world() -> World {
    let mut world = World::new();
    world.cluster(cluster("prod1", &[("env", "prod")]));
    world.cluster(cluster("dev1", &[("env", "dev")]));
    for (name, spec) in [
        ("all", json!({})),
        ("dev", json!({"predicates": predicate("env", "dev")})),
        ("prod", json!({"predicates": predicate("env", "prod")})),
    ] {
        assert_eq!(world.placement(placement(name, spec)), [key(name)]);
        world.settle(name, at(0));
    }
    world
}

#[test]
fn a_cluster_concerns_the_placements_that_it_fits() {
    let mut world = world();
    assert_eq!(world.cluster(cluster("prod2", &[("env", "prod")])), [key("all"), key("prod")]);
    assert_eq!(world.cluster(cluster("prod2", &[("env", "dev")])), [key("dev"), key("prod")]);
    assert_eq!(world.cluster(cluster("prod2", &[("env", "dev"), ("more", "x")])), []);
    assert_eq!(world.no_cluster("prod2"), [key("all"), key("dev")]);
}

#[test]
fn a_change_of_fields_that_no_placement_uses_concerns_none() {
    let mut world = world();
    let mut noisy = cluster("prod1", &[("env", "prod")]);
    noisy.annotations_mut().insert("a".into(), "b".into());
    noisy.spec.hub_accepts_client = true;
    assert_eq!(world.cluster(noisy.clone()), []);
    noisy.status =
        Some(serde_json::from_value(json!({"allocatable": {"cpu": "4"}, "capacity": {"cpu": "4"}})).unwrap());
    assert_eq!(world.cluster(noisy.clone()), []);
    let resources =
        json!({"prioritizerPolicy": {"configurations": [{"scoreCoordinate": {"builtIn": "ResourceAllocatableCPU"}}]}});
    world.placement(placement("rich", resources));
    noisy.status.as_mut().unwrap().allocatable.insert("cpu".into(), serde_json::from_value(json!("3")).unwrap());
    assert_eq!(world.cluster(noisy), [key("rich")]);
}

#[test]
fn a_taint_concerns_those_that_do_not_tolerate_it() {
    let mut world = world();
    world.placement(placement("tolerant", json!({"tolerations": [{"operator": "Exists"}]})));
    world.settle("tolerant", at(0));
    let sick = tainted(cluster("prod1", &[("env", "prod")]), "sick", "NoSelect");
    assert_eq!(world.cluster(sick), [key("all"), key("prod")]);
}

#[test]
fn the_first_cluster_of_a_set_and_the_last_concern_placements_that_they_do_not_fit() {
    let mut world = World::new();
    world.placement(placement("prod", json!({"predicates": predicate("env", "prod")})));
    world.settle("prod", at(0));
    assert_eq!(world.cluster(cluster("dev1", &[("env", "dev")])), [key("prod")], "there are clusters now");
    assert_eq!(world.cluster(cluster("dev2", &[("env", "dev")])), []);
    world.no_cluster("dev1");
    assert_eq!(world.no_cluster("dev2"), [key("prod")], "there are none any more");
}

#[test]
fn sets_and_bindings_concern_the_placements_that_choose_from_them() {
    let mut world = world();
    world.placement(placement("special", json!({"clusterSets": ["special"]})));
    assert_eq!(world.set(set("special", json!({}))), [], "nobody has bound it");
    assert_eq!(world.bind("special").len(), 4);
    world.placement(placement("global", json!({"clusterSets": ["global"]})));
    let labelled = json!({"selectorType": "LabelSelector", "labelSelector": {"matchLabels": {"env": "dev"}}});
    assert_eq!(world.set(set("special", labelled.clone())), [key("all"), key("dev"), key("prod"), key("special")]);
    assert_eq!(world.set(set("special", labelled)), [], "nothing has changed");
    assert_eq!(world.no_set("special").len(), 5, "the last set that is bound may be gone, which the status reports");
    assert_eq!(world.unbind("special").len(), 5);
}

#[test]
fn a_placement_is_planned_when_its_spec_changes_or_somebody_edits_its_status() {
    let mut world = world();
    let settled = world.plan("all", at(0)).status;
    let mut noted = placement("all", json!({}));
    noted.status = Some(settled.clone());
    noted.annotations_mut().insert("note".into(), "x".into());
    assert_eq!(world.placement(noted.clone()), []);
    noted.status.as_mut().unwrap().number_of_selected_clusters = 7;
    assert_eq!(world.placement(noted.clone()), [key("all")]);
    noted.spec.number_of_clusters = Some(1);
    assert_eq!(world.placement(noted.clone()), [key("all")]);
    noted.annotations_mut().insert(PLACEMENT_DISABLE.into(), "true".into());
    world.placement(noted);
    assert!(world.index.snapshot(&key("all")).unwrap().inputs.rules.is_ignored);
}

#[test]
fn a_deleted_placement_no_longer_counts_once_its_decisions_are_gone() {
    let mut world = world();
    assert_eq!(world.no_placement("all"), []);
    assert!(world.index.snapshot(&key("all")).is_none());
    let counts = world.index.snapshot(&key("prod")).unwrap().inputs.counts;
    assert_eq!(counts["prod1"], 2);
    assert_eq!(world.no_decision("all-decision-1"), []);
    let counts = world.index.snapshot(&key("prod")).unwrap().inputs.counts;
    assert_eq!((counts["prod1"], counts["dev1"]), (1, 1));
}

#[test]
fn a_placement_that_is_switched_off_counts_with_what_its_decisions_list() {
    let mut world = world();
    let under_way = world.plan("all", at(0));
    let mut off = placement("all", json!({}));
    off.annotations_mut().insert(PLACEMENT_DISABLE.into(), "true".into());
    world.placement(off);
    let mut theirs = under_way.desired[0].clone();
    theirs.clusters = vec!["dev1".into()];
    world.decision(decision("all", &theirs, true));
    let count = |world: &World| world.index.snapshot(&key("prod")).unwrap().inputs.counts;
    assert_eq!((count(&world)["prod1"], count(&world)["dev1"]), (1, 2));
    world.index.record_plan(&key("all"), under_way.desired, under_way.status);
    assert_eq!((count(&world)["prod1"], count(&world)["dev1"]), (1, 2), "a plan that comes too late does not count");
}

#[test]
fn nothing_is_kept_of_bindings_that_are_gone() {
    let world = world();
    assert_eq!(world.unbind("global").len(), 3);
    let state = world.index.lock();
    assert!(state.bindings.by_namespace.is_empty() && state.bindings.namespaces.is_empty(), "{:?}", state.bindings);
}

#[test]
fn at_ten_thousand_clusters_and_a_thousand_placements_a_change_concerns_two_placements_and_copies_nothing() {
    let mut world = World::new();
    for index in 0..10_000 {
        world.cluster(cluster(&format!("c{index}"), &[("app", &(index % 1_000).to_string())]));
    }
    for index in 0..1_000 {
        let spec = json!({"predicates": predicate("app", &index.to_string()), "numberOfClusters": 5});
        world.placement(placement(&format!("p{index}"), spec));
    }
    let names = ["p42", "p43"];
    names.iter().for_each(|name| _ = world.settle(name, at(0)));
    let maps = world.index.maps();
    assert_eq!(world.cluster(cluster("c42", &[("app", "43")])), names.map(key));
    names.iter().for_each(|name| _ = world.settle(name, at(1)));
    assert_eq!(world.index.maps(), maps);
}

#[test]
fn a_listed_cluster_is_found_in_any_order_of_the_list() {
    let mut world = world();
    world.placement(placement("mine", json!({"tolerations": []})));
    let mut desired = world.plan("mine", at(0)).desired.remove(0);
    for clusters in [["dev1", "prod1"], ["prod1", "dev1"]] {
        desired.clusters = clusters.map(Into::into).into();
        world.decision(decision("mine", &desired, true));
        let state = world.index.lock();
        let lists = |cluster| state.decisions.lists(&key("mine"), cluster);
        assert!(lists("dev1") && lists("prod1") && !lists("c"), "{clusters:?}");
    }
}
