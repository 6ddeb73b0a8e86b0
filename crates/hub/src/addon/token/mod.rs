//! What the hub keeps for an add-on whose agent authenticates with a token: a service account, and a role with which the
//! cluster's agent creates tokens of that account.
//!
//! ```text
//!  status.kubeClientDriver: token ──> ServiceAccount <addon>-agent, Role and RoleBinding <addon>-token-role
//!                                       └──> condition TokenInfrastructureReady, with the uid of the service account
//! ```
//!
//! [`observe`] finds out whether the add-on uses tokens and what exists → [`plan`] → [`apply`] → [`report`]. The objects are
//! deleted when the add-on is deleted or no longer uses tokens, and when the hub no longer accepts the cluster.
//!
//! Only objects with both labels of the add-on are the hub's own. Under the names of others nothing is changed or deleted, and
//! the cluster's agent gets no right to create tokens: the service account of somebody else may have rights that no add-on
//! should get.

mod apply;
pub(crate) mod objects;
mod observe;
mod plan;
mod report;
mod step;
#[cfg(test)]
mod tests;

use jiff::Timestamp;
use k8s_openapi::api::{
    core::v1::ServiceAccount,
    rbac::v1::{Role, RoleBinding},
};
use kube::{Api, ResourceExt as _};
use ocm_api::{addon::v1alpha1::ManagedClusterAddOn, cluster::v1::ManagedCluster};
use ocm_runtime::{Cache, Change, Controller, ControllerBuilder, ObjectKey, Requeue, write};

use self::{
    apply::Applied,
    observe::{Observed, needs_look, relevant},
    plan::Plan,
};
use crate::{
    caches,
    context::HubContext,
    error::{Error, Result},
};

/// See the module.
#[derive(Debug)]
pub(crate) struct TokenController {
    hub: HubContext,
    addons: Cache<ManagedClusterAddOn>,
    clusters: Cache<ManagedCluster>,
    accounts: Cache<ServiceAccount>,
    roles: Cache<Role>,
    bindings: Cache<RoleBinding>,
}

impl TokenController {
    pub(crate) fn new(hub: &HubContext) -> Self {
        Self {
            addons: caches::addons(&hub.informers),
            clusters: caches::clusters(&hub.informers),
            accounts: objects::labelled(&hub.informers),
            roles: objects::labelled(&hub.informers),
            bindings: objects::labelled(&hub.informers),
            hub: hub.clone(),
        }
    }

    fn addons_of(&self, cluster: &str) -> Api<ManagedClusterAddOn> {
        Api::namespaced(self.hub.client.clone(), cluster)
    }
}

impl Controller for TokenController {
    const NAME: &'static str = "addon-token-infrastructure";
    type Key = ObjectKey;
    type Observed = Observed;
    type Plan = Plan;
    type Applied = Applied;
    type Error = Error;

    fn setup(&self, builder: &mut ControllerBuilder<'_, ObjectKey>) {
        builder.watches(&self.addons, |change| concerns(change).then(|| ObjectKey::of(change.object().as_ref())));
        let addons = self.addons.clone();
        builder.watches(&self.clusters, move |change| match may_affect(change) {
            true => using_tokens(&addons, &change.object().name_any()),
            false => Vec::new(),
        });
        builder.watches(&self.accounts, objects::addons_of);
        builder.watches(&self.roles, objects::addons_of);
        builder.watches(&self.bindings, objects::addons_of);
    }

    async fn observe(&self, key: &ObjectKey) -> Result<Option<Observed>> {
        self.gather(key).await
    }

    fn plan(observed: &Observed, _: Timestamp) -> Plan {
        plan::plan(observed)
    }

    async fn apply(&self, observed: &Observed, plan: Plan) -> Result<Applied> {
        self.carry_out(observed, plan).await
    }

    async fn report(&self, observed: &Observed, applied: Applied, now: Timestamp) -> Result<Requeue> {
        if let Some(addon) = &observed.addon {
            let new = report::reported(addon, &applied, now);
            let written = write::patch_status(&self.addons_of(&observed.key.namespace), addon.as_ref(), &new).await?;
            written.into_iter().for_each(|addon| self.addons.record_write(addon));
        }
        applied.failure.map_or(Ok(Requeue::OnChange), Err)
    }
}

/// Whether a change of an add-on can change what the hub keeps or reports for it. Most add-ons use no tokens.
fn concerns(change: Change<'_, ManagedClusterAddOn>) -> bool {
    match change {
        Change::Added(addon) => needs_look(addon),
        Change::Updated { old, new } => relevant(old) != relevant(new),
        Change::Deleted(_) => true,
    }
}

fn may_affect(change: Change<'_, ManagedCluster>) -> bool {
    let relevant = |cluster: &ManagedCluster| (cluster.spec.hub_accepts_client, write::is_deleting(cluster));
    match change {
        Change::Updated { old, new } => relevant(old) != relevant(new),
        Change::Added(_) | Change::Deleted(_) => true,
    }
}

fn using_tokens(addons: &Cache<ManagedClusterAddOn>, cluster: &str) -> Vec<ObjectKey> {
    let addons = addons.in_namespace(cluster);
    addons.iter().filter(|addon| needs_look(addon)).map(|addon| ObjectKey::of(addon.as_ref())).collect()
}
