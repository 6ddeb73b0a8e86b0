//! Maintains the two ClusterRoles that the bindings of all clusters refer to: created with the first cluster, deleted with
//! the last.
//!
//! Clusters come and go, or somebody edits a role → does a cluster exist? → both roles as they should be, or neither.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::{Api, ResourceExt as _, api::ListParams};
use ocm_api::{
    cluster::v1::ManagedCluster,
    rbac::{REGISTRATION_CLUSTER_ROLE, WORK_CLUSTER_ROLE},
};
use ocm_runtime::{Cache, Change, Controller, ControllerBuilder, ResultExt as _, error::all};

use super::rbac::{Step, objects, removal, upsert};
use crate::{
    caches,
    context::HubContext,
    error::{Error, Result},
};

/// The only key of the queue: both roles are reconciled together.
const KEY: &str = "shared-roles";

/// See the module.
#[derive(Debug)]
pub(crate) struct SharedRolesController {
    hub: HubContext,
    clusters: Cache<ManagedCluster>,
    roles: Cache<ClusterRole>,
}

/// What the roles depend on.
#[derive(Debug)]
pub(crate) struct Observed {
    clusters_exist: bool,
    registration: Option<Arc<ClusterRole>>,
    work: Option<Arc<ClusterRole>>,
    labels: BTreeMap<String, String>,
}

impl SharedRolesController {
    pub(crate) fn new(hub: &HubContext) -> Self {
        let roles = caches::cluster_roles(&hub.informers);
        Self { clusters: caches::clusters(&hub.informers), roles, hub: hub.clone() }
    }

    /// Asks the API server if the cache has no clusters: a cluster that cannot be read is not in the cache.
    async fn clusters_exist(&self) -> Result<bool> {
        if !self.clusters.is_empty() {
            return Ok(true);
        }
        let api: Api<ManagedCluster> = Api::all(self.hub.client.clone());
        let clusters = api.list_metadata(&ListParams::default().limit(1)).await;
        Ok(!clusters.while_trying_to("list", || "ManagedClusters".into())?.items.is_empty())
    }
}

impl Controller for SharedRolesController {
    const NAME: &'static str = "shared-cluster-roles";
    type Key = &'static str;
    type Observed = Observed;
    type Plan = Vec<Step<ClusterRole>>;
    type Applied = ();
    type Error = Error;

    fn setup(&self, builder: &mut ControllerBuilder<'_, &'static str>) {
        builder.watches(&self.clusters, |change| (!matches!(change, Change::Updated { .. })).then_some(KEY));
        builder.watches(&self.roles, |change| is_shared(change.object()).then_some(KEY));
    }

    async fn observe(&self, _: &&'static str) -> Result<Option<Observed>> {
        Ok(Some(Observed {
            clusters_exist: self.clusters_exist().await?,
            registration: self.roles.named(REGISTRATION_CLUSTER_ROLE),
            work: self.roles.named(WORK_CLUSTER_ROLE),
            labels: self.hub.config.labels.clone(),
        }))
    }

    fn plan(observed: &Observed, _: Timestamp) -> Vec<Step<ClusterRole>> {
        let [registration, work] = objects::shared_roles(&observed.labels);
        let step = |existing: &Option<Arc<ClusterRole>>, desired| match observed.clusters_exist {
            true => upsert(existing.as_ref(), desired),
            false => removal(existing.as_ref(), false),
        };
        [step(&observed.registration, registration), step(&observed.work, work)].into_iter().flatten().collect()
    }

    async fn apply(&self, _: &Observed, plan: Vec<Step<ClusterRole>>) -> Result<()> {
        let mut results = Vec::new();
        for step in plan {
            results.push(step.run(&self.hub.client, &self.roles).await);
        }
        all(results)
    }
}

fn is_shared(role: &ClusterRole) -> bool {
    [REGISTRATION_CLUSTER_ROLE, WORK_CLUSTER_ROLE].contains(&role.name_any().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::now;

    fn observed(clusters_exist: bool, roles_exist: bool) -> Observed {
        let roles = objects::shared_roles(&BTreeMap::new()).map(|role| roles_exist.then(|| Arc::new(role)));
        let [registration, work] = roles;
        Observed { clusters_exist, registration, work, labels: BTreeMap::new() }
    }

    fn plan(observed: &Observed) -> Vec<Step<ClusterRole>> {
        SharedRolesController::plan(observed, now())
    }

    #[test]
    fn the_first_cluster_brings_both_roles_and_the_last_takes_them_away() {
        assert!(matches!(plan(&observed(true, false))[..], [Step::Create(_), Step::Create(_)]));
        assert!(matches!(plan(&observed(false, true))[..], [Step::Remove { .. }, Step::Remove { .. }]));
    }

    #[test]
    fn in_between_nothing_is_written() {
        assert_eq!(plan(&observed(true, true)), []);
        assert_eq!(plan(&observed(false, false)), []);
    }

    #[test]
    fn an_edited_role_is_restored() {
        let mut observed = observed(true, true);
        observed.work = observed.work.map(|role| Arc::new(ClusterRole { rules: None, ..ClusterRole::clone(&role) }));
        assert!(matches!(&plan(&observed)[..], [Step::Update { new, .. }] if new.rules.is_some()));
    }
}
