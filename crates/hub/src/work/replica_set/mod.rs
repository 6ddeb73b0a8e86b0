//! Decides on replica sets, reports how far they have come, and deletes their works before they are gone.
//!
//! A set, the decisions of its placements or its works change → [`decide`](super::decision::decide) → publish in the
//! [`store`](super::store) what is desired of each work → status. While works change, a set is decided on a few times a second and
//! its status is written once a second.
//!
//! Of works that another leader of this hub has just created, the cache may know nothing yet. So before a set gets works for the first
//! time in a term, the API server is asked for those that it has.

mod apply;
mod observe;
mod pace;
mod plan;
mod recent;
mod status;
#[cfg(test)]
mod tests;
mod verified;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use jiff::Timestamp;
use kube::{Api, ResourceExt as _};
use ocm_api::work::v1alpha1::ManifestWorkReplicaSet;
use ocm_runtime::{Cache, Change, Controller, ControllerBuilder, ObjectKey, Requeue, write};

pub(crate) use self::{apply::Applied, plan::Plan};
use self::{pace::StatusPace, recent::RecentDecisions, verified::VerifiedSets};
use super::{
    decision::Inputs,
    facts::Work,
    kinds::ReplicaWork,
    sources,
    store::{ReplicaSetStore, StoreEvent},
};
use crate::{
    context::HubContext,
    error::{Error, Result},
};

/// How long to wait, at least, for more changes of works before deciding.
const COALESCE: Duration = Duration::from_millis(100);

/// See the module.
#[derive(Debug)]
pub(crate) struct ReplicaSetController {
    hub: HubContext,
    store: ReplicaSetStore,
    sets: Cache<ManifestWorkReplicaSet>,
    works: Cache<ReplicaWork>,
    recent: RecentDecisions,
    pace: StatusPace,
    verified: VerifiedSets,
}

/// A set, and what the decision on it depends on.
#[derive(Debug)]
pub(crate) struct Observed {
    inputs: Inputs,
    since: Instant,
}

impl ReplicaSetController {
    pub(crate) fn new(hub: &HubContext, store: ReplicaSetStore) -> Self {
        Self {
            store,
            sets: sources::sets(&hub.informers),
            works: sources::works(&hub.informers),
            recent: RecentDecisions::default(),
            pace: StatusPace::default(),
            verified: VerifiedSets::default(),
            hub: hub.clone(),
        }
    }

    fn api(&self, namespace: &str) -> Api<ManifestWorkReplicaSet> {
        Api::namespaced(self.hub.client.clone(), namespace)
    }

    fn forget(&self, set: &ObjectKey) {
        self.store.forget(set);
        self.recent.forget(set);
        self.pace.forget(set);
        self.verified.forget(set);
    }
}

impl Controller for ReplicaSetController {
    const NAME: &'static str = "replica-set";
    type Key = ObjectKey;
    type Observed = Observed;
    type Plan = Plan;
    type Applied = Applied;
    type Error = Error;

    fn setup(&self, builder: &mut ControllerBuilder<'_, ObjectKey>) {
        let (queue, recent) = (builder.queue(), self.recent.clone());
        let add_later = move |set: ObjectKey| {
            let pause = recent.pause(&set, COALESCE);
            queue.add_after(set, pause);
        };
        let (store, later) = (self.store.clone(), add_later.clone());
        builder.watches(&self.sets, move |change| {
            let key = ObjectKey::of(change.object().as_ref());
            if let Change::Updated { old, new } = change {
                store.record_labels(&key, old.labels().keys(), new.labels().keys());
                if is_status_only(old, new) {
                    later(key);
                    return None;
                }
            }
            Some(key)
        });
        let store = self.store.clone();
        self.store.tracker().setup(builder, move |placement| store.followers(placement));
        let later = add_later.clone();
        builder.watches(&self.works, move |change| {
            touched(change).into_iter().for_each(&later);
            None
        });
        self.store.listen(move |event| {
            if let StoreEvent::Failure(set) = event {
                add_later(set.clone());
            }
        });
    }

    async fn observe(&self, key: &ObjectKey) -> Result<Option<Observed>> {
        let since = Instant::now();
        let inputs = self.inputs(key);
        if inputs.is_none() {
            self.forget(key);
        }
        Ok(inputs.map(|inputs| Observed { inputs, since }))
    }

    fn plan(observed: &Observed, now: Timestamp) -> Plan {
        plan::plan(&observed.inputs, now)
    }

    async fn apply(&self, observed: &Observed, plan: Plan) -> Result<Applied> {
        // Nothing is kept of a set that ends.
        let is_decided = matches!(plan, Plan::Decide(_));
        let applied = self.carry_out(&observed.inputs, plan).await;
        if is_decided {
            self.recent.record(observed);
        }
        applied
    }

    async fn report(&self, observed: &Observed, applied: Applied, now: Timestamp) -> Result<Requeue> {
        let (outcome, recheck_after, is_changed) = match applied {
            Applied::Done(requeue) => return Ok(requeue),
            Applied::Reported { outcome, recheck_after, is_changed } => (outcome, recheck_after, is_changed),
        };
        let key = &observed.inputs.set.key;
        let wait = self.pace.wait(key, is_changed, Instant::now());
        if wait.is_none() {
            self.write_status(key, &outcome, now).await?;
        }
        let next = [wait, recheck_after].into_iter().flatten().min();
        Ok(next.map_or(Requeue::OnChange, Requeue::After))
    }
}

impl ReplicaSetController {
    async fn write_status(&self, key: &ObjectKey, outcome: &status::Outcome, now: Timestamp) -> Result<()> {
        let Some(set) = self.sets.get(key) else { return Ok(()) };
        // Zeros that were never written stay unwritten.
        let mut old = ManifestWorkReplicaSet::clone(&set);
        old.status.get_or_insert_default();
        let new = status::reported(&old, outcome, now);
        if let Some(written) = write::patch_status(&self.api(&key.namespace), &old, &new).await? {
            self.sets.record_write(written);
        }
        Ok(())
    }
}

/// Nearly always what was written here.
fn is_status_only(old: &ManifestWorkReplicaSet, new: &ManifestWorkReplicaSet) -> bool {
    let relevant = |set: &ManifestWorkReplicaSet| {
        let metadata = &set.metadata;
        (metadata.uid.clone(), metadata.generation, metadata.deletion_timestamp.clone(), metadata.labels.clone())
    };
    relevant(old) == relevant(new) && old.finalizers() == new.finalizers()
}

/// The sets to which a work belongs and belonged, if the decision on them depends on the change.
fn touched(change: Change<'_, ReplicaWork>) -> Vec<ObjectKey> {
    let set = |work: &Arc<ReplicaWork>| Work::of(work);
    let mut sets = match change {
        Change::Updated { old, new } => {
            let (old, new) = (set(old), set(new));
            if old == new { Vec::new() } else { [old, new].into_iter().flatten().collect() }
        }
        Change::Added(work) | Change::Deleted(work) => Vec::from_iter(set(work)),
    };
    sets.dedup_by(|one, other| one.0 == other.0);
    sets.into_iter().map(|(set, _)| set).collect()
}
