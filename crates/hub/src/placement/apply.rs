//! Writes decisions.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::{Api, Resource as _, ResourceExt as _};
use ocm_api::{
    cluster::v1beta1::{ClusterDecision, Placement, PlacementDecision, PlacementDecisionStatus},
    labels::{DECISION_GROUP_INDEX, DECISION_GROUP_NAME, PLACEMENT},
};
use ocm_runtime::{Cache, ObjectKey, error::all, write};
use ocm_scheduler::DesiredDecision;

use super::plan::Step;
use crate::error::{Error, Result};

/// A write that has changed a decision.
#[derive(Clone, Debug)]
pub(super) enum DecisionWrite {
    /// It was created.
    Created(Arc<PlacementDecision>),
    /// Its list of clusters was written.
    Listed(Arc<PlacementDecision>),
    /// It was deleted.
    Deleted(Arc<PlacementDecision>),
}

/// Writes the decisions of one placement.
pub(super) struct Writer<'a> {
    pub(super) api: Api<PlacementDecision>,
    pub(super) cache: &'a Cache<PlacementDecision>,
    pub(super) placement: &'a Placement,
}

impl Writer<'_> {
    /// Carries out all steps: one that fails does not keep the others from being tried. `writes` gets every write that succeeds.
    pub(super) async fn write_all(&self, steps: &[Step], writes: &mut Vec<DecisionWrite>) -> Result<()> {
        let mut results = Vec::new();
        for step in steps {
            results.push(self.write(step, writes).await);
        }
        all(results)
    }

    async fn write(&self, step: &Step, writes: &mut Vec<DecisionWrite>) -> Result<()> {
        match step {
            Step::Create(desired) => self.create(desired, writes).await,
            Step::List(desired) => self.list(&self.find(&desired.name)?, desired, writes).await,
            Step::Label(desired) => self.label(&self.find(&desired.name)?, desired).await,
            Step::Delete(name) => self.delete(name, writes).await,
        }
    }

    async fn create(&self, desired: &DesiredDecision, writes: &mut Vec<DecisionWrite>) -> Result<()> {
        let created = write::create(&self.api, &decision(self.placement, desired)).await?;
        self.cache.record_write(created.clone());
        writes.push(DecisionWrite::Created(Arc::new(created.clone())));
        self.list(&created, desired, writes).await
    }

    async fn list(
        &self,
        old: &PlacementDecision,
        desired: &DesiredDecision,
        writes: &mut Vec<DecisionWrite>,
    ) -> Result<()> {
        let mut new = old.clone();
        let decide = |name: &str| ClusterDecision { cluster_name: name.into(), ..ClusterDecision::default() };
        let decisions: Vec<_> = desired.clusters.iter().map(|name| decide(name)).collect();
        if decisions.is_empty() && old.status.is_none() {
            return Ok(());
        }
        new.status = Some(PlacementDecisionStatus { decisions });
        if let Some(written) = write::patch_status(&self.api, old, &new).await? {
            self.cache.record_write(written.clone());
            writes.push(DecisionWrite::Listed(Arc::new(written)));
        }
        Ok(())
    }

    async fn label(&self, old: &PlacementDecision, desired: &DesiredDecision) -> Result<()> {
        let mut new = old.clone();
        new.labels_mut().extend(labels(&self.placement.name_any(), desired));
        if let Some(written) = write::patch(&self.api, old, &new).await? {
            self.cache.record_write(written);
        }
        Ok(())
    }

    async fn delete(&self, name: &str, writes: &mut Vec<DecisionWrite>) -> Result<()> {
        let found = self.cache.get(&self.key(name));
        let Some(decision) = found.filter(|decision| !write::is_deleting(decision.as_ref())) else { return Ok(()) };
        write::delete(&self.api, decision.as_ref()).await?;
        // One that a finalizer keeps may be desired again before it is deleted.
        if decision.finalizers().is_empty() {
            self.cache.record_delete(&decision);
        }
        writes.push(DecisionWrite::Deleted(decision));
        Ok(())
    }

    /// The decision as last seen. If it was deleted meanwhile, the placement is planned again.
    fn find(&self, name: &str) -> Result<PlacementDecision> {
        let key = self.key(name);
        let stale = || Error::Stale { noun: format!("PlacementDecision {key}") };
        self.cache.get(&key).map(|decision| PlacementDecision::clone(&decision)).ok_or_else(stale)
    }

    fn key(&self, name: &str) -> ObjectKey {
        ObjectKey::new(self.placement.namespace().unwrap_or_default(), name)
    }
}

pub(super) fn labels(placement: &str, desired: &DesiredDecision) -> [(String, String); 3] {
    [(PLACEMENT, placement), (DECISION_GROUP_NAME, &desired.group), (DECISION_GROUP_INDEX, &desired.index)]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
}

/// A decision as it is created. Its clusters are in the status, which is written next.
fn decision(placement: &Placement, desired: &DesiredDecision) -> PlacementDecision {
    let metadata = ObjectMeta {
        name: Some(desired.name.clone()),
        namespace: placement.namespace(),
        labels: Some(labels(&placement.name_any(), desired).into()),
        owner_references: placement
            .controller_owner_ref(&())
            .map(|owner| vec![OwnerReference { block_owner_deletion: Some(true), ..owner }]),
        ..ObjectMeta::default()
    };
    PlacementDecision { metadata, status: None }
}
