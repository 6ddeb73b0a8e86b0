//! Everything that placements depend on, kept up to date by informers.
//!
//! For each change it returns the placements that the change can affect. A placement is planned from a [`Snapshot`]: everything
//! its decision depends on, as of one moment. The index is locked neither while a placement is planned nor while it is written:
//! a snapshot shares the large parts, which are copied on write.

mod affected;
mod clusters;
mod decisions;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use jiff::Timestamp;
use kube::ResourceExt as _;
use ocm_api::cluster::{
    v1::ManagedCluster,
    v1alpha1::AddOnPlacementScore,
    v1beta1::{Placement, PlacementDecision, PlacementStatus},
    v1beta2::{ManagedClusterSet, ManagedClusterSetBinding},
};
use ocm_runtime::{Change, ObjectKey};
use ocm_scheduler::{DesiredDecision, Rules, Snapshot as Inputs};

pub(crate) use self::decisions::{Slice, Slices};
use self::{clusters::Fleet, decisions::Decisions};

/// Everything that placements depend on. Cheap to clone; all clones share it.
#[derive(Clone)]
pub(crate) struct Index {
    state: Arc<Mutex<State>>,
    json: Arc<JsonOf>,
}

/// Returns the JSON of a cluster, for CEL selectors.
type JsonOf = dyn Fn(&str) -> Option<Arc<[u8]>> + Send + Sync;

impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Index").field("state", &self.state).finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct State {
    fleet: Fleet,
    bindings: Bindings,
    placements: BTreeMap<ObjectKey, Entry>,
    decisions: Decisions,
    /// Whether clusters have documents: while any placement has a CEL selector.
    has_documents: bool,
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
    status: Option<PlacementStatus>,
}

/// Everything that the decision of one placement depends on, as of one moment.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    /// What the selection depends on.
    pub(crate) inputs: Inputs,
    /// The decisions of the placement, and those of others that have such a name.
    pub(crate) slices: Slices,
}

