//! What is known of each set, and what changes it.

use std::{
    collections::{BTreeSet, HashMap},
    mem::replace,
    sync::Arc,
};

use ocm_runtime::{Change, ObjectKey};

use super::StoreEvent;
use crate::work::{
    decision::{Decision, Failures, Works},
    facts::Work,
    kinds::{Digest, ReplicaWork},
    replica::Replica,
};

/// How much is kept of why a work could not be written, in bytes.
const LONGEST_FAILURE: usize = 1024;

/// By the key of the set.
pub(super) type Sets = HashMap<ObjectKey, Entry>;

/// What is known of a set, whether or not it exists.
#[derive(Debug, Default)]
pub(super) struct Entry {
    pub(super) works: Arc<Works>,
    pub(super) decision: Arc<Decision>,
    pub(super) failures: Arc<Failures>,
    /// The keys of labels that it once had, and does not have now.
    pub(super) former_labels: BTreeSet<String>,
}

impl Entry {
    /// Forgets everything but the works.
    pub(super) fn forget_decision(&mut self) {
        *self = Self { works: self.works.clone(), ..Self::default() };
    }

    fn is_empty(&self) -> bool {
        self.works.is_empty() && self.former_labels.is_empty() && *self.decision == Decision::default()
    }
}

/// Takes in a change of a work.
pub(super) fn take(sets: &mut Sets, change: Change<'_, ReplicaWork>) {
    let before = match change {
        Change::Added(_) => None,
        Change::Updated { old, .. } | Change::Deleted(old) => Work::of(old),
    };
    let now = if matches!(change, Change::Deleted(_)) { None } else { Work::of(change.object()) };
    let written_from = before.and_then(|(set, before)| remove(sets, &set, &before, now.as_ref()));
    if let Some((set, mut work)) = now {
        work.written_from = written_from;
        let works = Arc::make_mut(&mut sets.entry(set).or_default().works);
        works.insert(work.key.clone(), Arc::new(work));
    }
}

/// Removes what was known of a work, unless it is replaced at once. Returns the template that it was written from, if it is the same
/// as before in this respect.
fn remove(sets: &mut Sets, set: &ObjectKey, before: &Work, now: Option<&(ObjectKey, Work)>) -> Option<Digest> {
    let works = &mut sets.get_mut(set)?.works;
    let known = works.get(&before.key).and_then(|known| known.written_from.clone());
    if now.is_none_or(|(new_set, _)| new_set != set) {
        Arc::make_mut(works).remove(&before.key);
        forget_if_empty(sets, set);
    }
    known.filter(|_| now.is_some_and(|(_, now)| now.uid == before.uid && now.spec == before.spec))
}

pub(super) fn publish(sets: &mut Sets, set: &ObjectKey, decision: Decision) -> Vec<StoreEvent> {
    let entry = sets.entry(set.clone()).or_default();
    if entry.failures.keys().any(|desired| !decision.desired.contains_key(desired)) {
        Arc::make_mut(&mut entry.failures).retain(|desired, _| decision.desired.contains_key(desired));
    }
    let before = replace(&mut entry.decision, Arc::new(decision));
    let events = changes(set, &before, &entry.decision);
    forget_if_empty(sets, set);
    events
}

/// The works of which something else is desired than before.
fn changes(set: &ObjectKey, before: &Decision, after: &Decision) -> Vec<StoreEvent> {
    let is_same_template = before.template == after.template;
    let is_changed = |desired, state| !is_same_template || before.desired.get(desired) != Some(state);
    let changed = after.desired.iter().filter(|(desired, state)| is_changed(*desired, *state));
    changed.map(|(desired, _)| StoreEvent::Desired(Replica::new(set, desired))).collect()
}

pub(super) fn everything(set: &ObjectKey, entry: &Entry) -> Vec<StoreEvent> {
    changes(set, &Decision::default(), &entry.decision)
}

pub(super) fn record_outcome(sets: &mut Sets, replica: &Replica, failure: Option<String>) -> Option<StoreEvent> {
    let entry = sets.get_mut(&replica.set)?;
    let desired = (replica.cluster.clone(), replica.placement.clone());
    let failure = failure.map(bounded).filter(|_| entry.decision.desired.contains_key(&desired));
    if entry.failures.get(&desired) == failure.as_ref() {
        return None;
    }
    let failures = Arc::make_mut(&mut entry.failures);
    match failure {
        Some(failure) => failures.insert(desired, failure),
        None => failures.remove(&desired),
    };
    Some(StoreEvent::Failure(replica.set.clone()))
}

/// The beginning of a text. One failure for each cluster is kept, and webhooks may answer anything.
fn bounded(mut failure: String) -> String {
    if failure.len() > LONGEST_FAILURE {
        failure.truncate(failure.floor_char_boundary(LONGEST_FAILURE));
        failure.push_str("...");
    }
    failure
}

