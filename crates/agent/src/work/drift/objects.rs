//! The objects that works have applied: in which works they are, how they were left, and how they were last seen.
//!
//! Three sides feed it. Records say which works list an object. Requests say how an object was left: its [`Baseline`].
//! Watches say what it is now: [`Seen`]. Whenever one of them changes, baseline and state are compared, and the works of an
//! object that has drifted are put into their queue. An object whose watch is complete and has brought nothing that counts
//! needs no request to know that it is as it was left.

mod tracked;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use kube::core::{DynamicObject, ObjectMeta};
use ocm_api::work::v1::{AppliedManifestResourceMeta, ResourceIdentifier};
use ocm_runtime::{Clock, Queue};
use tokio::sync::{Notify, mpsc};
use tracing::debug;

pub(in crate::work) use self::tracked::Assessment;
use self::tracked::Tracked;
use super::{
    baseline::{Baseline, Verdict},
    damping::Damping,
    report::{self, Repair},
    scope::{Kind, Scope, Usage},
    seen::{Seen, is_older},
};
use crate::work::identifier;

/// Numbers the lists of all watches: what one list and the watch after it have brought belongs together.
pub(super) type Epoch = u64;

/// The objects of all works of an agent. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(in crate::work) struct AppliedObjects {
    state: Arc<Mutex<State>>,
    works: Arc<OnceLock<Queue<String>>>,
    repairs: Arc<OnceLock<mpsc::Sender<Repair>>>,
    changed: Arc<Notify>,
    clock: Clock,
}

#[derive(Debug, Default)]
struct State {
    objects: HashMap<ResourceIdentifier, Tracked>,
    /// The version of each kind in the records.
    versions: HashMap<Kind, String>,
    /// The watches that continue from a complete list.
    live: HashMap<Epoch, Scope>,
    last_epoch: Epoch,
    damping: Damping,
}

impl AppliedObjects {
    /// With the time of this clock, by which repeated repairs of an object are delayed.
    pub(in crate::work) fn new(clock: Clock, damping: Damping) -> Self {
        Self { clock, state: Arc::new(Mutex::new(State { damping, ..State::default() })), ..Self::default() }
    }

    /// Has the names of works whose objects have drifted added to this queue.
    pub(in crate::work) fn notify(&self, works: Queue<String>) {
        let _ = self.works.set(works);
    }

    /// Waits until other objects, or objects of other kinds, are to be watched.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Has repairs sent to where they are reported.
    pub(super) fn report(&self, repairs: mpsc::Sender<Repair>) {
        let _ = self.repairs.set(repairs);
    }

    /// Has the watches chosen again.
    pub(super) fn choose_again(&self) {
        self.changed.notify_one();
    }

