//! What all placements depend on, kept up to date by watches.
//!
//! Each change answers which placements it can affect; a placement that is to be planned gets a [`Scene`]: everything its
//! decision depends on, as of one moment. The lock is held for neither planning nor writing: a scene shares the large
//! parts, which are copied when they change while somebody still looks at them.

mod affected;
mod clusters;
mod decisions;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use jiff::Timestamp;
use kube::ResourceExt as _;
use ocm_api::cluster::{
    v1::ManagedCluster,
    v1beta1::{Placement, PlacementDecision, PlacementStatus},
    v1beta2::{ManagedClusterSet, ManagedClusterSetBinding},
};
use ocm_runtime::{Change, ObjectKey};

use self::{clusters::Fleet, decisions::Decisions};
pub(crate) use self::{
    clusters::Sets,
    decisions::{Slice, Slices},
};
use super::{
    facts::{Clusters, Name},
    group::Wanted,
    rules::Rules,
    schedule::Tally,
};

/// What all placements depend on. Cheap to clone; all clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    fleet: Fleet,
    bindings: Bindings,
    placements: BTreeMap<ObjectKey, Entry>,
    decisions: Decisions,
}

/// The names of bindings, each the name of a set.
#[derive(Debug, Default)]
struct Bindings {
    by_namespace: BTreeMap<String, Arc<BTreeSet<String>>>,
    namespaces: HashMap<String, BTreeSet<String>>,
}

#[derive(Debug)]
struct Entry {
    rules: Arc<Rules>,
    /// The status as it will be once the last plan is written.
    said: Option<PlacementStatus>,
}

/// Everything that the decision of one placement depends on, as of one moment.
#[derive(Clone, Debug)]
pub(crate) struct Scene {
    pub(crate) rules: Arc<Rules>,
    pub(crate) clusters: Arc<Clusters>,
    pub(crate) sets: Arc<Sets>,
    /// The bindings of the placement's namespace.
    pub(crate) bound: Arc<BTreeSet<String>>,
    /// How often each cluster is chosen by all placements.
    pub(crate) tally: Arc<Tally>,
    /// The clusters that this placement adds to the tally.
    pub(crate) claims: Vec<Name>,
    /// The decisions of the placement, and those of others that have their names.
    pub(crate) slices: Slices,
}

impl Index {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in a change of a cluster; the placements it can affect.
    pub(crate) fn cluster(&self, change: Change<'_, ManagedCluster>, now: Timestamp) -> Vec<ObjectKey> {
        let cluster = change.object();
        let new = (!matches!(change, Change::Deleted(_))).then(|| cluster.as_ref());
        let mut state = self.lock();
        let name = cluster.name_any();
        match state.fleet.take(&name, new, now) {
            Some((old, new)) => state.affected_by_cluster(&name, old.as_deref(), new.as_deref()),
            None => Vec::new(),
        }
    }

    /// Takes in a change of a set; the placements it can affect.
    pub(crate) fn set(&self, change: Change<'_, ManagedClusterSet>) -> Vec<ObjectKey> {
        let set = change.object();
        let new = (!matches!(change, Change::Deleted(_))).then(|| set.as_ref());
        let mut state = self.lock();
        let name = set.name_any();
        match state.fleet.take_set(&name, new) {
            Some(change) => state.affected_by_set(&name, change),
            None => Vec::new(),
        }
    }

    /// Takes in a change of a binding; the placements it can affect.
    pub(crate) fn binding(&self, change: Change<'_, ManagedClusterSetBinding>) -> Vec<ObjectKey> {
        let key = ObjectKey::of(change.object().as_ref());
        let mut state = self.lock();
        let is_news = match change {
            Change::Deleted(_) => state.bindings.remove(&key),
            Change::Added(_) | Change::Updated { .. } => state.bindings.insert(&key),
        };
        if is_news { state.placements_in(&key.namespace) } else { Vec::new() }
    }

