//! Deploys an add-on to a cluster: identities and permissions of its agent, works, and status.
//!
//! One controller for all of it, so that a new add-on on a cluster takes one write of its status. OCM has two, which write
//! the same in the end.
//!
//! | verb | |
//! | --- | --- |
//! | `observe` | the add-on, its cluster, its works, and what the author's code returns for it |
//! | `plan` | finalizers, identities ([`registrations`]), works ([`works`](super::works)) |
//! | `apply` | permissions on the hub, then works |
//! | `report` | conditions `RegistrationApplied` and `ManifestApplied`, registrations, namespace, health check |

mod apply;
#[cfg(fuzzing)]
pub mod fuzzing;
mod grants;
mod observe;
mod permissions;
mod plan;
mod predicates;
mod registrations;
mod report;
#[cfg(test)]
mod testing;

use std::sync::Arc;

use jiff::Timestamp;
use kube::Client;
use ocm_api::{cluster::v1::ManagedCluster, labels, work::v1::ManifestWork};
use ocm_runtime::{Cache, Change, Controller, ControllerBuilder, Error, ObjectKey, Requeue, error::found, write};

use self::{
    apply::Applied,
    grants::GrantCache,
    observe::{Observed, is_hosted},
    plan::Plan,
};
use super::{served_addon::ServedAddon, trigger::Trigger};

/// See the module.
pub(crate) struct AddonController {
    client: Client,
    served: Arc<ServedAddon>,
    clusters: Cache<ManagedCluster>,
    trigger: Trigger,
    grants: GrantCache,
}

impl AddonController {
    pub(crate) fn new(
        client: Client,
        served: Arc<ServedAddon>,
        clusters: Cache<ManagedCluster>,
        trigger: Trigger,
    ) -> Self {
        Self { client, served, clusters, trigger, grants: GrantCache::default() }
    }

    /// A new cluster, or one that changed in a way that matters to the add-on.
    fn watch_clusters(&self, builder: &mut ControllerBuilder<'_, ObjectKey>) {
        let served = self.served.clone();
        builder.watches(&self.clusters, move |change| {
            let cluster = change.object().metadata.name.clone().unwrap_or_default();
            concerns(&served, change).then(|| ObjectKey::new(cluster, &*served.options.name))
        });
    }
}

impl Controller for AddonController {
    const NAME: &'static str = "addon-deploy";
    type Key = ObjectKey;
    type Observed = Observed;
    type Plan = Plan;
    type Applied = Applied;
    type Error = Error;

    fn setup(&self, builder: &mut ControllerBuilder<'_, ObjectKey>) {
        let served = &self.served;
        self.trigger.connect(&served.options.name, builder.queue(), served.addons.clone());
        self.watch_clusters(builder);
        builder.watches(&served.addons, |change| {
            predicates::addon_changed(change).then(|| ObjectKey::of(&**change.object()))
        });
        builder.watches(&served.works, |change| {
            predicates::work_changed(change).then(|| addon_of(change.object())).flatten()
        });
    }

    async fn observe(&self, key: &ObjectKey) -> Result<Option<Observed>, Error> {
        Ok(self.snapshot(key).await)
    }

    fn plan(observed: &Observed, _: Timestamp) -> Plan {
        plan::plan(observed)
    }

    async fn apply(&self, observed: &Observed, plan: Plan) -> Result<Applied, Error> {
        self.write(observed, plan).await
    }

    async fn report(&self, observed: &Observed, applied: Applied, now: Timestamp) -> Result<Requeue, Error> {
        let next = applied.next();
        let new = report::with_status(observed, applied, now);
        let api = kube::Api::namespaced(self.client.clone(), &observed.key.namespace);
        // Fine when the add-on is gone by now.
        if let Some(Some(written)) = found(write::patch_status(&api, &*observed.addon, &new).await)? {
            observed.served.addons.record_write(written);
        }
        Ok(next)
    }
}

fn concerns(served: &ServedAddon, change: Change<'_, ManagedCluster>) -> bool {
    match change {
        Change::Added(_) => true,
        Change::Updated { old, new } => is_acceptance_changed(old, new) || served.options.is_triggered_by(old, new),
        Change::Deleted(_) => false,
    }
}

/// Whether the hub has begun to accept the cluster, or stopped.
pub(super) fn is_acceptance_changed(old: &ManagedCluster, new: &ManagedCluster) -> bool {
    old.spec.hub_accepts_client != new.spec.hub_accepts_client
}

/// The add-on that a work belongs to.
fn addon_of(work: &ManifestWork) -> Option<ObjectKey> {
    let addon = work.metadata.labels.as_ref()?.get(labels::ADDON_NAME).filter(|_| !is_hosted(work))?;
    Some(ObjectKey::new(work.metadata.namespace.clone()?, addon))
}
