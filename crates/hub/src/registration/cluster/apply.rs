//! Writes what was planned. Errors of an accepted cluster are kept for its condition.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, ResourceExt as _};
use ocm_api::cluster::v1::ManagedCluster;
use ocm_runtime::{
    error::{all, found},
    write,
};

use super::{
    ClusterController,
    observe::{Observed, Phase},
    plan::{NamespaceStep, Plan, WaitReason},
    rbac,
};
use crate::{
    caches::check_adoptable,
    error::{Error, Result},
};

/// What writing led to.
#[derive(Debug)]
pub(crate) struct Applied {
    pub(super) phase: Phase,
    pub(super) refusal: Option<&'static str>,
    /// The cluster as last written.
    pub(super) cluster: Option<Arc<ManagedCluster>>,
    pub(super) waits_for: WaitReason,
    /// Why an accepted cluster does not have all its rights.
    pub(super) errors: Vec<Error>,
}

impl ClusterController {
    pub(super) async fn write(&self, observed: &Observed, mut plan: Plan) -> Result<Applied> {
        let mut applied = Applied::nothing(observed, plan.waits_for);
        applied.note([self.write_namespace(plan.namespace.take()).await])?;
        if !applied.errors.is_empty() {
            return Ok(applied);
        }
        if let (Some(old), Some(new)) = (&observed.cluster, plan.with_finalizer.take()) {
            let claimed = self.hub.writer().patch(old, &new).await?;
            applied.cluster = claimed.map(Arc::new).or(applied.cluster);
        }
        let release = plan.without_finalizer.take();
        applied.note(self.write_rights(plan).await)?;
        applied.note(self.drive(observed, applied.waits_for).await.into_iter().map(Err))?;
        if let (Some(old), Some(new)) = (&observed.cluster, release) {
            self.release(old, &new).await?;
        }
        Ok(applied)
    }

    async fn write_namespace(&self, step: Option<NamespaceStep>) -> Result<()> {
        let api: Api<Namespace> = Api::all(self.hub.client.clone());
        match step {
            Some(NamespaceStep::Create(new)) => write::create(&api, &new).await.map(|_| ())?,
            Some(NamespaceStep::Label { old, new }) => {
                check_adoptable(old.as_ref(), &new.name_any())?;
                write::patch(&api, &old, &new).await.map(|_| ())?;
            }
            None => {}
        }
        Ok(())
    }

    /// The role before its binding, since nobody may bind what does not exist.
    async fn write_rights(&self, plan: Plan) -> [Result<()>; 4] {
        let client = &self.hub.client;
        [
            rbac::run(plan.role, client, &self.roles).await,
            rbac::run(plan.role_binding, client, &self.role_bindings).await,
            rbac::run(plan.registration, client, &self.bindings).await,
            rbac::run(plan.work, client, &self.bindings).await,
        ]
    }

    /// Lets the registration drivers do their part: for a cluster that has its rights, or that has lost them.
    async fn drive(&self, observed: &Observed, waits_for: WaitReason) -> Vec<Error> {
        let Some(cluster) = observed.cluster.as_deref() else { return Vec::new() };
        match (observed.phase, waits_for) {
            _ if observed.refusal.is_some() => Vec::new(),
            (Phase::Accepted, WaitReason::None | WaitReason::Works) => {
                self.hub.drivers.create_permissions(cluster).await
            }
            (Phase::Denied | Phase::Deleting, WaitReason::None) => self.hub.drivers.clean_up(cluster).await,
            _ => Vec::new(),
        }
    }

    /// Succeeds if the cluster is gone meanwhile.
    async fn release(&self, old: &ManagedCluster, new: &ManagedCluster) -> Result<()> {
        match self.hub.writer().patch(old, new).await {
            Err(Error::Api(error)) => Ok(found(Err::<(), _>(error)).map(|_| ())?),
            result => result.map(|_| ()),
        }
    }
}

impl Applied {
    /// Before anything is written.
    pub(super) fn nothing(observed: &Observed, waits_for: WaitReason) -> Self {
        let Observed { phase, refusal, cluster, .. } = observed;
        Self { phase: *phase, refusal: *refusal, cluster: cluster.clone(), waits_for, errors: Vec::new() }
    }

    /// Keeps errors for the condition of an accepted cluster. Those of other clusters end the run, and so do conflicts.
    pub(super) fn note(&mut self, results: impl IntoIterator<Item = Result<()>>) -> Result<()> {
        let errors: Vec<_> = results.into_iter().filter_map(Result::err).collect();
        if self.phase != Phase::Accepted || errors.iter().any(Error::is_conflict) {
            return all(errors.into_iter().map(Err));
        }
        self.errors.extend(errors);
        Ok(())
    }
}
