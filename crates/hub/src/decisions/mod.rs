//! The decisions of placements, for everything that follows placements: add-ons, and everything else that is rolled out to the
//! clusters that placements choose.
//!
//! A hub has one [`DecisionTracker`]. It joins Placements with their PlacementDecisions as informers bring them, and keeps
//! what followers need: which clusters a placement has chosen, in which decision groups. Names of clusters are stored once,
//! however many placements have chosen the cluster, and a snapshot shares them.

mod departure;
mod groups;
mod state;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

use std::{
    fmt,
    ops::ControlFlow,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use kube::ResourceExt as _;
use ocm_api::{
    cluster::v1beta1::{Placement, PlacementDecision},
    labels::PLACEMENT,
};
use ocm_runtime::{
    Cache, Change, ControllerBuilder, Informers, ObjectKey,
    informer::{WatchFilter, Watchable},
    queue::Key,
};

pub(crate) use self::departure::time_left;
#[cfg(test)]
pub(crate) use self::departure::{GRACE, UNREADABLE};
use self::state::State;
pub use self::{
    groups::{ClusterName, DecisionGroup, DecisionGroups, GroupKey},
    state::{GroupIndexError, PlacementDecisions, PlacementSnapshot},
};

/// See the module. Cheap to clone; up to date as long as a clone exists.
#[derive(Clone)]
pub struct DecisionTracker {
    state: Arc<Mutex<State>>,
    placements: Cache<Placement>,
    decisions: Cache<PlacementDecision>,
}

impl fmt::Debug for DecisionTracker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DecisionTracker").finish_non_exhaustive()
    }
}

impl DecisionTracker {
    /// A tracker that is fed by these informers.
    #[must_use]
    pub fn new(informers: &Informers) -> Self {
        let (placements, decisions) = (informers.all(WatchFilter::all()), informers.all(WatchFilter::all()));
        let tracker = Self { state: Arc::default(), placements, decisions };
        tracker.feed(&tracker.placements, State::set_placement);
        tracker.feed(&tracker.decisions, State::set_decision);
        tracker
    }

    /// Feeds the state with a cache: `set` gets each object as it is now, or `None` when it is deleted.
    fn feed<K: Watchable>(&self, cache: &Cache<K>, set: fn(&mut State, &ObjectKey, Option<&K>)) {
        let state = Arc::downgrade(&self.state);
        cache.subscribe(move |change| {
            let Some(state) = state.upgrade() else { return ControlFlow::Break(()) };
            let object = change.object().as_ref();
            let present = (!matches!(change, Change::Deleted(_))).then_some(object);
            set(&mut lock(&state), &ObjectKey::of(object), present);
            ControlFlow::Continue(())
        });
    }

    /// Lets a controller wait until the tracker is complete, and puts the keys that `keys` makes of a placement into its
    /// queue whenever the placement or one of its decisions changes. The tracker has taken in the change by then.
    pub fn setup<K: Key, I: IntoIterator<Item = K>>(
        &self,
        builder: &mut ControllerBuilder<'_, K>,
        keys: impl Fn(&ObjectKey) -> I + Clone + Send + 'static,
    ) {
        let of_placement = keys.clone();
        builder.watches(&self.placements, move |change| of_placement(&ObjectKey::of(change.object().as_ref())));
        builder.watches(&self.decisions, move |change| {
            // It belongs to another placement than before when somebody changed its label.
            let before = match change {
                Change::Updated { old, .. } => placement_of(old),
                Change::Added(_) | Change::Deleted(_) => None,
            };
            let now = placement_of(change.object());
            let before = before.filter(|before| now.as_ref() != Some(before));
            [before, now].into_iter().flatten().flat_map(|placement| keys(&placement)).collect::<Vec<_>>()
        });
    }

    /// What a placement has chosen; `None` if the placement does not exist, even if decisions of it do.
    #[must_use]
    pub fn placement(&self, key: &ObjectKey) -> Option<PlacementSnapshot> {
        lock(&self.state).placement(key)
    }

    /// A placement or decision in this namespace that cannot be read, so that more clusters may be chosen than is known.
    #[must_use]
    pub fn unreadable_in(&self, namespace: &str) -> Option<ObjectKey> {
        self.placements.left_out_in(namespace).or_else(|| self.decisions.left_out_in(namespace))
    }
}

/// The placement that a decision belongs to, by its label.
fn placement_of(decision: &PlacementDecision) -> Option<ObjectKey> {
    let placement = decision.labels().get(PLACEMENT)?;
    Some(ObjectKey::new(decision.namespace().unwrap_or_default(), placement.clone()))
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
