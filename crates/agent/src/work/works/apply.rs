//! Writing what was planned for a work.

use std::collections::HashSet;

use futures::{StreamExt as _, stream};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{ResourceExt as _, core::DynamicObject};
use ocm_api::{
    finalizers,
    work::v1::{AppliedManifestResourceMeta, AppliedManifestWork, ManifestCondition, ManifestWork, ResourceIdentifier},
};
use ocm_runtime::{Class, Classified as _, Error, Requeue, Result, conditions::NewCondition, error::found, write};
use tracing::{info, warn};

use super::{
    super::{
        conditions::{is_object_complete, misnamed},
        executor::Executor,
        feedback::FeedbackSettings,
        identifier,
        manifest::ManifestError,
        options::ManifestOptions,
        ownership::Ownership,
        resources::{Application, ApplyError, Deletion, Resources, explain},
        retry::Retry,
        status::{self, ApplyResult, ObjectState, Outcome},
    },
    Observed, Plan, Works,
    plan::{self, ApplyPlan, DeletePlan},
    report,
    resolve::{ResolvedManifest, Target},
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
    let mut new = applied_work.clone();
    new.status.get_or_insert_default().applied_resources.extend(owned);
    report::patch_record(controller, applied_work, &new).await
}

async fn pass(controller: &Works, observed: &Observed, plan: ApplyPlan) -> Result<Report> {
    // The finalizer comes first: what is applied without it could stay behind.
    let work = observed.work.as_ref();
    let added = write::add_finalizer(&controller.works(), work, finalizers::MANIFEST_WORK).await?;
    let work = added.unwrap_or_else(|| work.clone());
    let ApplyPlan { applied_work: desired, order, recorded } = plan;
    let applied_work = match ensure_record(controller, observed, desired).await {
        Ok(applied_work) => applied_work,
        Err(error) => return denied(controller, error, status::refused).map(Report::from),
    };
    let mut outcomes = apply_objects(controller, observed, &applied_work, &order, &recorded).await;
    outcomes.sort_by_key(|outcome| outcome.meta.ordinal);
    let resources = &controller.shared.resources;
    let Pruned { kept, undeleted, retry } = prune(resources, &applied_work, recorded, &outcomes).await;
    let retry = outcomes.iter().filter_map(Outcome::retry).fold(retry, Retry::sooner);
    Ok(Report::Pass(Box::new(Pass { work, applied_work, outcomes, resources: kept, undeleted, retry })))
}

/// Applies the objects of a work that the hub cannot be asked about. Nothing is deleted, recorded or reported.
pub(super) async fn repair(controller: &Works, observed: &Observed, plan: &ApplyPlan) -> Vec<Outcome> {
    match &observed.applied_work {
        Some(applied_work) => apply_objects(controller, observed, applied_work, &plan.order, &plan.recorded).await,
        None => Vec::new(),
    }
}

/// Applies the objects of a work in the planned order.
async fn apply_objects(
    controller: &Works,
    observed: &Observed,
    applied_work: &AppliedManifestWork,
    order: &[usize],
    recorded: &[AppliedManifestResourceMeta],
) -> Vec<Outcome> {
    let resources = &controller.shared.resources;
    let known = recorded.iter().map(identifier::of_recorded).collect();
    let executor = controller.shared.executors.of(&observed.work);
    let feedback = observed.settings.feedback;
    let reported = observed.work.status.as_ref().map(|status| status.resource_status.manifests.as_slice());
    let (former, reported) = (observed.former.as_slice(), reported.unwrap_or_default());
    let objects = ObjectPass { resources, executor, applied_work, former, known, feedback, reported };
    let mut outcomes = Vec::with_capacity(observed.manifests.len());
    for manifest in order.iter().filter_map(|index| observed.manifests.get(*index)) {
        outcomes.push(objects.apply(manifest).await);
    }
    outcomes
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

async fn ensure_record(
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

/// Applies the objects of one work.
struct ObjectPass<'a> {
    resources: &'a Resources,
    executor: Option<Executor<'a>>,
    applied_work: &'a AppliedManifestWork,
    former: &'a [OwnerReference],
    /// What the last pass recorded.
    known: HashSet<ResourceIdentifier>,
    feedback: FeedbackSettings,
    /// What the status says of the objects so far.
    reported: &'a [ManifestCondition],
}

impl ObjectPass<'_> {
    async fn apply(&self, manifest: &ResolvedManifest) -> Outcome {
        match &manifest.target {
            Ok(target) => self.apply_to(manifest, target).await,
            Err(error) => self.outcome(manifest, failed(error), ObjectState::Unmapped, &ManifestOptions::default()),
        }
    }

    async fn apply_to(&self, manifest: &ResolvedManifest, target: &Target) -> Outcome {
        let options = &target.options;
        if self.is_complete(manifest, options) {
            let object = self.resources.observe(&manifest.meta, options).await;
            return self.outcome(manifest, ApplyResult::Applied, object, options);
        }
        let (applied, object) = match self.write(manifest, target).await {
            // Where nothing had to be written, only the metadata are known.
            Ok(Some(object)) if options.has_rules() && object.data.is_null() => {
                (self.applied(manifest), self.resources.observe(&manifest.meta, options).await)
            }
            Ok(Some(object)) => (self.applied(manifest), ObjectState::Exists(Box::new(object))),
            Ok(None) => (ApplyResult::Applied, ObjectState::NotFound),
            Err(error) => (failed(&error), self.state(manifest, options, &error).await),
        };
        self.outcome(manifest, applied, object, options)
    }

    fn outcome(
        &self,
        manifest: &ResolvedManifest,
        applied: ApplyResult,
        object: ObjectState,
        options: &ManifestOptions,
    ) -> Outcome {
        Outcome::new(manifest.meta.clone(), applied, object, options, self.feedback)
    }

    fn applied(&self, manifest: &ResolvedManifest) -> ApplyResult {
        let contest = self.resources.objects().contest(&manifest.identifier());
        contest.map_or(ApplyResult::Applied, ApplyResult::Contested)
    }

    /// Whether the object has done what it was for, and stays as it is.
    fn is_complete(&self, manifest: &ResolvedManifest, options: &ManifestOptions) -> bool {
        let entry = status::previous(self.reported, &manifest.meta);
        entry.is_some_and(|entry| is_object_complete(entry, &options.condition_rules))
    }

    /// Whatever the strategy is, the executor must be allowed to write the object.
    async fn write(&self, manifest: &ResolvedManifest, target: &Target) -> Result<Option<DynamicObject>, ApplyError> {
        let Target { object, mapping, is_owned, options } = target;
        if let Some(problem) = misnamed(&options.condition_rules) {
            return Err(ManifestError::ConditionRule(problem).into());
        }
        if let Some(executor) = &self.executor {
            executor.authorize(&manifest.meta, object, mapping, *is_owned).await?;
        }
        let ownership = Ownership::of(*is_owned, self.applied_work, self.former);
        let is_new = !self.known.contains(&manifest.identifier());
        let application = Application { object, mapping, options, ownership: &ownership, is_new };
        self.resources.apply(application).await
    }

    /// An object that could not be applied may still exist, as it was.
    async fn state(&self, manifest: &ResolvedManifest, options: &ManifestOptions, error: &ApplyError) -> ObjectState {
        match error {
            ApplyError::NoNamespace(_) => ObjectState::NotFound,
            _ => self.resources.observe(&manifest.meta, options).await,
        }
    }
}

