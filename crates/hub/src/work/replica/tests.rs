//! What is written for one work.

use std::sync::Arc;

use ocm_runtime::ObjectKey;

use super::{
    Observed, Plan, Replica,
    plan::plan,
    uncertain::{Uncertain, is_refusal},
};
use crate::{
    error::Error,
    testing::{now, refused},
    work::{
        decision::{
            State,
            testing::{DONE, all, set, work},
        },
        facts::Work,
    },
};

const SET_LABEL: &str = "work.open-cluster-management.io/manifestworkreplicaset";
const PLACEMENT_LABEL: &str = "work.open-cluster-management.io/placementname";

/// The work for cluster `c1` and placement `p`, and what there is of it.
fn observed(state: State, works: &[Work]) -> Observed {
    let set = set("a", &[("p", all())]);
    let cluster_and_placement = ("c1".into(), "p".into());
    Observed {
        replica: Replica::new(&ObjectKey::new("fleet", "settings"), &cluster_and_placement),
        state,
        labels: set.template.labels_for("p"),
        template: set.template,
        works: works.iter().cloned().map(Arc::new).collect(),
        former_labels: ["former".to_owned()].into(),
        is_cluster_leaving: false,
        unreadable: None,
    }
}

/// One with this name and spec that was created so many seconds after the others.
fn named(name: &str, object: &str, created: i64) -> Work {
    work(&set(object, &[("p", all())]), ("c1", name), "p", created, DONE)
}

fn deleting(mut work: Work) -> Work {
    work.is_deleting = true;
    work
}

#[test]
fn a_missing_work_is_created_once_a_former_one_is_gone_and_not_on_a_cluster_that_is_being_deleted() {
    assert_eq!(plan(&observed(State::Current, &[])), Plan::Create);
    assert_eq!(plan(&observed(State::Current, &[deleting(named("w", "a", 0))])), Plan::Nothing);
    let leaving = Observed { is_cluster_leaving: true, ..observed(State::Current, &[]) };
    assert_eq!(plan(&leaving), Plan::Nothing);
    for state in [State::Kept, State::Leaving { since: now() }, State::Absent { since: now() }] {
        assert_eq!(plan(&observed(state, &[])), Plan::Nothing);
    }
}

#[test]
fn a_work_is_written_only_if_something_differs() {
    assert_eq!(plan(&observed(State::Current, &[named("w", "a", 0)])), Plan::Nothing);
    let old = named("w", "b", 0);
    assert_eq!(plan(&observed(State::Current, std::slice::from_ref(&old))), Plan::Update(Arc::new(old.clone())));
    for state in [State::Kept, State::Leaving { since: now() }] {
        assert_eq!(plan(&observed(state, std::slice::from_ref(&old))), Plan::Nothing);
    }
    assert_eq!(plan(&observed(State::Current, &[deleting(old)])), Plan::Nothing);
}

#[test]
fn a_label_that_the_set_has_or_had_is_written_and_one_that_others_added_stays() {
    let current = named("w", "a", 0);
    let with = |key: &str, value: Option<&str>| {
        let mut observed = observed(State::Current, std::slice::from_ref(&current));
        match value {
            Some(value) => _ = observed.labels.insert(key.into(), value.into()),
            None => _ = observed.labels.remove(key),
        }
        plan(&observed)
    };
    let update = Plan::Update(Arc::new(current.clone()));
    assert_eq!(with("of-others", Some("x")), Plan::Nothing);
    assert_eq!(with("former", Some("x")), update);
    assert_eq!(with(PLACEMENT_LABEL, None), update);
    let mut labelled = observed(State::Current, std::slice::from_ref(&current));
    let template = Arc::make_mut(&mut labelled.template);
    template.labels.insert("team".into(), "red".into());
    assert_eq!(plan(&labelled), update);
    let labels = labelled.template.labels_for("p");
    assert_eq!(
        (labels[SET_LABEL].as_str(), labels[PLACEMENT_LABEL].as_str(), labels.len()),
        ("fleet.settings", "p", 3)
    );
}

#[test]
fn of_several_works_the_oldest_is_kept_before_anything_else_is_written() {
    let [old, newer, newest] = [named("z", "b", 0), named("a", "a", 1), named("b", "a", 1)];
    let gone = deleting(named("c", "a", -9));
    for state in [State::Current, State::Kept, State::Leaving { since: now() }] {
        let works = [gone.clone(), newest.clone(), old.clone(), newer.clone()];
        let Plan::DeleteSurplus { kept, surplus } = plan(&observed(state, &works)) else { panic!("{state:?}") };
        let names: Vec<_> = surplus.iter().map(|work| work.key.name.as_str()).collect();
        assert_eq!((kept.key.name.as_str(), names), ("z", vec!["a", "b"]));
    }
}

#[test]
fn every_work_is_deleted_that_nothing_wants_once() {
    let works = [named("a", "a", 0), deleting(named("b", "a", 0)), named("c", "b", 0)];
    let Plan::Delete(deleted) = plan(&observed(State::Absent { since: now() }, &works)) else { panic!() };
    assert_eq!(deleted.iter().map(|work| work.key.name.as_str()).collect::<Vec<_>>(), ["a", "c"]);
}

#[test]
fn only_an_answer_that_the_request_was_not_carried_out_is_certain() {
    let is_certain = |code| match refused(code) {
        Error::Api(error) => is_refusal(&error),
        _ => unreachable!(),
    };
    assert_eq!([400, 403, 404, 409, 422, 429].map(is_certain), [true; 6]);
    assert_eq!([408, 500, 503, 504].map(is_certain), [false; 4]);
}

#[test]
fn creations_without_an_answer_are_forgotten_with_their_set() {
    let replica = |set: &str| Replica::new(&ObjectKey::new("fleet", set), &("c1".into(), "p".into()));
    let uncertain = Uncertain::default();
    ["gone", "stays"].iter().for_each(|set| uncertain.begin(&replica(set)));
    uncertain.forget(&ObjectKey::new("fleet", "gone"));
    assert_eq!(["gone", "stays"].map(|set| uncertain.contains(&replica(set))), [false, true]);
}