impl Index {
    /// An empty index. `json` returns a cluster as JSON.
    pub(crate) fn new(json: impl Fn(&str) -> Option<Arc<[u8]>> + Send + Sync + 'static) -> Self {
        Self { state: Arc::default(), json: Arc::new(json) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores a change of a cluster. Returns the placements that it can affect.
    pub(crate) fn cluster(&self, change: Change<'_, ManagedCluster>, now: Timestamp) -> Vec<ObjectKey> {
        let cluster = change.object();
        let new = (!matches!(change, Change::Deleted(_))).then(|| cluster.as_ref());
        let mut state = self.lock();
        let name = cluster.name_any();
        let json = state.has_documents.then(|| (self.json)(&name)).flatten();
        match state.fleet.update_cluster(&name, new, json, now) {
            Some((old, new)) => state.affected_by_cluster(&name, old.as_deref(), new.as_deref()),
            None => Vec::new(),
        }
    }

    /// Stores a change of the scores that an add-on gives a cluster. Returns the placements that it can affect.
    pub(crate) fn scores(&self, change: Change<'_, AddOnPlacementScore>) -> Vec<ObjectKey> {
        let key = ObjectKey::of(change.object().as_ref());
        let new = (!matches!(change, Change::Deleted(_))).then(|| change.object().as_ref());
        let mut state = self.lock();
        match state.fleet.update_scores(&key.namespace, &key.name, new) {
            Some((old, new)) => state.affected_by_cluster(&key.namespace, old.as_deref(), new.as_deref()),
            None => Vec::new(),
        }
    }

    /// Stores a change of a set. Returns the placements that it can affect.
    pub(crate) fn set(&self, change: Change<'_, ManagedClusterSet>) -> Vec<ObjectKey> {
        let set = change.object();
        let new = (!matches!(change, Change::Deleted(_))).then(|| set.as_ref());
        let mut state = self.lock();
        let name = set.name_any();
        match state.fleet.update_set(&name, new) {
            Some(change) => state.affected_by_set(&name, change),
            None => Vec::new(),
        }
    }

    /// Stores a change of a binding. Returns the placements that it can affect.
    pub(crate) fn binding(&self, change: Change<'_, ManagedClusterSetBinding>) -> Vec<ObjectKey> {
        let key = ObjectKey::of(change.object().as_ref());
        let mut state = self.lock();
        let has_changed = match change {
            Change::Deleted(_) => state.bindings.remove(&key),
            Change::Added(_) | Change::Updated { .. } => state.bindings.insert(&key),
        };
        if has_changed { state.placements_in(&key.namespace) } else { Vec::new() }
    }

    /// Stores a change of a placement. Returns its key if it is to be planned.
    pub(crate) fn placement(&self, change: Change<'_, Placement>) -> Option<ObjectKey> {
        let key = ObjectKey::of(change.object().as_ref());
        let mut state = self.lock();
        let is_affected = state.change_placement(&key, change);
        state.keep_documents(&*self.json);
        is_affected.then_some(key)
    }

    /// Stores a change of a decision. Returns the placements that did not expect it.
    pub(crate) fn decision(&self, change: Change<'_, PlacementDecision>) -> Vec<ObjectKey> {
        let decision = change.object();
        let key = ObjectKey::of(decision.as_ref());
        let mut state = self.lock();
        let new = (!matches!(change, Change::Deleted(_))).then(|| state.slice(decision));
        let affected = state.decisions.update(&key, new);
        affected.into_iter().filter(|key| state.placements.contains_key(key)).collect()
    }

    /// Everything that the decision on a placement depends on; `None` if the placement does not exist.
    pub(crate) fn snapshot(&self, key: &ObjectKey) -> Option<Snapshot> {
        let state = self.lock();
        let rules = state.placements.get(key)?.rules.clone();
        let inputs = Inputs {
            placement: key.name.clone(),
            rules,
            clusters: state.fleet.clusters.clone(),
            sets: state.fleet.sets.clone(),
            bound: state.bindings.by_namespace.get(&key.namespace).cloned().unwrap_or_default(),
            counts: state.decisions.counts(),
            own: state.decisions.clusters_of(key),
            decided: state.decisions.listed_by(key),
        };
        Some(Snapshot { inputs, slices: state.decisions.relevant_to(key) })
    }

    /// Which maps it shares with snapshots: other ones after each copy.
    #[cfg(test)]
    pub(crate) fn maps(&self) -> [usize; 3] {
        let state = self.lock();
        let counts = Arc::as_ptr(&state.decisions.counts()).addr();
        [Arc::as_ptr(&state.fleet.clusters).addr(), Arc::as_ptr(&state.fleet.sets).addr(), counts]
    }

    /// Records the decisions and the status that are about to be written, so that other placements count them at once, and
    /// they cause no new plan when informers bring them.
    pub(crate) fn record_plan(&self, key: &ObjectKey, desired: Vec<DesiredDecision>, status: PlacementStatus) {
        let mut state = self.lock();
        let Some(entry) = state.placements.get_mut(key).filter(|entry| !entry.rules.is_ignored) else { return };
        entry.status = Some(status);
        state.decisions.record_plan(key, desired);
    }
}

impl State {
    /// Whether the placement is to be planned.
    fn change_placement(&mut self, key: &ObjectKey, change: Change<'_, Placement>) -> bool {
        match change {
            Change::Added(placement) => self.insert_placement(key, placement),
            Change::Updated { old, new } if old.metadata.uid != new.metadata.uid => {
                self.remove_placement(key);
                self.insert_placement(key, new);
            }
            Change::Updated { new, .. } => return self.update_placement(key, new),
            Change::Deleted(_) => {
                self.remove_placement(key);
                return false;
            }
        }
        true
    }

    /// Clusters have documents exactly while any placement has a CEL selector.
    fn keep_documents(&mut self, json: &JsonOf) {
        let needs_documents = self.placements.values().any(|entry| entry.rules.use_cel());
        if self.has_documents != needs_documents {
            self.has_documents = needs_documents;
            self.fleet.set_documents(needs_documents.then_some(json));
        }
    }

    fn insert_placement(&mut self, key: &ObjectKey, placement: &Placement) {
        let rules = Arc::new(Rules::of(placement));
        self.placements.insert(key.clone(), Entry { rules, status: None });
    }

    fn remove_placement(&mut self, key: &ObjectKey) {
        self.placements.remove(key);
        self.decisions.forget_plan(key);
    }

    /// Whether the placement is to be planned again.
    fn update_placement(&mut self, key: &ObjectKey, new: &Placement) -> bool {
        let rules = Rules::of(new);
        let Some(entry) = self.placements.get_mut(key) else { return false };
        if *entry.rules == rules {
            // Only the placement controller writes the status; a different one is corrected.
            return entry.status != new.status;
        }
        if rules.is_ignored {
            // The existing decisions are counted: others may write them from now on.
            entry.status = None;
            self.decisions.forget_plan(key);
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
        let existed = Arc::make_mut(names).remove(&key.name);
        if names.is_empty() {
            self.by_namespace.remove(&key.namespace);
        }
        existed
    }

    fn has(&self, namespace: &str, set: &str) -> bool {
        self.by_namespace.get(namespace).is_some_and(|names| names.contains(set))
    }
}
