//! Applies the copies of works while the hub is away.

use std::ops::ControlFlow;

use jiff::Timestamp;
use ocm_api::{components, work::v1::ManifestWork};
use ocm_runtime::{Context, Controller, ControllerBuilder, Error, Requeue, Result, write};
use tracing::{info, warn};

use super::{
    Copies,
    copy::{self, CopyError},
};
use crate::work::{
    Shared,
    retry::Retry,
    status::Outcome,
    works::{self, Works},
};

/// The controller; its keys are names of ManifestWorks. It runs until the hub has listed its works.
#[derive(Debug)]
pub(super) struct Repair {
    shared: Shared,
    copies: Copies,
    works: Works,
    context: Context,
}

impl Repair {
    pub(super) fn new(context: &Context, shared: Shared, copies: Copies) -> Self {
        Self { works: Works::new(shared.clone()), shared, copies, context: context.clone() }
    }

    /// The copy of a work, if it may be used.
    async fn copy(&self, work: &str) -> Result<Option<ManifestWork>> {
        let record = components::applied_manifest_work_name(&self.shared.settings.hub_hash, work);
        let Some(copy) = write::get(&self.copies.secrets, &copy::name(&record)).await? else { return Ok(None) };
        let record = self.shared.applied_works.named(&record);
        match copy::read(&copy, record.as_deref(), &self.shared.settings) {
            Ok(work) => Ok(Some(work)),
            // Its objects are deleted when the hub is back.
            Err(CopyError::NoRecord) => Ok(None),
            Err(error) => {
                warn!(work, %error, "the copy of this work is not used; its objects are repaired when the hub is back");
                Ok(None)
            }
        }
    }
}

impl Controller for Repair {
    const NAME: &'static str = "offline-works";
    type Key = String;
    type Observed = works::Observed;
    type Plan = works::Plan;
    type Applied = works::Repaired;
    type Error = Error;

    fn setup(&self, builder: &mut ControllerBuilder<'_, String>) {
        builder.waits_for(&self.shared.applied_works);
        builder.waits_for(&self.copies.known);
        let prefix = components::applied_manifest_work_name(&self.shared.settings.hub_hash, "");
        let (queue, context, patience) = (builder.queue(), self.context.clone(), self.shared.settings.offline.patience);
        self.copies.known.subscribe(move |change| {
            super::work_of(change.object(), &prefix).into_iter().for_each(|work| queue.add_after(work, patience));
            if context.is_ended() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
    }

    async fn observe(&self, key: &String) -> Result<Option<works::Observed>> {
        if self.shared.works.is_synced() {
            return Ok(None);
        }
        let Some(work) = self.copy(key).await? else { return Ok(None) };
        self.works.observe_copy(work).await
    }

    fn plan(observed: &works::Observed, now: Timestamp) -> works::Plan {
        Works::plan(observed, now)
    }

    /// Only applies: what needs the hub, and what deletes, waits for it.
    async fn apply(&self, observed: &works::Observed, plan: works::Plan) -> Result<works::Repaired> {
        match plan {
            works::Plan::Apply(plan) => Ok(self.works.repair(observed, &plan).await),
            _ => Ok(works::Repaired::default()),
        }
    }

    async fn report(&self, observed: &works::Observed, repaired: works::Repaired, _: Timestamp) -> Result<Requeue> {
        let work = observed.work.metadata.name.as_deref();
        let works::Repaired { outcomes, left_out } = repaired;
        info!(work, objects = outcomes.len(), left_out, "applied the copy of a work, since the hub is away");
        let retry = outcomes.iter().filter_map(Outcome::retry).fold(Retry::AtRegularPass, Retry::sooner);
        Ok(retry.requeue(&self.shared.settings))
    }
}