fn failed(error: &ApplyError) -> ApplyResult {
    ApplyResult::Failed { reason: error.reason(), cause: error.explain(), retry: error.retry() }
}

/// What came of deleting objects that are no longer in a work.
struct Pruned {
    /// What to record: what exists of the work, and what is not deleted yet.
    kept: Vec<AppliedManifestResourceMeta>,
    /// What cannot be deleted, with the reasons.
    undeleted: Vec<String>,
    retry: Retry,
}

/// Deletes what was recorded and is no longer in the work. While it is not known of every object of the work where it is,
/// nothing is deleted and everything stays recorded, also what is still in the work and cannot be read now.
async fn prune(
    resources: &Resources,
    applied_work: &AppliedManifestWork,
    recorded: Vec<AppliedManifestResourceMeta>,
    outcomes: &[Outcome],
) -> Pruned {
    let existing = status::existing(outcomes);
    if outcomes.iter().any(Outcome::is_uncertain) {
        let kept = not_among(recorded, &existing);
        return Pruned { kept: [existing, kept].concat(), undeleted: Vec::new(), retry: Retry::AtRegularPass };
    }
    let obsolete = obsolete(recorded, &existing, outcomes);
    let mut pruned = Pruned { kept: existing, undeleted: Vec::new(), retry: Retry::AtRegularPass };
    let uid = &applied_work.uid().unwrap_or_default();
    let deletions = stream::iter(obsolete).map(|resource| async move {
        info!(resource = resource.resource, name = resource.name, "no longer in the work, deleting it");
        (resources.delete(&resource, uid).await, resource)
    });
    let deletions: Vec<_> = deletions.buffered(AT_A_TIME).collect().await;
    deletions.into_iter().for_each(|(deletion, resource)| pruned.take(deletion, resource));
    pruned
}

impl Pruned {
    fn take(&mut self, deletion: Deletion, resource: AppliedManifestResourceMeta) {
        if deletion == Deletion::Done {
            return;
        }
        if let Deletion::Failed(cause) = deletion {
            self.undeleted.push(cause);
        }
        self.kept.push(resource);
        self.retry = Retry::BackOff;
    }
}

/// What is recorded and is neither in the spec nor one of its objects under another group.
fn obsolete(
    recorded: Vec<AppliedManifestResourceMeta>,
    existing: &[AppliedManifestResourceMeta],
    outcomes: &[Outcome],
) -> Vec<AppliedManifestResourceMeta> {
    let ids: HashSet<_> = outcomes.iter().map(|outcome| identifier::of_manifest(&outcome.meta)).collect();
    let mut obsolete = not_among(recorded, existing);
    obsolete.retain(|resource| !ids.contains(&identifier::of_recorded(resource)));
    obsolete
}

/// What is recorded and is none of the objects that exist, neither by name nor, under another group, by uid.
fn not_among(
    recorded: Vec<AppliedManifestResourceMeta>,
    existing: &[AppliedManifestResourceMeta],
) -> Vec<AppliedManifestResourceMeta> {
    let ids: HashSet<_> = existing.iter().map(identifier::of_recorded).collect();
    let uids: HashSet<_> = existing.iter().filter_map(|resource| resource.uid.as_ref()).collect();
    let is_other = |resource: &AppliedManifestResourceMeta| {
        let is_same_object = resource.uid.as_ref().is_some_and(|uid| uids.contains(uid));
        !ids.contains(&identifier::of_recorded(resource)) && !is_same_object
    };
    recorded.into_iter().filter(is_other).collect()
}

#[cfg(test)]
mod tests;
