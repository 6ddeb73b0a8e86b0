//! Namespace, RBAC objects and finalizer of a cluster, and its condition `HubAcceptedManagedCluster`.
//!
//! `spec.hubAcceptsClient` of the cluster → [`observe`] (what the hub keeps for it now) → [`plan`] (what of it must
//! change) → [`apply`] → [`report`]. An accepted cluster gets a namespace and four RBAC objects; a denied one keeps a
//! role to read its own ManagedCluster; a deleted one keeps nothing but its namespace. While the namespace has works, the
//! agent keeps the right to clean them up.

mod apply;
mod observe;
mod plan;
pub(crate) mod rbac;
mod report;
pub(crate) mod shared_roles;
#[cfg(test)]
mod tests;

use jiff::Timestamp;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, RoleBinding};
use ocm_api::{cluster::v1::ManagedCluster, conditions};
use ocm_runtime::{Cache, Change, Controller, ControllerBuilder, Requeue};

use self::{apply::Applied, observe::Observed, plan::Plan};
use crate::{
    caches::{self, cluster_of},
    context::HubContext,
    error::{Error, Result},
    registration::status::condition,
};

/// See the module.
#[derive(Debug)]
pub(crate) struct ClusterController {
    hub: HubContext,
    clusters: Cache<ManagedCluster>,
    roles: Cache<ClusterRole>,
    role_bindings: Cache<ClusterRoleBinding>,
    bindings: Cache<RoleBinding>,
}

impl ClusterController {
    pub(crate) fn new(hub: &HubContext) -> Self {
        Self {
            clusters: caches::clusters(&hub.informers),
            roles: caches::cluster_roles(&hub.informers),
            role_bindings: caches::cluster_role_bindings(&hub.informers),
            bindings: caches::role_bindings(&hub.informers),
            hub: hub.clone(),
        }
    }
}

impl Controller for ClusterController {
    const NAME: &'static str = "managed-cluster";
    type Key = String;
    type Observed = Observed;
    type Plan = Plan;
    type Applied = Applied;
    type Error = Error;

    fn setup(&self, builder: &mut ControllerBuilder<'_, String>) {
        builder.watches(&self.clusters, |change| concerns(change).then(|| name(change.object())));
        builder.watches(&self.roles, |change| cluster_of(change.object().as_ref()));
        builder.watches(&self.role_bindings, |change| cluster_of(change.object().as_ref()));
        builder.watches(&self.bindings, |change| cluster_of(change.object().as_ref()));
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

fn name(cluster: &ManagedCluster) -> String {
    cluster.metadata.name.clone().unwrap_or_default()
}

/// Whether a change of a cluster can change what the hub writes for it. Most changes are reports of its health.
fn concerns(change: Change<'_, ManagedCluster>) -> bool {
    let relevant = |cluster: &ManagedCluster| {
        let condition = condition(cluster, conditions::cluster::HUB_ACCEPTED).cloned();
        let meta = &cluster.metadata;
        (
            meta.uid.clone(),
            meta.deletion_timestamp.clone(),
            meta.finalizers.clone(),
            cluster.spec.hub_accepts_client,
            condition,
        )
    };
    match change {
        Change::Updated { old, new } => relevant(old) != relevant(new),
        Change::Added(_) | Change::Deleted(_) => true,
    }
}
