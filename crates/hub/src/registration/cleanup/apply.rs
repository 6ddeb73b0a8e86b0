//! Deleting what was planned, and letting go of the cluster.

use std::sync::Arc;

use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, DynamicObject, Preconditions},
};
use ocm_api::cluster::v1::ManagedCluster;
use ocm_runtime::{ResultExt as _, error::found};

use super::{
    CleanupController, GcResource,
    observe::{Item, Observed, RemainingResources},
    plan::Plan,
};
use crate::error::{Error, Result};

/// What writing led to.
#[derive(Debug)]
pub(crate) struct Applied {
    /// The cluster as last written; `None` when it is gone.
    pub(super) cluster: Option<Arc<ManagedCluster>>,
    pub(super) outcome: Outcome,
}

/// The state of the deletion.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The cluster stays, or all has been said.
    Nothing,
    /// Something is left.
    Remaining(RemainingResources),
    /// Nothing is left, and the finalizer is gone.
    Done,
    /// Some requests failed.
    Failed(Vec<Arc<Error>>),
}

impl CleanupController {
    pub(super) async fn write(&self, observed: &Observed, plan: Plan) -> Result<Applied> {
        let cluster = observed.cluster.clone();
        Ok(match (plan, &observed.remaining) {
            (_, Err(error)) => Applied { cluster, outcome: Outcome::Failed(vec![error.clone()]) },
            (Plan::Delete { resource, items }, Ok(Some(remaining))) => {
                let errors = delete(&self.api(&observed.name, &resource), &resource, &items).await;
                let is_done = errors.is_empty();
                let outcome = if is_done { Outcome::Remaining(remaining.clone()) } else { Outcome::Failed(errors) };
                Applied { cluster, outcome }
            }
            (Plan::AddFinalizer(new), _) => {
                self.patch(cluster.as_deref(), &new).await?;
                Applied { cluster, outcome: Outcome::Nothing }
            }
            (Plan::RemoveFinalizer(new), _) => self.release(cluster.as_deref(), &new).await?,
            (Plan::Leave | Plan::Delete { .. }, _) => Applied { cluster, outcome: Outcome::Nothing },
        })
    }

    async fn patch(&self, old: Option<&ManagedCluster>, new: &ManagedCluster) -> Result<Option<ManagedCluster>> {
        match old {
            Some(old) => self.hub.writer().patch(old, new).await,
            None => Ok(None),
        }
    }

    /// With its last finalizer the cluster goes, and there is nothing left to report on.
    async fn release(&self, old: Option<&ManagedCluster>, new: &ManagedCluster) -> Result<Applied> {
        let released = match self.patch(old, new).await {
            Err(Error::Api(error)) => found(Err(error))?,
            result => result?,
        };
        let left = released.filter(|cluster| !cluster.finalizers().is_empty());
        Ok(Applied { cluster: left.map(Arc::new), outcome: Outcome::Done })
    }
}

/// Deletes every item, also after one that is refused. Returns the errors.
pub(super) async fn delete(api: &Api<DynamicObject>, resource: &GcResource, items: &[Item]) -> Vec<Arc<Error>> {
    let mut errors = Vec::new();
    for item in items {
        let only_this = Preconditions { uid: item.uid.clone(), ..Preconditions::default() };
        let params = DeleteParams { preconditions: Some(only_this), ..DeleteParams::default() };
        let deleted = api.delete(&item.name, &params).await;
        let noun = || format!("{resource} {}/{}", api.namespace().unwrap_or_default(), item.name);
        errors.extend(found(deleted.while_trying_to("delete", noun)).err().map(|error| Arc::new(error.into())));
    }
    errors
}