pub(super) fn forget_if_empty(sets: &mut Sets, set: &ObjectKey) {
    if sets.get(set).is_some_and(Entry::is_empty) {
        sets.remove(set);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::work::decision::testing::{World, all, set};

    /// A work of set `n.<set>` with an object of this name.
    fn work(name: &str, set: &str, object: &str) -> Arc<ReplicaWork> {
        let labels = json!({"work.open-cluster-management.io/manifestworkreplicaset": set,
            "work.open-cluster-management.io/placementname": "p"});
        let spec = json!({"workload": {"manifests": [{"kind": object}]}});
        let metadata = json!({"name": name, "namespace": "c1", "uid": name, "labels": labels});
        Arc::new(serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap())
    }

    fn replica(cluster: &str) -> Replica {
        Replica::new(&ObjectKey::new("fleet", "settings"), &(cluster.into(), "p".into()))
    }

    /// The clusters of which something else is desired.
    fn changed(sets: &mut Sets, decision: Decision) -> Vec<String> {
        let events = publish(sets, &ObjectKey::new("fleet", "settings"), decision);
        let clusters = events.iter().map(|event| match event {
            StoreEvent::Desired(replica) => replica.cluster.to_string(),
            StoreEvent::Failure(_) => unreachable!(),
        });
        clusters.collect()
    }

    #[test]
    fn works_are_known_by_their_set_and_nothing_is_kept_of_deleted_ones() {
        let (mut sets, first, other) = (Sets::new(), work("a", "n.my.set", "A"), work("a", "n.other", "A"));
        take(&mut sets, Change::Added(&first));
        let known = |sets: &Sets, name: &str| sets.get(&ObjectKey::new("n", name)).map_or(0, |entry| entry.works.len());
        assert_eq!((known(&sets, "my.set"), known(&sets, "my")), (1, 0));
        take(&mut sets, Change::Updated { old: &first, new: &other });
        assert_eq!((known(&sets, "my.set"), known(&sets, "other")), (0, 1), "its label changed");
        take(&mut sets, Change::Deleted(&other));
        assert!(sets.is_empty(), "{sets:?}");
    }

    #[test]
    fn what_a_work_was_written_from_is_known_until_its_spec_changes() {
        let (mut sets, set) = (Sets::new(), ObjectKey::new("n", "s"));
        let works = [work("a", "n.s", "A"), work("a", "n.s", "A"), work("a", "n.s", "B")];
        take(&mut sets, Change::Added(&works[0]));
        let template = works[2].spec.clone();
        let entry = Arc::make_mut(&mut sets.get_mut(&set).unwrap().works);
        Arc::make_mut(entry.values_mut().next().unwrap()).written_from = Some(template.clone());
        let written_from = |sets: &Sets| sets[&set].works.values().next().unwrap().written_from.clone();
        take(&mut sets, Change::Updated { old: &works[0], new: &works[1] });
        assert_eq!(written_from(&sets), Some(template));
        take(&mut sets, Change::Updated { old: &works[1], new: &works[2] });
        assert_eq!(written_from(&sets), None);
    }

    #[test]
    fn a_decision_touches_the_works_of_which_something_else_is_desired_and_all_after_a_change_of_the_template() {
        let mut world = World::new(set("a", &[("p", all())])).choosing("p", &["c1", "c2"]);
        let mut sets = Sets::new();
        assert_eq!(changed(&mut sets, world.decide()), ["c1", "c2"]);
        assert!(changed(&mut sets, world.decide()).is_empty(), "nothing has changed");
        world.choose("p", &[&["c1", "c2", "c3"]]);
        assert_eq!(changed(&mut sets, world.decide()), ["c3"]);
        Arc::make_mut(&mut world.set.template).labels.insert("team".into(), "red".into());
        assert_eq!(changed(&mut sets, world.decide()), ["c1", "c2", "c3"]);
        changed(&mut sets, Decision::default());
        assert!(sets.is_empty(), "{sets:?}");
    }

    #[test]
    fn a_failure_is_kept_until_the_work_is_written_or_need_not_be() {
        let mut world = World::new(set("a", &[("p", all())])).choosing("p", &["c1", "c2"]);
        let mut sets = Sets::new();
        changed(&mut sets, world.decide());
        let mut record = |cluster, failure: Option<&str>| {
            record_outcome(&mut sets, &replica(cluster), failure.map(str::to_owned)).is_some()
        };
        assert!(record("c1", Some("no")) && !record("c1", Some("no")) && record("c2", Some("no")));
        assert!(record("c1", None) && !record("c1", None) && !record("c9", Some("no")));
        world.choose("p", &[&["c1"]]);
        changed(&mut sets, world.decide());
        assert!(sets.values().all(|entry| entry.failures.is_empty()));
    }

    #[test]
    fn only_the_beginning_of_a_long_failure_is_kept() {
        let mut world = World::new(set("a", &[("p", all())])).choosing("p", &["c1"]);
        let mut sets = Sets::new();
        changed(&mut sets, world.decide());
        let long = "ü".repeat(LONGEST_FAILURE);
        assert!(record_outcome(&mut sets, &replica("c1"), Some(long.clone())).is_some());
        assert!(record_outcome(&mut sets, &replica("c1"), Some(long)).is_none(), "it is the same");
        let kept = sets.values().flat_map(|entry| entry.failures.values()).map(String::len);
        assert_eq!(kept.collect::<Vec<_>>(), [LONGEST_FAILURE + "...".len()]);
    }
}
