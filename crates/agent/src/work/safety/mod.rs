//! No mass deletion by a hub that lost its works. `docs/mass-deletion.md` has the rule, for people.
//!
//! A work that somebody deletes has a deletion timestamp until this agent has removed its finalizer: that is an order, and is
//! carried out whatever it concerns. A record whose work is gone without that is no order: the hub may have lost its data, or
//! be another one. [`super::eviction`] deletes what such a record lists after a grace period, and asks this module first:
//!
//! - `census` counts the records without a work. More than a share of all, and none is deleted.
//! - `history` finds whether the hub has older data than the agent has seen, as after a restore from a backup. A record
//!   whose work such a hub does not know is not deleted either.
//! - `report` publishes what is held, and takes the confirmation of an administrator.
//!
//! While a record is held its grace period does not run: it begins when the hold ends without a confirmation.

mod census;
mod history;
mod report;

use std::{
    collections::HashSet,
    ops::ControlFlow,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use kube::{Api, Client, ResourceExt as _};
use ocm_api::{
    components,
    work::v1::{AppliedManifestWork, ManifestWork},
};
use ocm_runtime::{Cache, Change, ObjectKey, Queue, Result, informer::View};

pub use self::census::HoldLimit;
pub(super) use self::report::HeldEvictions;
use self::{
    census::{Census, Entry, Held, Works},
    history::History,
};
use super::Settings;

/// Decides whether records without a work may be deleted. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Guard {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    settings: Arc<Settings>,
    hub: Api<ManifestWork>,
    works: Cache<ManifestWork>,
    records: View<Entry>,
    state: Mutex<State>,
    evictions: OnceLock<Queue<String>>,
}

#[derive(Debug, Default)]
struct State {
    history: History,
    /// The uids of records whose deletion was confirmed.
    confirmed: HashSet<String>,
    /// Counts everything that a census depends on.
    changes: u64,
    /// The last census, and the changes until then.
    census: Option<(u64, Arc<Census>)>,
}

/// Whether a record without a work may be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// After the grace period.
    AfterGrace,
    /// Now: somebody confirmed it.
    Confirmed,
    /// Not until somebody confirms it, or its work is back.
    Held,
    /// The same, and the record must remember it: the hub has older data than the record.
    Lost,
}

impl Guard {
    pub(super) fn new(
        settings: &Arc<Settings>,
        hub: &Client,
        works: &Cache<ManifestWork>,
        records: &Cache<AppliedManifestWork>,
    ) -> Self {
        let own = settings.clone();
        let shared = Arc::new(Shared {
            settings: settings.clone(),
            hub: Api::namespaced(hub.clone(), &settings.cluster),
            works: works.clone(),
            records: records.view(move |record| Entry::of(record, &own)),
            state: Mutex::default(),
            evictions: OnceLock::new(),
        });
        let weak = Arc::downgrade(&shared);
        works.subscribe(move |change| weak.upgrade().map_or(ControlFlow::Break(()), |shared| shared.saw_work(change)));
        let weak = Arc::downgrade(&shared);
        records
            .subscribe(move |change| weak.upgrade().map_or(ControlFlow::Break(()), |shared| shared.saw_record(change)));
        Self { shared }
    }

    /// Has the names of records added to this queue when a hold ends.
    pub(super) fn notify(&self, evictions: Queue<String>) {
        let _ = self.shared.evictions.set(evictions);
    }

    /// Whether this record, whose work does not exist, may be deleted. Asks the hub when its work is first missing.
    pub(super) async fn judge(&self, record: &AppliedManifestWork) -> Result<Verdict> {
        let (name, census) = (record.name_any(), self.shared.census());
        if self.shared.lock().confirmed.contains(&record.uid().unwrap_or_default()) {
            return Ok(Verdict::Confirmed);
        }
        let Some(entry) = census.missing(&name) else { return Ok(Verdict::AfterGrace) };
        if entry.is_lost || census.exceeds(self.shared.settings.hold_limit) {
            return Ok(Verdict::Held);
        }
        let is_waiting = record.status.as_ref().is_some_and(|status| status.eviction_start_time.is_some());
        match !is_waiting && entry.is_of_this_hub && self.has_lost(&entry.work, census.revision).await? {
            true => Ok(Verdict::Lost),
            false => Ok(Verdict::AfterGrace),
        }
    }

    /// Whether the hub does not have the work, and has not reached a version that it had before.
    async fn has_lost(&self, work: &str, recorded: u64) -> Result<bool> {
        let seen = self.shared.lock().history.newest.max(recorded);
        history::has_lost(&self.shared.hub, work, seen).await
    }

    fn held(&self) -> Option<Held> {
        let settings = &self.shared.settings;
        let evicts = settings.eviction_grace < super::eviction::NEVER;
        evicts.then(|| self.shared.census().held(settings.hold_limit)).flatten()
    }

    /// Lets the records of these uids be deleted.
    fn confirm(&self, uids: HashSet<String>) {
        let mut state = self.shared.lock();
        state.confirmed.extend(uids);
        state.changes += 1;
    }

    /// Has all records decided on again.
    fn decide_again(&self) {
        let names = self.shared.records.read(|records| records.keys().map(|key| key.name.clone()).collect::<Vec<_>>());
        if let Some(queue) = self.shared.evictions.get() {
            names.into_iter().for_each(|name| queue.add(name));
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn saw_work(&self, change: Change<'_, ManifestWork>) -> ControlFlow<()> {
        let name = change.object().name_any();
        let record = components::applied_manifest_work_name(&self.settings.hub_hash, &name);
        let record = self.records.get(&ObjectKey::new("", record));
        let mut state = self.lock();
        state.history.saw(change, record.is_some());
        if let (Some(record), false) = (record, matches!(change, Change::Deleted(_))) {
            // What was confirmed was that this work is gone.
            state.confirmed.remove(&*record.uid);
        }
        state.changes += 1;
        ControlFlow::Continue(())
    }

    fn saw_record(&self, change: Change<'_, AppliedManifestWork>) -> ControlFlow<()> {
        let mut state = self.lock();
        if let Change::Deleted(record) = change {
            state.history.forget(&record.spec.manifest_work_name);
            state.confirmed.remove(&record.uid().unwrap_or_default());
        }
        state.changes += 1;
        ControlFlow::Continue(())
    }

    /// Counts again only if something has changed: when many works are missing, each of their records asks.
    fn census(&self) -> Arc<Census> {
        let changes = match &*self.lock() {
            State { changes, census: Some((at, census)), .. } if at == changes => return census.clone(),
            State { changes, .. } => *changes,
        };
        let census = Arc::new(self.count());
        self.lock().census = Some((changes, census.clone()));
        census
    }

    fn count(&self) -> Census {
        let existing = self.works.keys().into_iter().map(|key| key.name).collect();
        let (deleted, confirmed) = {
            let state = self.lock();
            (state.history.deleted.clone(), state.confirmed.clone())
        };
        let works = Works { existing, deleted: &deleted, confirmed: &confirmed };
        self.records.read(|records| Census::take(records, &works, &self.settings.hub_hash))
    }
}
