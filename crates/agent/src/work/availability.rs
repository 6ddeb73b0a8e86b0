//! Polls what was applied: whether it exists, and what is reported of it.
//!
//! Of objects without rules only the metadata are read. Works that ask for it are polled as soon as one of their objects
//! changes ([`super::watches`]).

mod polled;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures::{StreamExt as _, stream};
use jiff::Timestamp;
use kube::{Api, ResourceExt as _};
use ocm_api::work::v1::{ManifestResourceMeta, ManifestWork};
use ocm_runtime::{
    Change, ControllerBuilder, Error, ObjectKey, Requeue, Result, conditions::set, controller::StatusController,
    error::found, informer::View, write,
};

use self::polled::{Polled, PolledObject};
use super::{
    Shared,
    conditions::aggregate,
    identifier,
    status::{self, ApplyResult, ObjectState, Outcome},
    watches::{FollowedObject, ObjectWatches, WatchedResource},
};

/// The longest time between two polls is this much more than the shortest, so that works spread out.
const JITTER: f64 = 0.9;
/// How many objects of a work are read at a time.
const AT_A_TIME: usize = 8;
/// How long to wait for further changes of watched objects: they come in numbers.
const SETTLE: Duration = Duration::from_millis(250);

/// The controller; its keys are names of ManifestWorks.
#[derive(Debug)]
pub(super) struct Availability {
    shared: Shared,
    /// What is polled of each work. The works themselves are read only where that leads to a change.
    polled: View<Arc<Polled>>,
    watches: ObjectWatches,
}

/// What a poll has found.
#[derive(Clone, Debug)]
pub(super) struct Observed {
    /// The work, if its status has to change.
    work: Option<Arc<ManifestWork>>,
    outcomes: Vec<Outcome>,
}

impl Availability {
    pub(super) fn new(shared: Shared, watches: ObjectWatches) -> Self {
        let polled = shared.works.view(|work| Polled::of(work).map(Arc::new));
        Self { shared, polled, watches }
    }

    async fn poll(&self, PolledObject { meta, options, is_unread }: PolledObject) -> Outcome {
        let object = match is_addressable(&meta) {
            true => self.shared.resources.observe(&meta, &options).await,
            false => ObjectState::Unmapped,
        };
        let (pool, settings) = (self.shared.resources.pool(), self.shared.settings.feedback);
        let outcome = Outcome::evaluated(pool, meta, ApplyResult::NotTried, object, &options, settings).await;
        if is_unread { outcome.without_evaluation() } else { outcome }
    }

    /// The work whose status differs from what was found; not if it has other objects or rules since.
    fn outdated(&self, key: &ObjectKey, polled_before: &Polled, outcomes: &[Outcome]) -> Option<Arc<ManifestWork>> {
        if !polled_before.is_outdated(outcomes) {
            return None;
        }
        let work = self.shared.works.get(key)?;
        let is_same = Polled::of(&work).is_some_and(|now| now.has_the_objects_of(polled_before));
        is_same.then_some(work)
    }
}

fn is_addressable(meta: &ManifestResourceMeta) -> bool {
    identifier::is_addressable(&identifier::recorded(meta, None))
}

/// The objects of a work that are watched.
fn followed(polled: &Polled) -> BTreeSet<FollowedObject> {
    let watched = |object: &PolledObject| object.options.is_watched() && is_addressable(&object.meta);
    let followed = |PolledObject { meta, .. }: PolledObject| {
        let ManifestResourceMeta { group, version, resource, namespace, name, .. } = meta;
        FollowedObject { resource: WatchedResource { group, version, resource, namespace }, name }
    };
    if !polled.has_rules() {
        return BTreeSet::new();
    }
    polled.objects().into_iter().filter(watched).map(followed).collect()
}

/// Some time after the shortest interval, different for every work.
fn next_poll(shortest: Duration) -> Duration {
    shortest.mul_f64(1.0 + JITTER * rand::random_range(0.0..1.0))
}

impl StatusController for Availability {
    const NAME: &'static str = "manifestwork-availability";
    type Key = String;
    type Observed = Observed;
    type Plan = Option<ManifestWork>;
    type Error = Error;

    /// A work is polled some time after it changed: what has just been applied exists.
    fn setup(&self, builder: &mut ControllerBuilder<'_, String>) {
        let (queue, shortest) = (builder.queue(), self.shared.settings.status_sync);
        let (polled, watches, cluster) =
            (self.polled.clone(), self.watches.clone(), self.shared.settings.cluster.clone());
        builder.watches(&self.shared.works, move |change| {
            let name = change.object().name_any();
            // While a new generation is applied, the watches of the former one stay.
            match (change, polled.get(&ObjectKey::new(&cluster, &name))) {
                (Change::Deleted(_), _) => watches.follow(&name, &BTreeSet::new()),
                (_, Some(polled)) => watches.follow(&name, &followed(&polled)),
                (_, None) => {}
            }
            queue.add_after(name, next_poll(shortest));
            None
        });
        let queue = builder.queue();
        self.watches.on_change(move |work| queue.add_after(work, SETTLE));
    }

    async fn observe(&self, key: &String) -> Result<Option<Observed>> {
        let key = ObjectKey::new(&self.shared.settings.cluster, key);
        let Some(polled) = self.polled.get(&key) else { return Ok(None) };
        let polls = stream::iter(polled.objects()).map(|object| self.poll(object));
        let outcomes: Vec<_> = polls.buffered(AT_A_TIME).collect().await;
        let work = self.outdated(&key, &polled, &outcomes);
        Ok(Some(Observed { work, outcomes }))
    }

    fn plan(observed: &Observed, now: Timestamp) -> Option<ManifestWork> {
        let mut new = observed.work.as_ref()?.as_ref().clone();
        let generation = new.metadata.generation;
        let reported = new.status.get_or_insert_default();
        let entries = status::manifests(&reported.resource_status.manifests, &observed.outcomes, generation, now);
        if let Some(available) = status::available(&entries) {
            set(&mut reported.conditions, available, generation, now);
        }
        aggregate(&mut reported.conditions, &entries, now);
        reported.resource_status.manifests = entries;
        Some(new)
    }

    async fn report(&self, observed: &Observed, plan: Option<ManifestWork>, _: Timestamp) -> Result<Requeue> {
        if let (Some(old), Some(new)) = (&observed.work, plan) {
            let api = Api::namespaced(self.shared.hub.client().clone(), &self.shared.settings.cluster);
            if let Some(Some(patched)) = found(write::patch_status(&api, old.as_ref(), &new).await)? {
                self.shared.works.record_write(patched);
            }
        }
        Ok(Requeue::After(next_poll(self.shared.settings.status_sync)))
    }
}

#[cfg(test)]
mod tests;
