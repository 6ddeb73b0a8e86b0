//! Writing one work.

use std::sync::Arc;

use kube::{ResourceExt as _, api::ListParams};
use ocm_api::{labels, work::v1::ManifestWork};
use ocm_runtime::{ObjectKey, Requeue, ResultExt as _, error::chain, write};

use super::{Observed, Plan, Replica, ReplicaController, uncertain::is_refusal};
use crate::{
    error::{Error, Result},
    work::{
        facts::{Template, Work, label_of},
        kinds::ReplicaWork,
    },
};

impl ReplicaController {
    pub(super) async fn carry_out(&self, observed: &Observed, plan: Plan) -> Result<()> {
        match plan {
            Plan::Nothing => Ok(()),
            Plan::Create => self.create(observed).await,
            Plan::Update(work) => self.update(observed, &work).await,
            Plan::Delete(works) => self.delete(&works).await,
            Plan::DeleteSurplus { kept, surplus } => {
                self.confirm(observed, &kept).await?;
                self.delete(&surplus).await?;
                // What else there is to write follows when they are gone.
                Ok(())
            }
        }
    }

    /// Records the outcome for the condition of the set. A conflict is retried at once.
    pub(super) fn record(&self, replica: &Replica, outcome: Result<()>) -> Result<Requeue> {
        let failure = match &outcome {
            Ok(()) => None,
            Err(error) if error.is_conflict() => return outcome.map(|()| Requeue::OnChange),
            Err(error) => Some(chain(error)),
        };
        self.store.record_outcome(replica, failure);
        match outcome {
            // Registration creates the namespace.
            Err(Error::Api(error)) if error.is_not_found() => Ok(Requeue::BackOff),
            outcome => outcome.map(|()| Requeue::OnChange),
        }
    }

    async fn create(&self, observed: &Observed) -> Result<()> {
        let (replica, template) = (&observed.replica, &observed.template);
        if let Some(work) = &observed.unreadable {
            return Err(Error::UnreadableWork { set: replica.set.to_string(), work: work.to_string() });
        }
        self.uncertain.begin(replica);
        match write::create(&self.api(&replica.cluster), &new_work(replica, template)).await {
            Ok(created) => {
                self.take(created, observed)?;
                self.uncertain.end(replica);
                Ok(())
            }
            Err(error) => {
                if is_refusal(&error) {
                    self.uncertain.end(replica);
                }
                Err(explained(error, observed))
            }
        }
    }

    /// Looks whether the work exists after all.
    pub(super) async fn look_for(&self, replica: &Replica) -> Result<()> {
        let (set, placement) = (label_of(&replica.set), &replica.placement);
        let selector = format!("{}={set},{}={placement}", labels::MANIFEST_WORK_REPLICA_SET, labels::PLACEMENT_NAME);
        let works = self.api(&replica.cluster).list(&ListParams::default().labels(&selector)).await;
        let noun = || format!("ManifestWorks of {} in namespace {}", replica.set, replica.cluster);
        for found in works.while_trying_to("list", noun)? {
            self.take_in(found)?;
        }
        self.uncertain.end(replica);
        Ok(())
    }

    /// The cache only keeps a digest, so the work is read first.
    async fn update(&self, observed: &Observed, work: &Work) -> Result<()> {
        let (api, old) = (self.api(&observed.replica.cluster), self.confirm(observed, work).await?);
        let mut new = old.clone();
        new.metadata.labels = Some(observed.template.labels_for(&observed.replica.placement));
        new.spec = observed.template.spec.clone();
        let written = write::patch(&api, &old, &new).await.map_err(|error| explained(error, observed))?;
        self.take(written.unwrap_or(old), observed)
    }

    /// Reads a work that exists and belongs to the set, as the cache says.
    async fn confirm(&self, observed: &Observed, work: &Work) -> Result<ManifestWork> {
        let stale = || stale(&work.key);
        let found = write::get(&self.api(&work.key.namespace), &work.key.name).await?.ok_or_else(stale)?;
        let label = |key: &str| found.labels().get(key).map(String::as_str);
        let is_it = found.uid().as_deref() == Some(&work.uid)
            && !write::is_deleting(&found)
            && label(labels::MANIFEST_WORK_REPLICA_SET) == Some(observed.template.label())
            && label(labels::PLACEMENT_NAME) == Some(&observed.replica.placement);
        is_it.then_some(found).ok_or_else(stale)
    }

    async fn delete(&self, works: &[Arc<Work>]) -> Result<()> {
        let mut results = Vec::new();
        for work in works {
            results.push(write::delete(&self.api(&work.key.namespace), &named(work)).await);
        }
        Ok(ocm_runtime::error::all(results)?)
    }

    /// Takes in what a write has returned.
    fn take(&self, work: ManifestWork, observed: &Observed) -> Result<()> {
        let key = ObjectKey::of(&work);
        self.take_in(work)?;
        self.store.record_written_from(&observed.replica.set, &key, &observed.template.digest);
        Ok(())
    }

    /// Takes a work into the cache. The cache ignores one whose deletion the watch has brought, and one that the watch should have
    /// brought and has not: nothing may be decided before it is known which.
    fn take_in(&self, work: ManifestWork) -> Result<()> {
        let key = ObjectKey::of(&work);
        self.works.record_write(ReplicaWork::from(work));
        self.works.get(&key).map(|_| ()).ok_or_else(|| stale(&key))
    }
}

/// A refused write, with the next step if it was refused because of the executor. The policy answers 403, and webhooks 400.
fn explained(error: ocm_runtime::Error, observed: &Observed) -> Error {
    let is_refused = error.status().is_some_and(|status| {
        matches!(status.code, 400 | 403) && status.message.contains("executor") && status.message.contains("user ")
    });
    match is_refused && observed.template.spec.executor.is_some() {
        true => Error::MayNotExecute { set: observed.replica.set.to_string(), source: error },
        false => error.into(),
    }
}

fn stale(work: &ObjectKey) -> Error {
    Error::NotSynced { noun: format!("ManifestWork {work}") }
}

fn new_work(replica: &Replica, template: &Template) -> ManifestWork {
    let mut work = ManifestWork { spec: template.spec.clone(), ..ManifestWork::default() };
    work.metadata.namespace = Some(replica.cluster.to_string());
    work.metadata.generate_name = Some(template.name.clone());
    work.metadata.labels = Some(template.labels_for(&replica.placement));
    work
}

/// What identifies a work to be deleted.
fn named(work: &Work) -> ManifestWork {
    let mut named = ManifestWork::default();
    named.metadata.name = Some(work.key.name.clone());
    named.metadata.namespace = Some(work.key.namespace.clone());
    named.metadata.uid = Some(work.uid.clone());
    named
}
