//! Placement: selects clusters, and writes them into PlacementDecisions.
//!
//! How the data flows: informers keep the [`index`] of clusters, their scores, sets, bindings, placements and decisions up to date, and it
//! returns which placements a change can affect. Each of these is planned from a [`Snapshot`](index::Snapshot) of the index,
//! one at a time if it counts what others select ([`planning`]). `ocm_scheduler` selects its clusters and splits them into
//! decisions; [`plan`] determines what to write to get there, and its status ([`status`]). Decisions that differ are written
//! ([`apply`]), and [`events`] report the writes.

mod apply;
#[cfg(test)]
mod differential;
mod events;
mod frozen;
#[cfg(fuzzing)]
pub mod fuzzing;
mod index;
mod plan;
mod planning;
#[cfg(test)]
mod properties;
mod status;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use std::time::Duration;

use jiff::Timestamp;
use kube::{Api, ResourceExt as _, core::NamespaceResourceScope};
use ocm_api::{
    cluster::{
        v1::ManagedCluster,
        v1alpha1::AddOnPlacementScore,
        v1beta1::{Placement, PlacementDecision, PlacementStatus},
        v1beta2::{ManagedClusterSet, ManagedClusterSetBinding},
    },
    components::PLACEMENT_CONTROLLER,
};
use ocm_runtime::{
    Cache, Clock, Context, Controller, ControllerBuilder, ObjectKey, Queue, Requeue, events::EventRecorder,
    informer::WatchFilter, write,
};

use self::{
    apply::Writer,
    events::{Cause, EventQueue},
    index::Index,
    plan::Plan,
    planning::{InPlanning, PlanningLock},
};
use crate::{
    caches,
    context::HubContext,
    error::{Error, Result},
    pace::Pace,
};

/// How many placements are written at once. The API server is the limit, not this process.
pub(crate) const WORKERS: usize = 32;

/// See the module.
#[derive(Debug)]
pub(crate) struct PlacementController {
    hub: HubContext,
    events: EventQueue,
    clusters: Cache<ManagedCluster>,
    sets: Cache<ManagedClusterSet>,
    bindings: Cache<ManagedClusterSetBinding>,
    placements: Cache<Placement>,
    decisions: Cache<PlacementDecision>,
    scores: Cache<AddOnPlacementScore>,
    index: Index,
    planning: PlanningLock,
    pace: Pace<ObjectKey>,
    clock: Clock,
}

impl PlacementController {
    pub(crate) fn new(context: &Context, hub: &HubContext) -> Self {
        let (informers, clock) = (&hub.informers, context.clock().clone());
        let clusters = caches::clusters(informers);
        let json = {
            let clusters = clusters.clone();
            move |name: &str| clusters.json(&ObjectKey::new("", name))
        };
        let recorder = EventRecorder::new(hub.client.clone(), clock.clone(), PLACEMENT_CONTROLLER, &hub.config.host);
        Self {
            events: EventQueue::start(context, &recorder),
            clusters,
            sets: caches::sets(informers),
            bindings: caches::set_bindings(informers),
            placements: informers.all(WatchFilter::all()),
            decisions: informers.all(WatchFilter::all()),
            scores: informers.all(WatchFilter::all()),
            index: Index::new(json),
            planning: PlanningLock::new(context.metrics().scheduling().clone()),
            pace: Pace::default(),
            clock,
            hub: hub.clone(),
        }
    }
}

impl Controller for PlacementController {
    const NAME: &'static str = "placement";
    type Key = ObjectKey;
    type Observed = InPlanning;
    type Plan = Option<Plan>;
    type Applied = Option<Plan>;
    type Error = Error;

    fn setup(&self, builder: &mut ControllerBuilder<'_, ObjectKey>) {
        let index = || self.index.clone();
        builder.watches(&self.sets, {
            let index = index();
            move |change| index.set(change)
        });
        // While many clusters or their scores change, the placements that they affect are planned once a second.
        let slowly = |queue: Queue<ObjectKey>| {
            let pace = self.pace.clone();
            move |affected: Vec<ObjectKey>| affected.into_iter().for_each(|placement| pace.add(&queue, placement))
        };
        builder.watches(&self.scores, {
            let (index, add) = (index(), slowly(builder.queue()));
            move |change| {
                add(index.scores(change));
                None
            }
        });
        builder.watches(&self.clusters, {
            let (index, clock, add) = (index(), self.clock.clone(), slowly(builder.queue()));
            move |change| {
                add(index.cluster(change, clock.now()));
                None
            }
        });
        builder.watches(&self.bindings, {
            let index = index();
            move |change| index.binding(change)
        });
        builder.watches(&self.decisions, {
            let index = index();
            move |change| index.decision(change)
        });
        builder.watches(&self.placements, {
            let index = index();
            move |change| index.placement(change)
        });
    }

    async fn observe(&self, key: &ObjectKey) -> Result<Option<InPlanning>> {
        self.pace.begin(key);
        let planning = InPlanning::begin(&self.planning, &self.index, key, |key| self.placements.get(key)).await;
        if planning.is_none() {
            self.pace.forget(key);
        }
        Ok(planning)
    }

    fn plan(planned: &InPlanning, now: Timestamp) -> Option<Plan> {
        planned.plan(now)
    }

    async fn apply(&self, planned: &InPlanning, plan: Option<Plan>) -> Result<Option<Plan>> {
        let Some(plan) = plan else { return Ok(None) };
        planned.record(&self.index, &plan);
        let mut writes = Vec::new();
        let placement = &planned.placement;
        let writer = Writer { api: self.api(placement), cache: &self.decisions, placement };
        let written = writer.write_all(&plan.steps, &mut writes).await;
        // Also when a step fails: the next run does not repeat the writes of the others.
        let cause = Cause { scores: &plan.scores, expired: plan.expired.as_deref() };
        self.events.add(&planned.placement, &writes, &cause);
        written.map(|()| Some(plan))
    }

    async fn report(&self, planned: &InPlanning, plan: Option<Plan>, _: Timestamp) -> Result<Requeue> {
        let Some(plan) = plan else { return Ok(Requeue::OnChange) };
        self.write_status(&planned.placement, plan.status).await?;
        planned.written();
        let requeue_after = plan.requeue_after.and_then(|after| Duration::try_from(after).ok());
        Ok(requeue_after.map_or(Requeue::OnChange, Requeue::After))
    }
}

impl PlacementController {
    async fn write_status(&self, placement: &Placement, status: PlacementStatus) -> Result<()> {
        // A field that stays zero is not sent: OCM leaves it out too.
        let mut old = placement.clone();
        old.status.get_or_insert_default();
        let new = Placement { status: Some(status), ..old.clone() };
        if let Some(written) = write::patch_status(&self.api(placement), &old, &new).await? {
            self.placements.record_write(written);
        }
        Ok(())
    }

    fn api<K>(&self, placement: &Placement) -> Api<K>
    where
        K: kube::Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.hub.client.clone(), &placement.namespace().unwrap_or_default())
    }
}
