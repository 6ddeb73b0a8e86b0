//! One add-on on one cluster: carries out what [`decision`](super::decision) desires there, makes the ClusterManagementAddOn
//! the owner, and reports whether the add-on is configured and how far it has come.
//!
//! An add-on is created only on a cluster that exists and is not being deleted, so that it does not come back while the
//! cluster is cleaned up.

mod observe;
mod plan;
mod progressing;
mod report;
#[cfg(test)]
mod tests;
mod works;

use std::sync::Arc;

use jiff::Timestamp;
use kube::{Api, ResourceExt as _};
use ocm_api::{addon::v1alpha1::ManagedClusterAddOn, cluster::v1::ManagedCluster, work::v1::ManifestWork};
use ocm_runtime::{
    Cache, Change, Class, Classified as _, Controller, ControllerBuilder, ObjectKey, Requeue, error::chain,
    informer::View, write,
};

use self::{observe::Observed, plan::Plan, works::WorkIndex};
use super::{
    facts, sources,
    store::{AddOnStore, StoreEvent},
};
use crate::{
    caches,
    context::HubContext,
    error::{Error, Result},
};

/// See the module.
#[derive(Debug)]
pub(crate) struct InstallationController {
    hub: HubContext,
    store: AddOnStore,
    addons: Cache<ManagedClusterAddOn>,
    clusters: Cache<ManagedCluster>,
    cluster_facts: View<facts::Cluster>,
    works: Cache<ManifestWork>,
    work_index: WorkIndex,
}

/// The result of a plan.
#[derive(Debug)]
pub(crate) enum Applied {
    /// The add-on exists, in this state.
    Present(Arc<ManagedClusterAddOn>),
    /// There is no status to write.
    NoStatus(Requeue),
}

impl InstallationController {
    pub(crate) fn new(hub: &HubContext) -> Self {
        let clusters = caches::clusters(&hub.informers);
        let works = sources::works(&hub.informers);
        Self {
            store: hub.addon_store(),
            addons: sources::addons(&hub.informers),
            cluster_facts: clusters.view(|cluster| Some(facts::Cluster::of(cluster))),
            clusters,
            work_index: WorkIndex::of(&works),
            works,
            hub: hub.clone(),
        }
    }

    fn api(&self, cluster: &str) -> Api<ManagedClusterAddOn> {
        Api::namespaced(self.hub.client.clone(), cluster)
    }

    async fn create(&self, observed: &Observed, addon: &ManagedClusterAddOn) -> Result<Applied> {
        match write::create(&self.api(&observed.key.namespace), addon).await {
            Ok(created) => {
                self.addons.record_write(created.clone());
                self.catch_up(observed);
                Ok(Applied::Present(Arc::new(created)))
            }
            Err(error) => self.not_created(&observed.key, error),
        }
    }

    /// Annotations of the cluster may have changed while the add-on was being created with the former ones. They are copied
    /// once the add-on's status is written.
    fn catch_up(&self, observed: &Observed) {
        let of =
            |cluster: Option<&facts::Cluster>| cluster.map(|cluster| cluster.annotations.clone()).unwrap_or_default();
        let name = &observed.key.namespace;
        let now = self.cluster_facts.get(&ObjectKey::new("", name.clone()));
        let used = of(observed.cluster.as_ref());
        if used != of(now.as_ref()) {
            self.hub.outstanding.begin(name, used);
        }
    }

    /// The cluster's namespace may not exist yet, or the API server may refuse the add-on.
    fn not_created(&self, key: &ObjectKey, error: ocm_runtime::Error) -> Result<Applied> {
        if let Some(failure) = failure(&error) {
            self.store.record_failure(key, failure);
        }
        if error.is_not_found() { Ok(Applied::NoStatus(Requeue::BackOff)) } else { Err(error.into()) }
    }

    async fn patch(&self, old: &Arc<ManagedClusterAddOn>, new: &ManagedClusterAddOn) -> Result<Applied> {
        let written = write::patch(&self.api(&old.namespace().unwrap_or_default()), old, new).await?;
        let Some(written) = written else { return Ok(Applied::Present(old.clone())) };
        self.addons.record_write(written.clone());
        Ok(Applied::Present(Arc::new(written)))
    }
}

impl Controller for InstallationController {
    const NAME: &'static str = "addon-installation";
    type Key = ObjectKey;
    type Observed = Observed;
    type Plan = Plan;
    type Applied = Applied;
    type Error = Error;

    fn setup(&self, builder: &mut ControllerBuilder<'_, ObjectKey>) {
        let queue = builder.queue();
        self.store.listen(move |event| {
            if let StoreEvent::Desired(key) = event {
                queue.add(key.clone());
            }
        });
        builder.watches(&self.addons, |change| [ObjectKey::of(change.object().as_ref())]);
        let store = self.store.clone();
        builder.watches(&self.clusters, move |change| match affected(change) {
            Some(cluster) => store.on_cluster(&cluster),
            None => Vec::new(),
        });
        builder.watches(&self.works, touched);
    }

    async fn observe(&self, key: &ObjectKey) -> Result<Option<Observed>> {
        Ok(self.gather(key))
    }

    fn plan(observed: &Observed, _: Timestamp) -> Plan {
        plan::plan(observed)
    }

    async fn apply(&self, observed: &Observed, plan: Plan) -> Result<Applied> {
        match plan {
            Plan::Nothing => Ok(Applied::NoStatus(Requeue::OnChange)),
            Plan::Create(addon) => self.create(observed, &addon).await,
            Plan::Delete(addon) => {
                write::delete(&self.api(&observed.key.namespace), addon.as_ref()).await?;
                Ok(Applied::NoStatus(Requeue::OnChange))
            }
            Plan::Keep(old, new) => self.patch(&old, &new).await,
        }
    }

    async fn report(&self, observed: &Observed, applied: Applied, now: Timestamp) -> Result<Requeue> {
        let addon = match applied {
            Applied::Present(addon) => addon,
            Applied::NoStatus(next) => return Ok(next),
        };
        let new = report::reported(&addon, observed, now);
        if let Some(written) = write::patch_status(&self.api(&observed.key.namespace), addon.as_ref(), &new).await? {
            self.addons.record_write(written);
        }
        Ok(Requeue::OnChange)
    }
}

/// Why an add-on could not be created; `None` for a conflict, which is retried at once.
fn failure(error: &ocm_runtime::Error) -> Option<String> {
    match error.status() {
        // The failure is removed once the informer has the add-on.
        Some(status) if status.reason == "AlreadyExists" => Some(
            "the add-on exists already, but this hub cannot read it: the hub's log says what is wrong with it; correct or \
             delete it"
                .into(),
        ),
        _ if error.class() == Class::Conflict => None,
        _ => Some(chain(error)),
    }
}

/// The cluster, if its add-ons may have waited for this change.
fn affected(change: Change<'_, ManagedCluster>) -> Option<String> {
    let is_relevant = match change {
        Change::Added(_) => true,
        Change::Updated { old, new } => facts::Cluster::of(old) != facts::Cluster::of(new),
        Change::Deleted(_) => false,
    };
    is_relevant.then(|| change.object().name_any())
}

/// The add-on of a work, if its relevant fields have changed.
fn touched(change: Change<'_, ManifestWork>) -> Option<ObjectKey> {
    let work = facts::Work::of(change.object())?;
    let is_relevant = match change {
        Change::Updated { old, .. } => facts::Work::of(old).as_ref() != Some(&work),
        Change::Added(_) | Change::Deleted(_) => true,
    };
    is_relevant.then_some(work.addon)
}
