//! What the controllers of replica sets share: the works of each set, what was decided on it, and which works could not be
//! written.

mod entries;

use std::{
    collections::BTreeSet,
    fmt,
    ops::{Bound, ControlFlow},
    sync::Arc,
};

use ocm_api::work::v1alpha1::ManifestWorkReplicaSet;
use ocm_runtime::{Cache, Context, Informers, ObjectKey, informer::View};

use self::entries::{Sets, everything, forget_if_empty, publish, record_outcome, take};
use super::{
    decision::{Decision, Failures, State, Works},
    facts::{ReplicaSet, Template, Work},
    kinds::{Digest, ReplicaWork},
    replica::Replica,
    replica_set::ReplicaSetController,
    sources,
};
use crate::{
    context::HubContext,
    decisions::{ClusterName, DecisionTracker},
    observable::Observable,
};

/// How many sets are decided on at a time.
const WORKERS: usize = 2;

/// What has changed in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StoreEvent {
    /// What is desired of a work.
    Desired(Replica),
    /// Whether the works of a set can be written.
    Failure(ObjectKey),
}

/// See the module. Cheap to clone; up to date as long as a clone exists.
#[derive(Clone)]
pub(crate) struct ReplicaSetStore {
    shared: Arc<Observable<Sets, StoreEvent>>,
    tracker: DecisionTracker,
    sets: View<Arc<ReplicaSet>>,
}

impl fmt::Debug for ReplicaSetStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplicaSetStore").finish_non_exhaustive()
    }
}

impl ReplicaSetStore {
    pub(crate) fn new(informers: &Informers, tracker: DecisionTracker) -> Self {
        let sets = sources::sets(informers).view(|set: &ManifestWorkReplicaSet| Some(Arc::new(ReplicaSet::of(set))));
        let store = Self { shared: Arc::default(), tracker, sets };
        store.follow(&sources::works(informers));
        store
    }

    /// Keeps the works up to date.
    fn follow(&self, works: &Cache<ReplicaWork>) {
        let shared = Arc::downgrade(&self.shared);
        works.subscribe(move |change| {
            let Some(shared) = shared.upgrade() else { return ControlFlow::Break(()) };
            take(&mut shared.state(), change);
            ControlFlow::Continue(())
        });
    }

    /// Starts the controller that decides, unless it runs already: nothing happens without decisions, whichever controllers are
    /// chosen to run.
    pub(crate) fn start_deciding(&self, context: &Context, hub: &HubContext) {
        if self.shared.is_first_start() {
            context.run(ReplicaSetController::new(hub, self.clone()), WORKERS);
        }
    }

    pub(crate) fn tracker(&self) -> &DecisionTracker {
        &self.tracker
    }

    /// Calls `listener` for everything that is decided already, and then for every event.
    pub(crate) fn listen(&self, listener: impl Fn(&StoreEvent) + Send + 'static) {
        let known = |sets: &Sets| sets.iter().flat_map(|(set, entry)| everything(set, entry)).collect();
        self.shared.listen(known, listener);
    }

    pub(crate) fn set(&self, key: &ObjectKey) -> Option<Arc<ReplicaSet>> {
        self.sets.get(key)
    }

    /// The sets that follow a placement.
    pub(crate) fn followers(&self, placement: &ObjectKey) -> Vec<ObjectKey> {
        self.sets.read(|all| {
            let from_first = all.range(ObjectKey::new(placement.namespace.clone(), "")..);
            let here = from_first.take_while(|(key, _)| key.namespace == placement.namespace);
            here.filter(|(_, set)| set.refers_to(&placement.name)).map(|(key, _)| key.clone()).collect()
        })
    }

    /// The works of a set.
    pub(crate) fn works(&self, set: &ObjectKey) -> Arc<Works> {
        self.shared.state().get(set).map(|entry| entry.works.clone()).unwrap_or_default()
    }

    /// The works of a set for one cluster and placement.
    pub(crate) fn works_of(&self, replica: &Replica) -> Vec<Arc<Work>> {
        // The map itself must not be shared here: the next change would have to copy it, however many works there are.
        let sets = self.shared.state();
        let here = sets.get(&replica.set).into_iter().flat_map(|entry| on_cluster(&entry.works, &replica.cluster));
        here.filter(|work| work.placement == replica.placement).cloned().collect()
    }