    /// Changes the state, then puts the works of all objects that have drifted by that into their queue.
    fn change<R>(&self, change: impl FnOnce(&mut State, &mut Alarms) -> R) -> R {
        let mut alarms = Alarms::default();
        let mut state = self.lock();
        let changed = change(&mut state, &mut alarms);
        let now = self.clock.now();
        let due: Vec<_> = alarms.0.into_iter().flat_map(|id| state.due(&id, now)).collect();
        drop(state);
        for (work, delay) in due {
            self.works.get().into_iter().for_each(|works| works.add_after(work.to_string(), delay));
        }
        changed
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Objects that have drifted.
#[derive(Default)]
struct Alarms(Vec<ResourceIdentifier>);

/// What requests tell.
impl AppliedObjects {
    /// Whether the object was applied before.
    pub(in crate::work) fn contains(&self, id: &ResourceIdentifier) -> bool {
        self.lock().objects.get(id).is_some_and(|tracked| tracked.baseline.is_some())
    }

    /// What to do about an object that was just read, when a manifest with this hash is applied.
    pub(in crate::work) fn assess(
        &self,
        id: &ResourceIdentifier,
        manifest: (&DynamicObject, [u8; 32]),
        object: &DynamicObject,
    ) -> Assessment {
        let now = self.clock.now();
        self.change(|state, alarms| {
            let Some(tracked) = state.objects.get_mut(id) else { return Assessment::Write };
            let assessment = tracked.assess(manifest, object, now, state.damping);
            match assessment {
                Assessment::Keep => state.confirm(id, alarms),
                // It is repaired later.
                Assessment::Hold => alarms.0.push(id.clone()),
                Assessment::Write => {}
            }
            assessment
        })
    }

    /// An object is about to be applied without being assessed.
    pub(in crate::work) fn attempt(&self, id: &ResourceIdentifier) {
        let now = self.clock.now();
        let mut state = self.lock();
        let damping = state.damping;
        state.objects.get_mut(id).into_iter().for_each(|tracked| tracked.attempt(now, damping));
    }

    /// Records how an object was left.
    pub(in crate::work) fn insert(&self, id: &ResourceIdentifier, baseline: Baseline) {
        let now = self.clock.now();
        let mut repair = None;
        let is_new = self.change(|state, alarms| {
            let tracked = state.objects.entry(id.clone()).or_default();
            tracked.count_write(now, state.damping);
            repair = tracked.repair(id, &baseline, now, state.damping);
            let is_new = tracked.baseline.replace(baseline).is_none();
            match is_new {
                true => state.check(id, alarms),
                false => state.confirm(id, alarms),
            }
            is_new
        });
        if is_new {
            self.choose_again();
        }
        if let (Some(repairs), Some(repair)) = (self.repairs.get(), repair) {
            // More at a time than are reported are of no use to anybody.
            let _ = repairs.try_send(repair);
        }
    }

    /// Who keeps changing an object, if somebody does.
    pub(in crate::work) fn contest(&self, id: &ResourceIdentifier) -> Option<String> {
        let state = self.lock();
        let tracked = state.objects.get(id)?;
        let is_contested = tracked.history.is_contested(self.clock.now(), state.damping);
        tracked.contest.as_ref().filter(|_| is_contested).map(|contest| report::contested(contest))
    }

    /// The metadata of an object that is known to be as it was left, whatever its manifest.
    pub(in crate::work) fn known(&self, id: &ResourceIdentifier) -> Option<ObjectMeta> {
        let state = self.lock();
        Some(state.in_sync(id)?.baseline.as_ref()?.metadata(&id.name, &id.namespace))
    }

    /// Forgets how an object was left: it is about to be deleted.
    pub(in crate::work) fn remove(&self, id: &ResourceIdentifier) {
        if let Some(tracked) = self.lock().objects.get_mut(id) {
            tracked.baseline = None;
        }
    }

    /// The metadata of an object that is known to be as it was left when a manifest with this hash was applied; `None` if
    /// only a request can tell.
    pub(in crate::work) fn covered(&self, id: &ResourceIdentifier, manifest: [u8; 32]) -> Option<ObjectMeta> {
        let state = self.lock();
        let baseline = state.in_sync(id)?.baseline.as_ref()?;
        baseline.is_of(manifest).then(|| baseline.metadata(&id.name, &id.namespace))
    }
}

/// What records tell.
impl AppliedObjects {
    /// A record of a work lists other objects than before.
    pub(super) fn recorded(
        &self,
        work: &str,
        old: &[AppliedManifestResourceMeta],
        new: &[AppliedManifestResourceMeta],
    ) {
        if old == new {
            return;
        }
        let work: Arc<str> = work.into();
        self.change(|state, alarms| {
            old.iter().for_each(|recorded| state.unlist(&identifier::of_recorded(recorded), &work));
            for recorded in new {
                let id = identifier::of_recorded(recorded);
                state.versions.insert(Kind::of(&id), recorded.version.clone());
                state.list(&id, &work);
                state.check(&id, alarms);
            }
            old.iter().for_each(|recorded| state.forget_unlisted(&identifier::of_recorded(recorded)));
        });
        self.choose_again();
    }

    /// How many objects of each kind can drift, and where.
    pub(super) fn usage(&self) -> Vec<Usage> {
        let state = self.lock();
        let mut usages: HashMap<Kind, Usage> = HashMap::new();
        for (id, _) in state.objects.iter().filter(|(_, tracked)| tracked.can_drift()) {
            let kind = Kind::of(id);
            let Some(version) = state.versions.get(&kind) else { continue };
            usages.entry(kind.clone()).or_insert_with(|| Usage::new(kind, version)).add(&id.namespace);
        }
        usages.into_values().collect()
    }
}

/// What watches tell.
impl AppliedObjects {
    /// A list begins.
    pub(super) fn begin(&self) -> Epoch {
        let mut state = self.lock();
        state.last_epoch += 1;
        state.last_epoch
    }

    /// An object exists, in this state.
    pub(super) fn saw(&self, epoch: Epoch, id: &ResourceIdentifier, metadata: &ObjectMeta) {
        if self.lock().objects.contains_key(id) {
            let seen = Seen::of(metadata);
            self.change(|state, alarms| state.see(epoch, id, seen, alarms));
        }
    }

    /// An object is gone; this is how it was last seen.
    pub(super) fn gone(&self, epoch: Epoch, id: &ResourceIdentifier, metadata: &ObjectMeta) {
        if self.lock().objects.contains_key(id) {
            let seen = Seen::of(metadata).deleted();
            self.change(|state, alarms| state.see(epoch, id, seen, alarms));
        }
    }

    /// A list is complete. What it lacks is requested.
    pub(super) fn listed(&self, epoch: Epoch, scope: &Scope) {
        self.change(|state, alarms| {
            state.live.insert(epoch, scope.clone());
            let is_missing = |id: &ResourceIdentifier, tracked: &Tracked| {
                let is_seen = tracked.seen.as_ref().is_some_and(|(of, _)| *of == epoch);
                tracked.can_drift() && !is_seen && scope.contains(id)
            };
            let missing = state.objects.iter().filter(|(id, tracked)| is_missing(id, tracked));
            alarms.0.extend(missing.map(|(id, _)| id.clone()));
        });
    }

    /// A watch has failed or was stopped: what it has brought proves nothing any more.
    pub(super) fn lost(&self, epoch: Epoch) {
        self.lock().live.remove(&epoch);
    }
}

impl State {
    fn list(&mut self, id: &ResourceIdentifier, work: &Arc<str>) {
        let works = &mut self.objects.entry(id.clone()).or_default().works;
        if !works.contains(work) {
            works.push(work.clone());
        }
    }

    fn unlist(&mut self, id: &ResourceIdentifier, work: &Arc<str>) {
        if let Some(tracked) = self.objects.get_mut(id) {
            tracked.works.retain(|other| other != work);
        }
    }

    /// What no record lists any more is not applied any more.
    fn forget_unlisted(&mut self, id: &ResourceIdentifier) {
        if self.objects.get(id).is_some_and(|tracked| tracked.works.is_empty()) {
            self.objects.remove(id);
        }
    }

    /// The works of an object, and how long they are to wait.
    fn due(&self, id: &ResourceIdentifier, now: Timestamp) -> Vec<(Arc<str>, Duration)> {
        let Some(tracked) = self.objects.get(id) else { return Vec::new() };
        let delay = tracked.history.hold(now, self.damping);
        tracked.works.iter().map(|work| (work.clone(), delay)).collect()
    }

    fn see(&mut self, epoch: Epoch, id: &ResourceIdentifier, seen: Seen, alarms: &mut Alarms) {
        let Some(tracked) = self.objects.get_mut(id) else { return };
        // What a request has returned may be newer than what the watch brings.
        let is_late = |(of, last): &(Epoch, Seen)| *of == epoch && is_older(&seen.version, &last.version);
        if !tracked.seen.as_ref().is_some_and(is_late) {
            tracked.seen = Some((epoch, seen));
        }
        self.check(id, alarms);
    }

    /// An object that was tracked before was read or written: its watch brings what comes after that.
    fn confirm(&mut self, id: &ResourceIdentifier, alarms: &mut Alarms) {
        let epoch = self.live.iter().find(|(_, scope)| scope.contains(id)).map(|(epoch, _)| *epoch);
        let left = self.objects.get(id).and_then(|tracked| tracked.baseline.as_ref()).map(Baseline::seen).cloned();
        match (epoch, left) {
            (Some(epoch), Some(left)) => self.see(epoch, id, left, alarms),
            _ => self.check(id, alarms),
        }
    }

    fn check(&self, id: &ResourceIdentifier, alarms: &mut Alarms) {
        let Some(tracked) = self.objects.get(id) else { return };
        if let Some(Verdict::Drifted(drift)) = tracked.verdict() {
            debug!(
                resource = id.resource,
                namespace = id.namespace,
                name = id.name,
                ?drift,
                "an applied object was changed"
            );
            alarms.0.push(id.clone());
        }
    }

    /// The object, if a live watch says that it is as it was left.
    fn in_sync(&self, id: &ResourceIdentifier) -> Option<&Tracked> {
        let tracked = self.objects.get(id)?;
        let (epoch, _) = tracked.seen.as_ref()?;
        let is_in_sync = self.live.contains_key(epoch) && tracked.verdict() == Some(Verdict::InSync);
        is_in_sync.then_some(tracked)
    }
}

#[cfg(test)]
mod tests;
