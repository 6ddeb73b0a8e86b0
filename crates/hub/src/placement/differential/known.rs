//! What we decide differently on purpose. Each is in `docs/differences.md`.

use serde_json::{Value, json};

use super::{
    Snapshot,
    answer::{Answer, Decided, Decision, Group},
    generate, ocm, ours,
};

/// OCM's answer with what we do instead.
pub(super) fn adjusted(ocm: Answer) -> Answer {
    match ocm {
        Answer::Decided(decided) => Answer::Decided(Box::new(with_a_decision(*decided))),
        other => other,
    }
}

/// If the first group or the size of groups is invalid, one empty decision remains, while OCM deletes all.
fn with_a_decision(mut ocm: Decided) -> Decided {
    if ocm.is_misconfigured && ocm.groups.is_empty() {
        let (name, group) = (String::from("p-decision-1"), String::new());
        ocm.groups = vec![Group { index: 0, name: group.clone(), decisions: vec![name.clone()], clusters: 0 }];
        ocm.decisions = vec![Decision { name, group, index: "0".into(), clusters: Vec::new() }];
    }
    ocm
}

/// What both decide.
fn both(snapshot: &Snapshot) -> (Answer, Answer) {
    (ocm().decide(snapshot), ours::decide(snapshot))
}

fn selected(answer: &Answer) -> &[String] {
    match answer {
        Answer::Decided(decided) => &decided.selected,
        other => panic!("nothing is decided: {other:?}"),
    }
}

/// What both select from a cluster with the taint, for a placement with the toleration.
fn with_taint(taint: &Value, toleration: &Value) -> (Vec<String>, Vec<String>) {
    let cluster = json!({"metadata": {"name": "c0"}, "spec": {"taints": [taint]}});
    let (ocm, ours) = both(&generate::of(&json!({"tolerations": [toleration]}), vec![cluster]));
    (selected(&ocm).to_vec(), selected(&ours).to_vec())
}

#[test]
#[ignore = "needs OCM's scheduler: run `make decisions`"]
fn ocm_panics_on_a_negative_number_of_clusters_and_we_report_it() {
    let snapshot = generate::of(&json!({"numberOfClusters": -1}), vec![json!({"metadata": {"name": "c0"}})]);
    let (ocm, ours) = both(&snapshot);
    assert_eq!((ocm.outcome(), ours.outcome()), ("panicked".into(), "Misconfigured".into()));
}

#[test]
#[ignore = "needs OCM's scheduler: run `make decisions`"]
fn a_taint_without_a_time_is_tolerated_from_when_the_hub_first_observes_it() {
    let toleration = json!({"key": "gpu", "operator": "Exists", "tolerationSeconds": 60});
    let (ocm, ours) = with_taint(&json!({"key": "gpu", "effect": "NoSelect"}), &toleration);
    assert_eq!((ocm, ours), (Vec::new(), vec!["c0".to_owned()]));
}

#[test]
#[ignore = "needs OCM's scheduler: run `make decisions`"]
fn a_toleration_of_more_than_292_years_overflows_in_ocm() {
    let toleration = json!({"key": "gpu", "operator": "Exists", "tolerationSeconds": 10_000_000_000_i64});
    let taint = json!({"key": "gpu", "effect": "NoSelect", "timeAdded": generate::at(0)});
    let (ocm, ours) = with_taint(&taint, &toleration);
    assert_eq!((ocm, ours), (Vec::new(), vec!["c0".to_owned()]));
}

#[test]
#[ignore = "needs OCM's scheduler: run `make decisions`"]
fn an_expression_with_the_wrong_type_is_false_and_ocm_does_not_compile_it() {
    for expression in ["1 == 'a'", "managedCluster.scores(1).size() == 0", "true.parseJSON() == null"] {
        let (ocm, ours) = with_cel(expression);
        assert_eq!((ocm.outcome(), ours.outcome()), ("Misconfigured".into(), "NoManagedClusterMatched".into()));
    }
}

#[test]
#[ignore = "needs OCM's scheduler: run `make decisions`"]
fn versions_can_be_normalized_in_expressions_which_ocm_does_not_compile() {
    let (ocm, ours) = with_cel(r#"semver("v1.2", true) == semver("1.2.0")"#);
    assert_eq!((ocm.outcome(), ours.outcome()), ("Misconfigured".into(), "AllDecisionsScheduled".into()));
}

/// What both decide on a cluster for which this must be true.
fn with_cel(expression: &str) -> (Answer, Answer) {
    let selector = json!({"celSelector": {"celExpressions": [expression]}});
    let spec = json!({"predicates": [{"requiredClusterSelector": selector}]});
    both(&generate::of(&spec, vec![json!({"metadata": {"name": "c0"}})]))
}
