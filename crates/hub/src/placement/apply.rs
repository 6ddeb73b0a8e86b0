//! Writes decisions, and tells of them in events.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::{Api, Resource as _, ResourceExt as _};
use ocm_api::{
    cluster::v1beta1::{ClusterDecision, Placement, PlacementDecision, PlacementDecisionStatus},
    labels::{DECISION_GROUP_INDEX, DECISION_GROUP_NAME, PLACEMENT},
};
use ocm_runtime::{Cache, ObjectKey, write};

use super::{group::Wanted, plan::Step};
use crate::error::{Error, Result};

/// What was done to a decision.
#[derive(Clone, Debug)]
pub(super) enum Done {
    /// It was made.
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
    /// Takes one step; `done` grows by what was done, be it less than the whole step.
    pub(super) async fn take(&self, step: &Step, done: &mut Vec<Done>) -> Result<()> {
        match step {
            Step::Create(wanted) => self.create(wanted, done).await,
            Step::List(wanted) => self.list(&self.find(&wanted.name)?, wanted, done).await,
            Step::Label(wanted) => self.label(&self.find(&wanted.name)?, wanted).await,
            Step::Delete(name) => self.delete(name, done).await,
        }
    }

    async fn create(&self, wanted: &Wanted, done: &mut Vec<Done>) -> Result<()> {
        let created = write::create(&self.api, &decision(self.placement, wanted)).await?;
        self.cache.record_write(created.clone());
        done.push(Done::Created(Arc::new(created.clone())));
        self.list(&created, wanted, done).await
    }

    async fn list(&self, old: &PlacementDecision, wanted: &Wanted, done: &mut Vec<Done>) -> Result<()> {
        let mut new = old.clone();
        let decide = |name: &str| ClusterDecision { cluster_name: name.into(), ..ClusterDecision::default() };
        let decisions: Vec<_> = wanted.clusters.iter().map(|name| decide(name)).collect();
        if decisions.is_empty() && old.status.is_none() {
            return Ok(());
        }
        new.status = Some(PlacementDecisionStatus { decisions });
        if let Some(written) = write::patch_status(&self.api, old, &new).await? {
            self.cache.record_write(written.clone());
            done.push(Done::Listed(Arc::new(written)));
        }
        Ok(())
    }

    async fn label(&self, old: &PlacementDecision, wanted: &Wanted) -> Result<()> {
        let mut new = old.clone();
        new.labels_mut().extend(labels(&self.placement.name_any(), wanted));
        if let Some(written) = write::patch(&self.api, old, &new).await? {
            self.cache.record_write(written);
        }
        Ok(())
    }

    async fn delete(&self, name: &str, done: &mut Vec<Done>) -> Result<()> {
        let there = self.cache.get(&self.key(name));
        let Some(decision) = there.filter(|decision| !write::is_deleting(decision.as_ref())) else { return Ok(()) };
        write::delete(&self.api, decision.as_ref()).await?;
        // One that somebody's finalizer holds may be wanted again before it is gone.
        if decision.finalizers().is_empty() {
            self.cache.record_delete(&decision);
        }
        done.push(Done::Deleted(decision));
        Ok(())
    }

    /// The decision as last seen. One that has gone meanwhile is a reason to decide again.
    fn find(&self, name: &str) -> Result<PlacementDecision> {
        let key = self.key(name);
        let gone = || Error::Stale { noun: format!("PlacementDecision {key}") };
        self.cache.get(&key).map(|decision| PlacementDecision::clone(&decision)).ok_or_else(gone)
    }

    fn key(&self, name: &str) -> ObjectKey {
        ObjectKey::new(self.placement.namespace().unwrap_or_default(), name)
    }
}

pub(super) fn labels(placement: &str, wanted: &Wanted) -> [(String, String); 3] {
    [(PLACEMENT, placement), (DECISION_GROUP_NAME, &wanted.group), (DECISION_GROUP_INDEX, &wanted.index)]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
}

/// A decision as it is made: its clusters are written next.
fn decision(placement: &Placement, wanted: &Wanted) -> PlacementDecision {
    let metadata = ObjectMeta {
        name: Some(wanted.name.clone()),
        namespace: placement.namespace(),
        labels: Some(labels(&placement.name_any(), wanted).into()),
        owner_references: placement
            .controller_owner_ref(&())
            .map(|owner| vec![OwnerReference { block_owner_deletion: Some(true), ..owner }]),
        ..ObjectMeta::default()
    };
    PlacementDecision { metadata, status: None }
}
