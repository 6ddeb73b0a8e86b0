//! Writes decisions, and tells of them in events.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::{Api, Resource as _, ResourceExt as _};
use ocm_api::{
    cluster::v1beta1::{ClusterDecision, Placement, PlacementDecision, PlacementDecisionStatus},
    labels::{DECISION_GROUP_INDEX, DECISION_GROUP_NAME, PLACEMENT},
};
use ocm_runtime::{Cache, ObjectKey, error::found, write};

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
    /// Takes one step; what was done.
    pub(super) async fn take(&self, step: &Step) -> Result<Vec<Done>> {
        match step {
            Step::Create(wanted) => self.create(wanted).await,
            Step::List(wanted) => Ok(self.list(&self.find(&wanted.name)?, wanted).await?.into_iter().collect()),
            Step::Label(wanted) => self.label(&self.find(&wanted.name)?, wanted).await.map(|()| Vec::new()),
            Step::Delete(name) => self.delete(name).await,
        }
    }

    async fn create(&self, wanted: &Wanted) -> Result<Vec<Done>> {
        let created = write::create(&self.api, &decision(self.placement, wanted)).await?;
        self.cache.learn(created.clone());
        let listed = self.list(&created, wanted).await?;
        Ok([Done::Created(Arc::new(created))].into_iter().chain(listed).collect())
    }

    async fn list(&self, old: &PlacementDecision, wanted: &Wanted) -> Result<Option<Done>> {
        let mut new = old.clone();
        let decide = |name: &str| ClusterDecision { cluster_name: name.into(), ..ClusterDecision::default() };
        let decisions: Vec<_> = wanted.clusters.iter().map(|name| decide(name)).collect();
        if decisions.is_empty() && old.status.is_none() {
            return Ok(None);
        }
        new.status = Some(PlacementDecisionStatus { decisions });
        let Some(written) = write::patch_status(&self.api, old, &new).await? else { return Ok(None) };
        self.cache.learn(written.clone());
        Ok(Some(Done::Listed(Arc::new(written))))
    }

    async fn label(&self, old: &PlacementDecision, wanted: &Wanted) -> Result<()> {
        let mut new = old.clone();
        new.labels_mut().extend(labels(&self.placement.name_any(), wanted));
        if let Some(written) = write::patch(&self.api, old, &new).await? {
            self.cache.learn(written);
        }
        Ok(())
    }

    async fn delete(&self, name: &str) -> Result<Vec<Done>> {
        let Some(decision) = self.cache.get(&self.key(name)) else { return Ok(Vec::new()) };
        found(write::delete(&self.api, decision.as_ref()).await)?;
        self.cache.forget(&decision);
        Ok(vec![Done::Deleted(decision)])
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
