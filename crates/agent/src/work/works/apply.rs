//! Writing what was planned for a work.

mod objects;
mod prune;
mod repair;

use futures::{StreamExt as _, stream};
use kube::ResourceExt as _;
use ocm_api::{
    finalizers,
    work::v1::{AppliedManifestResourceMeta, AppliedManifestWork, ManifestWork},
};
use ocm_runtime::{Class, Classified as _, Error, Requeue, Result, conditions::NewCondition, error::found, write};
use tracing::{info, warn};

pub(in crate::work) use self::repair::Repaired;
pub(super) use self::repair::repair;
use self::{
    objects::apply_objects,
    prune::{Pruned, prune},
};
use super::{
    super::{
        record,
        resources::explain,
        retry::Retry,
        status::{self, Outcome},
    },
    Observed, Plan, Works,
    plan::{self, ApplyPlan, DeletePlan},
    report,
};

/// How many objects of a work are released or deleted at a time.
const AT_A_TIME: usize = 8;

/// What to report.
#[derive(Debug)]
pub(in crate::work) enum Report {
    Nothing,
    /// Nothing; the next step follows at once.
    Continue,
    /// A condition of the work, and nothing else.
    Condition {
        condition: NewCondition,
        requeue: Requeue,
    },
    /// The objects were applied as far as possible.
    Pass(Box<Pass>),
}

impl From<(NewCondition, Requeue)> for Report {
    fn from((condition, requeue): (NewCondition, Requeue)) -> Self {
        Self::Condition { condition, requeue }
    }
}

/// A pass over the objects of a work.
#[derive(Debug)]
pub(in crate::work) struct Pass {
    /// The work as it is after its finalizer was added.
    pub work: ManifestWork,
    /// The record as the managed cluster has it.
    pub applied_work: AppliedManifestWork,
    /// What happened to each object, in the order of the spec.
    pub outcomes: Vec<Outcome>,
    /// What to record.
    pub resources: Vec<AppliedManifestResourceMeta>,
    /// What was taken out of the work and cannot be deleted, with the reasons.
    pub undeleted: Vec<String>,
    /// When to apply the work again.
    pub retry: Retry,
}

pub(super) async fn apply(controller: &Works, observed: &Observed, plan: Plan) -> Result<Report> {
    match plan {
        Plan::Nothing => Ok(Report::Nothing),
        Plan::SetCondition { condition, requeue } => Ok(Report::Condition { condition, requeue }),
        Plan::Apply(plan) => pass(controller, observed, *plan).await,
        Plan::Adopt(applied_work) => adopt(controller, observed, &applied_work).await,
        Plan::Delete(plan) => delete(controller, observed, *plan).await,
        Plan::RemoveFinalizer => {
            write::remove_finalizer(&controller.works(), observed.work.as_ref(), finalizers::MANIFEST_WORK).await?;
            Ok(Report::Nothing)
        }
    }
}

/// Gives the record the id of this agent.
async fn adopt(controller: &Works, observed: &Observed, applied_work: &AppliedManifestWork) -> Result<Report> {
    let mut new = applied_work.clone();
    new.spec.agent_id.clone_from(&controller.shared.settings.agent_id);
    match found(write::patch(&controller.applied_works(), applied_work, &new).await) {
        Ok(Some(Some(patched))) => {
            info!(former = applied_work.spec.agent_id, "the record of the work had another id, adopted it");
            controller.shared.applied_works.record_write(patched);
            Ok(Report::Continue)
        }
        // The informer will deliver that it is gone.
        Ok(_) => Ok(Report::Nothing),
        Err(error) if write::is_deleting(observed.work.as_ref()) => {
            denied(controller, error, not_deleted).map(Report::from)
        }
        Err(error) => denied(controller, error, status::refused).map(Report::from),
    }
}

/// Deletes the record, after it lists all that is to be deleted, and after what is to stay is released.
async fn delete(controller: &Works, observed: &Observed, plan: DeletePlan) -> Result<Report> {
    for cause in observed.manifests.iter().filter_map(plan::unmapped) {
        warn!(cause, "deleting the work although the kind of this object cannot be looked up");
    }
    let DeletePlan { applied_work, release, unrecorded } = plan;
    let failures = release_all(controller, observed, &applied_work, release).await;
    if !failures.is_empty() {
        warn!(?failures, "the owner reference could not be removed from all objects that stay, retrying");
        let condition = status::deleting(&failures);
        return Ok(Report::Condition { condition, requeue: Retry::BackOff.requeue(&controller.shared.settings) });
    }
    if let Err(error) = record_rest(controller, &applied_work, unrecorded).await {
        return denied(controller, error, not_deleted).map(Report::from);
    }
    info!("the work was deleted, deleting what it applied");
    match write::delete(&controller.applied_works(), &applied_work).await {
        Ok(()) => Ok(Report::Nothing),
        Err(error) => denied(controller, error, not_deleted).map(Report::from),
    }
}

fn not_deleted(cause: String) -> NewCondition {
    status::deleting(&[cause])
}

