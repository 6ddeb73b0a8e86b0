//! Where add-ons belong and where they are, joined as either changes.
//!
//! Add-ons, placements and their decisions are three watches; which installations a change of one of them touches is
//! found here, so that the work it makes is in proportion to it: a decision that gains a cluster touches that cluster in
//! each add-on that follows its placement, and nothing else.

mod addon;
mod query;
mod state;
#[cfg(test)]
mod tests;

use std::{
    fmt,
    ops::ControlFlow,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use jiff::Timestamp;
use ocm_api::{
    addon::v1alpha1::{ClusterManagementAddOn, ManagedClusterAddOn},
    cluster::v1beta1::{Placement, PlacementDecision},
};
use ocm_runtime::{Cache, Change, Clock, ControllerBuilder, Informers, ObjectKey, informer::Watchable, queue::Key};

pub(crate) use self::query::{Progress, Sight, Wish};
use self::state::State;
use super::{
    facts::{self, Chooser, Decision, Management},
    sources,
};

/// What a change touches.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum News {
    /// The installation of an add-on on a cluster: namespace and name of its ManagedClusterAddOn.
    Installation(ObjectKey),
    /// How the installation of an add-on goes.
    Progress {
        /// The add-on.
        addon: String,
        /// Whether it is installed wherever it belongs.
        is_settled: bool,
    },
}

type Listener = Box<dyn Fn(&News) + Send>;

/// See the module. Cheap to clone; kept up to date as long as a clone is there.
#[derive(Clone)]
pub(crate) struct Index {
    shared: Arc<Shared>,
    sources: Sources,
}

struct Shared {
    state: Mutex<State>,
    listeners: Mutex<Vec<Listener>>,
    clock: Clock,
}

/// What it is fed by.
#[derive(Clone)]
struct Sources {
    managements: Cache<ClusterManagementAddOn>,
    addons: Cache<ManagedClusterAddOn>,
    placements: Cache<Placement>,
    decisions: Cache<PlacementDecision>,
}

impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Index").finish_non_exhaustive()
    }
}

impl Index {
    pub(crate) fn new(watches: &Informers, clock: Clock) -> Self {
        let sources = Sources {
            managements: sources::managements(watches),
            addons: sources::addons(watches),
            placements: sources::placements(watches),
            decisions: sources::decisions(watches),
        };
        let shared = Arc::new(Shared { state: Mutex::default(), listeners: Mutex::default(), clock });
        let index = Self { shared, sources };
        index.feed();
        index
    }

    fn feed(&self) {
        self.follow(&self.sources.managements, |state, key, management, now| {
            state.set_management(&key.name, management.and_then(Management::of), now)
        });
        self.follow(&self.sources.placements, |state, key, placement, now| {
            state.set_placement(&key, placement.map(Chooser::of), now)
        });
        self.follow(&self.sources.decisions, |state, key, decision, now| {
            state.set_decision(key, decision.and_then(Decision::of), now)
        });
        self.follow(&self.sources.addons, |state, key, addon, now| {
            state.set_installed(&key, addon.map(facts::is_configured), now)
        });
    }

    /// Feeds the index with a cache: `take` gets each object as it is now, or nothing when it is gone.
    fn follow<K: Watchable>(
        &self,
        cache: &Cache<K>,
        take: impl Fn(&mut State, ObjectKey, Option<&K>, Timestamp) -> Vec<News> + Send + 'static,
    ) {
        let shared = Arc::downgrade(&self.shared);
        cache.subscribe(move |change| {
            let Some(shared) = shared.upgrade() else { return ControlFlow::Break(()) };
            let object = change.object().as_ref();
            let present = (!matches!(change, Change::Deleted(_))).then_some(object);
            shared.update(|state, now| take(state, ObjectKey::of(object), present, now));
            ControlFlow::Continue(())
        });
    }

    /// Lets a controller wait until the index is complete, and tells `listener` of everything that is there and then of
    /// every change. It must be quick and must not ask the index.
    pub(crate) fn setup<K: Key>(
        &self,
        builder: &mut ControllerBuilder<'_, K>,
        listener: impl Fn(&News) + Send + 'static,
    ) {
        builder.waits_for(&self.sources.managements);
        builder.waits_for(&self.sources.addons);
        builder.waits_for(&self.sources.placements);
        builder.waits_for(&self.sources.decisions);
        let mut listeners = lock(&self.shared.listeners);
        lock(&self.shared.state).everything().iter().for_each(&listener);
        listeners.push(Box::new(listener));
    }

    /// Asks the index; `ask` must be quick.
    pub(crate) fn ask<R>(&self, ask: impl FnOnce(&State) -> R) -> R {
        ask(&lock(&self.shared.state))
    }

    /// Whether there may be more of an add-on's placements than is known: a placement or a decision in one of their
    /// namespaces that could never be read.
    pub(crate) fn is_unsure(&self, addon: &str) -> bool {
        let Sources { placements, decisions, .. } = &self.sources;
        let is_unsure =
            |namespace: &String| placements.left_out_in(namespace).or(decisions.left_out_in(namespace)).is_some();
        // Not while the index is locked: the caches are, when they feed it.
        self.ask(|index| index.namespaces(addon)).iter().any(is_unsure)
    }

    /// Remembers why an add-on could not be installed on a cluster, until it is there or no longer wanted.
    pub(crate) fn set_failure(&self, installation: &ObjectKey, reason: String) {
        self.shared.update(|state, _| state.set_failure(installation, reason));
    }
}

impl Shared {
    fn update(&self, change: impl FnOnce(&mut State, Timestamp) -> Vec<News>) {
        // Who listens is locked first, so that nobody misses what happens while he is told what is there.
        let listeners = lock(&self.listeners);
        let news = change(&mut lock(&self.state), self.clock.now());
        news.iter().for_each(|news| listeners.iter().for_each(|listener| listener(news)));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
