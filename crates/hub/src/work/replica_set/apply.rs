//! Carrying out what was planned on a set.

use std::{sync::Arc, time::Duration};

use kube::{
    Api, ResourceExt as _,
    api::{ListParams, PartialObjectMeta},
};
use ocm_api::{finalizers, labels, work::v1::ManifestWork};
use ocm_runtime::{ObjectKey, Requeue, ResultExt as _, error::found, write};

use super::{Plan, ReplicaSetController, status::Outcome};
use crate::{
    error::{Error, Result},
    work::{
        decision::{Decision, Inputs},
        facts::ReplicaSet,
        kinds::ReplicaWork,
    },
};

/// What carrying out a plan led to.
#[derive(Debug)]
pub(crate) enum Applied {
    /// There is nothing to report.
    Done(Requeue),
    Reported {
        outcome: Outcome,
        recheck_after: Option<Duration>,
        /// Whether something else is desired of works than before.
        is_changed: bool,
    },
}

/// Decide again: more is known now.
const AGAIN: Applied = Applied::Done(Requeue::After(Duration::ZERO));

impl ReplicaSetController {
    pub(super) async fn carry_out(&self, inputs: &Inputs, plan: Plan) -> Result<Applied> {
        let set = &inputs.set;
        match plan {
            Plan::Nothing => {
                self.forget(&set.key);
                Ok(Applied::Done(Requeue::OnChange))
            }
            Plan::AddFinalizer => self.add_finalizer(set).await,
            Plan::Unnameable => {
                Ok(Applied::Reported { outcome: Outcome::Unnameable, recheck_after: None, is_changed: false })
            }
            Plan::Decide(decision) => self.decide(set, *decision).await,
            Plan::Release => self.release(set).await,
        }
    }

    async fn add_finalizer(&self, set: &ReplicaSet) -> Result<Applied> {
        if let Some(object) = self.sets.get(&set.key) {
            let api = self.api(&set.key.namespace);
            let written = write::add_finalizer(&api, object.as_ref(), finalizers::MANIFEST_WORK_REPLICA_SET).await?;
            written.into_iter().for_each(|written| self.sets.record_write(written));
        }
        Ok(Applied::Done(Requeue::OnChange))
    }

    async fn decide(&self, set: &ReplicaSet, decision: Decision) -> Result<Applied> {
        if decision.has_pending() && !self.verified.contains(set) {
            for work in self.listed(set).await? {
                self.take_in(&work).await?;
            }
            self.verified.insert(set);
            return Ok(AGAIN);
        }
        let recheck_after = decision.recheck_after.and_then(|after| Duration::try_from(after).ok());
        let progress = Box::new(decision.progress.clone());
        let outcome = if set.is_deleting { Outcome::Deleting(progress) } else { Outcome::Decided(progress) };
        let is_changed = self.store.publish(&set.key, decision);
        Ok(Applied::Reported { outcome, recheck_after, is_changed })
    }

    /// Works of the set that the API server has, in all namespaces.
    async fn listed(&self, set: &ReplicaSet) -> Result<Vec<PartialObjectMeta<ManifestWork>>> {
        let api: Api<ManifestWork> = Api::all(self.hub.client.clone());
        let label = format!("{}={}", labels::MANIFEST_WORK_REPLICA_SET, set.label());
        let listed = api.list_metadata(&ListParams::default().labels(&label)).await;
        Ok(listed.while_trying_to("list", || format!("ManifestWorks of {}", set.key))?.items)
    }

    /// Takes a work into the cache, unless the cache has it in that generation.
    async fn take_in(&self, listed: &PartialObjectMeta<ManifestWork>) -> Result<()> {
        let key = ObjectKey::of(listed);
        let is_known = |known: Arc<ReplicaWork>| {
            known.uid() == listed.uid() && known.metadata.generation >= listed.metadata.generation
        };
        if self.works.get(&key).is_some_and(is_known) {
            return Ok(());
        }
        let api: Api<ManifestWork> = Api::namespaced(self.hub.client.clone(), &key.namespace);
        let Some(work) = write::get(&api, &key.name).await? else { return Ok(()) };
        self.works.record_write(ReplicaWork::from(work));
        // One that the watch should have brought: the next list brings it.
        self.works.get(&key).map(|_| ()).ok_or_else(|| Error::NotSynced { noun: format!("ManifestWork {key}") })
    }

    /// Removes the finalizer, if the API server has no works of the set either that are to be waited for.
    async fn release(&self, set: &Arc<ReplicaSet>) -> Result<Applied> {
        let listed = if set.has_label() { self.listed(set).await? } else { Vec::new() };
        let awaited: Vec<_> = listed.iter().filter(|work| set.is_foreground || !write::is_deleting(*work)).collect();
        for work in &awaited {
            self.take_in(work).await?;
        }
        if !awaited.is_empty() {
            return Ok(Applied::Done(Requeue::BackOff));
        }
        if let Some(object) = self.sets.get(&set.key) {
            let (api, finalizer) = (self.api(&set.key.namespace), finalizers::MANIFEST_WORK_REPLICA_SET);
            found(write::remove_finalizer(&api, object.as_ref(), finalizer).await)?;
        }
        self.forget(&set.key);
        Ok(Applied::Done(Requeue::OnChange))
    }
}