/// Releases objects from all records of the work; returns why some could not be.
async fn release_all(
    controller: &Works,
    observed: &Observed,
    applied_work: &AppliedManifestWork,
    release: Vec<AppliedManifestResourceMeta>,
) -> Vec<String> {
    let former = observed.former.iter().map(|owner| owner.uid.clone());
    let (resources, uids) = (&controller.shared.resources, &former.chain(applied_work.uid()).collect::<Vec<_>>());
    let releases = stream::iter(release).map(|recorded| async move { resources.release(&recorded, uids).await });
    releases.buffered(AT_A_TIME).filter_map(|released| async { released.err() }).collect().await
}

/// Adds the objects to the record that it owns and does not list. The record of a deleted work is the only list of what is
/// to be deleted.
async fn record_rest(
    controller: &Works,
    applied_work: &AppliedManifestWork,
    unrecorded: Vec<AppliedManifestResourceMeta>,
) -> Result<()> {
    let (resources, uid) = (&controller.shared.resources, &applied_work.uid().unwrap_or_default());
    let owned = stream::iter(unrecorded).map(|resource| async move { resources.owned(resource, uid).await });
    let owned: Vec<_> = owned.buffered(AT_A_TIME).filter_map(|owned| async { owned }).collect().await;
    if owned.is_empty() {
        return Ok(());
    }
    info!(objects = owned.len(), "the record does not list all objects of the deleted work, adding them");
    let new = record::with_listed(applied_work, [record::listed(applied_work), owned].concat());
    report::patch_record(controller, applied_work, &new).await.map(|_| ())
}

async fn pass(controller: &Works, observed: &Observed, plan: ApplyPlan) -> Result<Report> {
    // The finalizer comes first: what is applied without it could stay behind.
    let work = observed.work.as_ref();
    let added = write::add_finalizer(&controller.works(), work, finalizers::MANIFEST_WORK).await?;
    let work = added.unwrap_or_else(|| work.clone());
    let ApplyPlan { applied_work: desired, order, recorded, planned } = plan;
    let applied_work = match ensure_record(controller, observed, desired, &planned).await {
        Ok(applied_work) => applied_work,
        Err(error) => return denied(controller, error, status::refused).map(Report::from),
    };
    if let Some(copies) = &controller.shared.copies {
        copies.keep(&work, &applied_work).await;
    }
    let mut outcomes = apply_objects(controller, observed, &applied_work, &order, &recorded).await;
    outcomes.sort_by_key(|outcome| outcome.meta.ordinal);
    let resources = &controller.shared.resources;
    let Pruned { kept, undeleted, retry } = prune(resources, &applied_work, &planned, &outcomes).await;
    let retry = outcomes.iter().filter_map(Outcome::retry).fold(retry, Retry::sooner);
    Ok(Report::Pass(Box::new(Pass { work, applied_work, outcomes, resources: kept, undeleted, retry })))
}

/// Reports that the managed cluster denies writing the record. Other errors are the driver's to retry.
pub(super) fn denied(
    controller: &Works,
    error: Error,
    condition: impl FnOnce(String) -> NewCondition,
) -> Result<(NewCondition, Requeue)> {
    let is_denied = matches!(error.code(), Some(400 | 403 | 404 | 405 | 413 | 422));
    // What was to be patched and is gone is a conflict.
    if !is_denied || error.class() == Class::Conflict {
        return Err(error);
    }
    let cause = explain(&error);
    warn!(cause, "the managed cluster denies writing the AppliedManifestWork, retrying");
    let requeue = Retry::after(error.class()).requeue(&controller.shared.settings);
    Ok((condition(cause), requeue))
}

/// The record of a work, which lists all that is about to be created.
async fn ensure_record(
    controller: &Works,
    observed: &Observed,
    desired: AppliedManifestWork,
    planned: &[AppliedManifestResourceMeta],
) -> Result<AppliedManifestWork> {
    let applied_work = create_or_patch(controller, observed, desired).await?;
    list_planned(controller, applied_work, planned).await
}

/// Costs a write only if an edit of the work has added objects.
async fn list_planned(
    controller: &Works,
    applied_work: AppliedManifestWork,
    planned: &[AppliedManifestResourceMeta],
) -> Result<AppliedManifestWork> {
    match record::with_planned(&applied_work, planned) {
        Some(new) => report::patch_record(controller, &applied_work, &new).await,
        None => Ok(applied_work),
    }
}

async fn create_or_patch(
    controller: &Works,
    observed: &Observed,
    desired: AppliedManifestWork,
) -> Result<AppliedManifestWork> {
    let api = controller.applied_works();
    if let Some(existing) = &observed.applied_work {
        let patched = write::patch(&api, existing.as_ref(), &desired).await?;
        return Ok(patched.unwrap_or_else(|| existing.as_ref().clone()));
    }
    match write::create(&api, &desired).await {
        // Created a moment ago, and the watch has not brought it yet. One that is being deleted is waited for.
        Err(error) if error.is_conflict() => match write::get(&api, &desired.name_any()).await? {
            Some(existing) if !write::is_deleting(&existing) => Ok(existing),
            _ => Err(error),
        },
        outcome => outcome,
    }
}

#[cfg(test)]
mod tests;
