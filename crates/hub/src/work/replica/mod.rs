//! One work of a replica set: creates, updates or deletes it, as [`decision`](super::decision) desires.
//!
//! A work belongs to the set and the placement that its labels name, whoever created it; of several that belong to the same cluster,
//! placement and set the oldest is kept. Its name is generated, so the API server refuses no second one. Therefore a work is
//! created only if it is certain that there is none: after a creation whose outcome is not known, the API server is asked first
//! ([`uncertain`]).

mod apply;
mod plan;
#[cfg(test)]
mod tests;
mod uncertain;

use std::{fmt, sync::Arc};

use jiff::Timestamp;
use kube::{Api, ResourceExt as _};
use ocm_api::{
    cluster::v1::ManagedCluster,
    work::{v1::ManifestWork, v1alpha1::ManifestWorkReplicaSet},
};
use ocm_runtime::{Cache, Change, Controller, ControllerBuilder, ObjectKey, Requeue, informer::View, write};

pub(crate) use self::plan::{Observed, Plan};
use self::{plan::plan, uncertain::Uncertain};
use super::{
    decision::Desired,
    facts::{Labels, Work},
    kinds::ReplicaWork,
    sources,
    store::{ReplicaSetStore, StoreEvent},
};
use crate::{
    caches,
    context::HubContext,
    decisions::ClusterName,
    error::{Error, Result},
};

/// The work of a set for one cluster and placement.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Replica {
    pub(crate) set: ObjectKey,
    pub(crate) cluster: ClusterName,
    pub(crate) placement: Arc<str>,
}

impl Replica {
    pub(crate) fn new(set: &ObjectKey, (cluster, placement): &Desired) -> Self {
        Self { set: set.clone(), cluster: cluster.clone(), placement: placement.clone() }
    }

    /// The one that a work is, if its labels name a set.
    fn of(work: &ReplicaWork) -> Option<Self> {
        let (set, work) = Work::of(work)?;
        Some(Self { set, cluster: work.key.namespace.into(), placement: work.placement })
    }
}

impl fmt::Display for Replica {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {} by {}", self.set, self.cluster, self.placement)
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct ReplicaController {
    hub: HubContext,
    store: ReplicaSetStore,
    sets: Cache<ManifestWorkReplicaSet>,
    works: Cache<ReplicaWork>,
    clusters: Cache<ManagedCluster>,
    /// The clusters that are being deleted.
    leaving: View<()>,
    uncertain: Uncertain,
}

impl ReplicaController {
    pub(crate) fn new(hub: &HubContext) -> Self {
        let clusters = caches::clusters(&hub.informers);
        Self {
            store: hub.replica_sets(),
            sets: sources::sets(&hub.informers),
            works: sources::works(&hub.informers),
            leaving: clusters.view(|cluster| write::is_deleting(cluster).then_some(())),
            clusters,
            uncertain: Uncertain::default(),
            hub: hub.clone(),
        }
    }

    fn api(&self, cluster: &str) -> Api<ManifestWork> {
        Api::namespaced(self.hub.client.clone(), cluster)
    }

    fn labels(&self, work: &Work) -> Labels {
        self.works.get(&work.key).map(|work| work.labels().clone()).unwrap_or_default()
    }

    fn is_leaving(&self, cluster: &str) -> bool {
        self.leaving.get(&ObjectKey::new("", cluster)).is_some()
    }
}

impl Controller for ReplicaController {
    const NAME: &'static str = "replica-set-work";
    type Key = Replica;
    type Observed = Observed;
    type Plan = Plan;
    type Applied = Requeue;
    type Error = Error;

    fn setup(&self, builder: &mut ControllerBuilder<'_, Replica>) {
        let queue = builder.queue();
        self.store.listen(move |event| {
            if let StoreEvent::Desired(replica) = event {
                queue.add(replica.clone());
            }
        });
        builder.watches(&self.works, touched);
        let uncertain = self.uncertain.clone();
        builder.watches(&self.sets, move |change| {
            if let Change::Deleted(set) = change {
                uncertain.forget(&ObjectKey::of(set.as_ref()));
            }
            None
        });
        let store = self.store.clone();
        builder.watches(&self.clusters, move |change| match change {
            // Its works may have waited until a former cluster of that name is gone.
            Change::Added(cluster) => store.desired_on(&cluster.name_any()),
            Change::Updated { .. } | Change::Deleted(_) => Vec::new(),
        });
    }

    async fn observe(&self, key: &Replica) -> Result<Option<Observed>> {
        let Some((state, template)) = self.store.desired(key) else {
            if self.store.set(&key.set).is_none() {
                self.uncertain.end(key);
            }
            return Ok(None);
        };
        if self.uncertain.contains(key) {
            self.look_for(key).await?;
        }
        let works = self.store.works_of(key);
        let kept = works.iter().min_by(|one, other| one.seniority().cmp(&other.seniority()));
        Ok(Some(Observed {
            labels: kept.map(|kept| self.labels(kept)).unwrap_or_default(),
            former_labels: self.store.former_labels(&key.set),
            is_cluster_leaving: self.is_leaving(&key.cluster),
            unreadable: self.works.left_out_in(&key.cluster),
            replica: key.clone(),
            state,
            template,
            works,
        }))
    }

    fn plan(observed: &Observed, _: Timestamp) -> Plan {
        plan(observed)
    }

    async fn apply(&self, observed: &Observed, plan: Plan) -> Result<Requeue> {
        let outcome = self.carry_out(observed, plan).await;
        self.record(&observed.replica, outcome)
    }

    async fn report(&self, _: &Observed, requeue: Requeue, _: Timestamp) -> Result<Requeue> {
        Ok(requeue)
    }
}

/// The works that may have to be written after a change of one: not after a change of its status.
fn touched(change: Change<'_, ReplicaWork>) -> Vec<Replica> {
    let relevant = |work: &ReplicaWork| (work.spec.clone(), work.metadata.labels.clone(), write::is_deleting(work));
    match change {
        Change::Updated { old, new } if relevant(old) == relevant(new) && old.uid() == new.uid() => Vec::new(),
        Change::Updated { old, new } => [old, new].into_iter().filter_map(|work| Replica::of(work)).collect(),
        Change::Added(work) | Change::Deleted(work) => Replica::of(work).into_iter().collect(),
    }
}