    /// Takes in a change of a placement; its key, unless there is nothing new in it.
    pub(crate) fn placement(&self, change: Change<'_, Placement>) -> Option<ObjectKey> {
        let key = ObjectKey::of(change.object().as_ref());
        let mut state = self.lock();
        match change {
            Change::Added(placement) => state.enter(&key, placement),
            Change::Updated { old, new } if old.metadata.uid != new.metadata.uid => {
                state.leave(&key);
                state.enter(&key, new);
            }
            Change::Updated { new, .. } => return state.update(&key, new).then_some(key),
            Change::Deleted(_) => {
                state.leave(&key);
                return None;
            }
        }
        Some(key)
    }

    /// Takes in a change of a decision; the placement that must look after it, unless it is as that wants it.
    pub(crate) fn decision(&self, change: Change<'_, PlacementDecision>) -> Vec<ObjectKey> {
        let decision = change.object();
        let key = ObjectKey::of(decision.as_ref());
        let mut state = self.lock();
        let new = (!matches!(change, Change::Deleted(_))).then(|| state.slice(decision));
        let concerned = state.decisions.take(&key, new);
        concerned.into_iter().filter(|key| state.placements.contains_key(key)).collect()
    }

    /// Everything that the decision of a placement depends on; `None` without such a placement.
    pub(crate) fn scene(&self, key: &ObjectKey) -> Option<Scene> {
        let state = self.lock();
        let rules = state.placements.get(key)?.rules.clone();
        Some(Scene {
            rules,
            clusters: state.fleet.clusters.clone(),
            sets: state.fleet.sets.clone(),
            bound: state.bindings.by_namespace.get(&key.namespace).cloned().unwrap_or_default(),
            tally: state.decisions.tally(),
            claims: state.decisions.claims(key),
            slices: state.decisions.around(key),
        })
    }

    /// Takes note of the decisions and the status that are about to be written, so that they are no news when the watches
    /// bring them, and count for other placements at once.
    pub(crate) fn expect(&self, key: &ObjectKey, wanted: Vec<Wanted>, said: PlacementStatus) {
        let mut state = self.lock();
        let Some(entry) = state.placements.get_mut(key).filter(|entry| !entry.rules.is_off) else { return };
        entry.said = Some(said);
        state.decisions.expect(key, wanted);
    }
}

impl State {
    fn enter(&mut self, key: &ObjectKey, placement: &Placement) {
        let rules = Arc::new(Rules::of(placement));
        self.placements.insert(key.clone(), Entry { rules, said: None });
    }

    fn leave(&mut self, key: &ObjectKey) {
        self.placements.remove(key);
        self.decisions.expect_nothing(key);
    }

    /// Whether it says something new.
    fn update(&mut self, key: &ObjectKey, new: &Placement) -> bool {
        let rules = Rules::of(new);
        let Some(entry) = self.placements.get_mut(key) else { return false };
        if *entry.rules == rules {
            // The status is written here alone; another one is somebody's mistake, to be repaired.
            return entry.said != new.status;
        }
        if rules.is_off {
            // Its decisions count as they are: others may write them from now on.
            entry.said = None;
            self.decisions.expect_nothing(key);
        }
        entry.rules = Arc::new(rules);
        true
    }

    fn slice(&self, decision: &PlacementDecision) -> Slice {
        Slice::of(decision, |name| match self.fleet.clusters.get_key_value(name) {
            Some((name, _)) => name.clone(),
            None => name.into(),
        })
    }
}

impl Bindings {
    fn insert(&mut self, key: &ObjectKey) -> bool {
        self.namespaces.entry(key.name.clone()).or_default().insert(key.namespace.clone());
        Arc::make_mut(self.by_namespace.entry(key.namespace.clone()).or_default()).insert(key.name.clone())
    }

    fn remove(&mut self, key: &ObjectKey) -> bool {
        if let Some(namespaces) = self.namespaces.get_mut(&key.name) {
            namespaces.remove(&key.namespace);
            if namespaces.is_empty() {
                self.namespaces.remove(&key.name);
            }
        }
        let Some(names) = self.by_namespace.get_mut(&key.namespace) else { return false };
        let was_there = Arc::make_mut(names).remove(&key.name);
        if names.is_empty() {
            self.by_namespace.remove(&key.namespace);
        }
        was_there
    }

    fn has(&self, namespace: &str, set: &str) -> bool {
        self.by_namespace.get(namespace).is_some_and(|names| names.contains(set))
    }
}
