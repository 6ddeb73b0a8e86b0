//! Deletes what belongs to a cluster together with it, in order: add-ons, then works, or as configured.
//!
//! Every cluster gets a finalizer. Once it is deleted → [`observe`] lists the first kind of which something is left in
//! the cluster's namespace → [`plan`] picks those of the lowest priority → [`apply`] deletes them → condition `Deleting`
//! says what is left ([`report`]). When nothing is, the finalizer goes.

mod apply;
mod observe;
mod plan;
mod report;
mod resource;
#[cfg(test)]
mod tests;

use jiff::Timestamp;
use kube::ResourceExt as _;
use ocm_api::cluster::v1::ManagedCluster;
use ocm_runtime::{Cache, Change, Controller, ControllerBuilder, Requeue};

pub use self::resource::{DEFAULT_GC_RESOURCES, GcResource, GcResourceError};
use self::{apply::Applied, observe::Observed, plan::Plan};
use crate::{
    caches,
    context::HubContext,
    error::{Error, Result},
};

/// See the module.
#[derive(Debug)]
pub(crate) struct CleanupController {
    hub: HubContext,
    clusters: Cache<ManagedCluster>,
}

impl CleanupController {
    pub(crate) fn new(hub: &HubContext) -> Self {
        Self { clusters: caches::clusters(&hub.informers), hub: hub.clone() }
    }
}

impl Controller for CleanupController {
    const NAME: &'static str = "resource-cleanup";
    type Key = String;
    type Observed = Observed;
    type Plan = Plan;
    type Applied = Applied;
    type Error = Error;

    fn setup(&self, builder: &mut ControllerBuilder<'_, String>) {
        builder.watches(&self.clusters, |change| concerns(change).then(|| change.object().name_any()));
    }

    async fn observe(&self, key: &String) -> Result<Option<Observed>> {
        self.gather(key).await
    }

    fn plan(observed: &Observed, _: Timestamp) -> Plan {
        plan::plan(observed)
    }

    async fn apply(&self, observed: &Observed, plan: Plan) -> Result<Applied> {
        self.write(observed, plan).await
    }

    async fn report(&self, _: &Observed, applied: Applied, now: Timestamp) -> Result<Requeue> {
        if let Some((old, new)) = report::status(&applied, now) {
            self.hub.writer().patch_status(&old, &new).await?;
        }
        report::next(applied)
    }
}

fn concerns(change: Change<'_, ManagedCluster>) -> bool {
    let relevant =
        |cluster: &ManagedCluster| (cluster.metadata.finalizers.clone(), cluster.metadata.deletion_timestamp.clone());
    match change {
        Change::Updated { old, new } => relevant(old) != relevant(new),
        Change::Added(_) | Change::Deleted(_) => true,
    }
}
