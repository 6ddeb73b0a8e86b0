use std::sync::Arc;

use ocm_api::cluster::v1beta1::Placement;
use ocm_runtime::ObjectKey;
use serde_json::json;

use super::{PlacementSnapshot, state::State, testing::decision};

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("n", name)
}

fn set(state: &mut State, name: &str, placement: &str, group: (&str, &str), clusters: &[&str]) {
    state.set_decision(&key(name), Some(&decision(name, placement, group, clusters)));
}

fn placement(state: &mut State, name: &str) {
    state.set_placement(&key(name), Some(&Placement::new("n", name, <_>::default())));
}

/// The groups of placement p, as `index name: clusters`.
fn groups(state: &State) -> Vec<String> {
    let groups = state.placement(&key("p")).unwrap().decisions.groups().unwrap();
    groups.iter().map(|group| format!("{} {}: {}", group.key.index, group.key.name, group.clusters.join(","))).collect()
}

fn clusters(snapshot: &PlacementSnapshot) -> Vec<String> {
    snapshot.decisions.clusters().iter().map(ToString::to_string).collect()
}

#[test]
fn clusters_are_grouped_by_the_labels_of_decisions_in_the_order_of_indexes() {
    let mut state = State::default();
    placement(&mut state, "p");
    set(&mut state, "p-decision-1", "p", ("", "10"), &["z", "y"]);
    set(&mut state, "p-decision-2", "p", ("canary", "0"), &["c"]);
    set(&mut state, "p-decision-3", "p", ("", "10"), &["x", "", "z"]);
    assert_eq!(groups(&state), ["0 canary: c", "10 : x,y,z"]);
    set(&mut state, "other", "q", ("", "0"), &["a"]);
    assert!(!state.placement(&key("p")).unwrap().decisions.contains("a"));
    assert!(state.placement(&key("p")).unwrap().decisions.contains("x"));
}

#[test]
fn a_cluster_that_moves_between_groups_is_in_the_first_one_meanwhile() {
    let mut state = State::default();
    placement(&mut state, "p");
    set(&mut state, "p-decision-1", "p", ("", "0"), &["a", "b"]);
    set(&mut state, "p-decision-2", "p", ("", "1"), &["b", "c"]);
    assert_eq!(groups(&state), ["0 : a,b", "1 : c"]);
    let groups = state.placement(&key("p")).unwrap().decisions.groups().unwrap();
    assert_eq!(groups.group_of("b").map(|key| key.index), Some(0));
    assert_eq!(groups.filtered(|cluster| **cluster != *"b").clusters().count(), 2);
}

#[test]
fn decisions_count_for_nothing_while_their_placement_does_not_exist() {
    let mut state = State::default();
    set(&mut state, "p-decision-1", "p", ("", "0"), &["a"]);
    assert_eq!(state.placement(&key("p")), None);
    placement(&mut state, "p");
    assert_eq!(clusters(&state.placement(&key("p")).unwrap()), ["a"]);
    state.set_placement(&key("p"), None);
    assert_eq!(state.placement(&key("p")), None);
}

#[test]
fn a_decision_that_is_deleted_or_gets_another_label_no_longer_counts_for_its_placement() {
    let mut state = State::default();
    placement(&mut state, "p");
    placement(&mut state, "q");
    set(&mut state, "one", "p", ("", "0"), &["a"]);
    set(&mut state, "two", "p", ("", "0"), &["b"]);
    set(&mut state, "one", "q", ("", "0"), &["a"]);
    assert_eq!(clusters(&state.placement(&key("p")).unwrap()), ["b"]);
    assert_eq!(clusters(&state.placement(&key("q")).unwrap()), ["a"]);
    state.set_decision(&key("two"), None);
    let mut bare = decision("one", "q", ("", "0"), &["a"]);
    bare.metadata.labels = None;
    state.set_decision(&key("one"), Some(&bare));
    assert_eq!(clusters(&state.placement(&key("p")).unwrap()), [""; 0]);
    assert_eq!(clusters(&state.placement(&key("q")).unwrap()), [""; 0]);
}

#[test]
fn a_group_index_that_is_not_a_number_is_an_error_for_those_who_need_groups() {
    let mut state = State::default();
    placement(&mut state, "p");
    set(&mut state, "one", "p", ("", "first"), &["a"]);
    let snapshot = state.placement(&key("p")).unwrap();
    assert_eq!(clusters(&snapshot), ["a"]);
    let error = snapshot.decisions.groups().unwrap_err().to_string();
    assert!(error.contains("decision-group-index of PlacementDecision one is \"first\""), "{error}");
}

#[test]
fn a_snapshot_says_why_a_placement_has_chosen_too_few_clusters() {
    let mut state = State::default();
    let condition = |type_: &str, status: &str| {
        json!({"type": type_, "status": status, "reason": type_, "message": "m",
               "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    let mut problem = |misconfigured: &str, satisfied: &str| {
        let mut placement = Placement::new("n", "p", <_>::default());
        let conditions =
            [condition("PlacementMisconfigured", misconfigured), condition("PlacementSatisfied", satisfied)];
        let status = json!({"numberOfSelectedClusters": 7, "conditions": conditions});
        placement.status = Some(serde_json::from_value(status).unwrap());
        state.set_placement(&key("p"), Some(&placement));
        let snapshot = state.placement(&key("p")).unwrap();
        assert_eq!(snapshot.selected, 7);
        snapshot.problem
    };
    assert_eq!(problem("False", "True"), None);
    assert_eq!(problem("False", "False").as_deref(), Some("PlacementSatisfied: m"));
    assert_eq!(problem("True", "False").as_deref(), Some("PlacementMisconfigured: m"));
}

#[test]
fn a_name_is_stored_once_and_forgotten_when_nobody_uses_it() {
    let mut state = State::default();
    placement(&mut state, "p");
    placement(&mut state, "q");
    set(&mut state, "one", "p", ("", "0"), &["a"]);
    set(&mut state, "two", "q", ("", "0"), &["a"]);
    let of = |state: &State, name| state.placement(&key(name)).unwrap().decisions.clusters().pop_first().unwrap();
    assert!(Arc::ptr_eq(&of(&state, "p"), &of(&state, "q")));
    for round in 0..1000 {
        set(&mut state, "one", "p", ("", "0"), &[&format!("c{round}")]);
    }
    assert!(state.names() < 200, "{}", state.names());
}

#[test]
fn a_snapshot_stays_as_it_was() {
    let mut state = State::default();
    placement(&mut state, "p");
    set(&mut state, "one", "p", ("", "0"), &["a"]);
    let before = state.placement(&key("p")).unwrap();
    set(&mut state, "one", "p", ("", "0"), &["b"]);
    assert_eq!(clusters(&before), ["a"]);
    assert_eq!(clusters(&state.placement(&key("p")).unwrap()), ["b"]);
}