    /// What is decided on a set; nothing by default.
    pub(crate) fn decision(&self, set: &ObjectKey) -> Arc<Decision> {
        self.shared.state().get(set).map(|entry| entry.decision.clone()).unwrap_or_default()
    }

    /// What is desired of a work, and the template.
    pub(crate) fn desired(&self, replica: &Replica) -> Option<(State, Arc<Template>)> {
        let decision = self.decision(&replica.set);
        let state = decision.desired.get(&(replica.cluster.clone(), replica.placement.clone()))?;
        Some((*state, decision.template.clone()?))
    }

    /// The works that are desired on a cluster, of all sets.
    pub(crate) fn desired_on(&self, cluster: &str) -> Vec<Replica> {
        let (cluster, none): (ClusterName, Arc<str>) = (cluster.into(), "".into());
        let sets = self.shared.state();
        let on_cluster = sets.iter().flat_map(|(set, entry)| {
            let from_first =
                entry.decision.desired.range((Bound::Included((cluster.clone(), none.clone())), Bound::Unbounded));
            let here = from_first.take_while(|((name, _), _)| *name == cluster);
            here.map(move |(desired, _)| Replica::new(set, desired))
        });
        on_cluster.collect()
    }

    /// Shared with the store: the next change copies it only while this is kept.
    pub(crate) fn failures(&self, set: &ObjectKey) -> Arc<Failures> {
        self.shared.state().get(set).map(|entry| entry.failures.clone()).unwrap_or_default()
    }

    pub(crate) fn former_labels(&self, set: &ObjectKey) -> BTreeSet<String> {
        self.shared.state().get(set).map(|entry| entry.former_labels.clone()).unwrap_or_default()
    }

    /// Publishes a decision. Returns whether it changes what is desired of any work.
    pub(crate) fn publish(&self, set: &ObjectKey, decision: Decision) -> bool {
        let events = publish(&mut self.shared.state(), set, decision);
        self.shared.notify(&events);
        !events.is_empty()
    }

    /// Whether anything is known of a set.
    #[cfg(test)]
    pub(crate) fn knows(&self, set: &ObjectKey) -> bool {
        self.shared.state().contains_key(set)
    }

    /// Forgets what was decided on a set that no longer exists.
    pub(crate) fn forget(&self, set: &ObjectKey) {
        let mut sets = self.shared.state();
        if let Some(entry) = sets.get_mut(set) {
            entry.forget_decision();
        }
        forget_if_empty(&mut sets, set);
    }

    /// Records why a work could not be written; `None` once it was, or need not be.
    pub(crate) fn record_outcome(&self, replica: &Replica, failure: Option<String>) {
        let event = record_outcome(&mut self.shared.state(), replica, failure);
        self.shared.notify(event.as_slice());
    }

    /// Records that the API server stored another spec than `template`, from which the work was written: admission changes it,
    /// and writing it again would change nothing.
    pub(crate) fn record_written_from(&self, set: &ObjectKey, work: &ObjectKey, template: &Digest) {
        let mut sets = self.shared.state();
        let Some(entry) = sets.get_mut(set) else { return };
        if entry.works.get(work).is_some_and(|known| known.spec != *template) {
            let known = Arc::make_mut(&mut entry.works).get_mut(work);
            known.into_iter().for_each(|known| Arc::make_mut(known).written_from = Some(template.clone()));
        }
    }

    /// Records which labels a set has and had.
    pub(crate) fn record_labels<'a>(
        &self,
        set: &ObjectKey,
        old: impl IntoIterator<Item = &'a String>,
        new: impl IntoIterator<Item = &'a String>,
    ) {
        let mut sets = self.shared.state();
        let former = &mut sets.entry(set.clone()).or_default().former_labels;
        former.extend(old.into_iter().cloned());
        new.into_iter().for_each(|key| _ = former.remove(key));
        forget_if_empty(&mut sets, set);
    }
}

/// The works on a cluster, by name.
fn on_cluster<'a>(works: &'a Works, cluster: &'a str) -> impl Iterator<Item = &'a Arc<Work>> {
    let from_first = works.range(ObjectKey::new(cluster, "")..);
    from_first.take_while(move |(key, _)| key.namespace == cluster).map(|(_, work)| work)
}
