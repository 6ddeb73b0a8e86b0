//! Applying the objects of one work.

use std::collections::HashSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::core::DynamicObject;
use ocm_api::work::v1::{AppliedManifestResourceMeta, AppliedManifestWork, ManifestCondition, ResourceIdentifier};

use crate::work::{
    conditions::{is_object_complete, misnamed},
    executor::Executor,
    feedback::FeedbackSettings,
    identifier,
    manifest::ManifestError,
    options::ManifestOptions,
    ownership::Ownership,
    resources::{Application, ApplyError, Resources},
    status::{self, ApplyResult, ObjectState, Outcome},
    works::{
        Observed, Works,
        resolve::{ResolvedManifest, Target},
    },
};

/// Applies the objects of a work in the planned order.
pub(super) async fn apply_objects(
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
            Err(error) => {
                self.outcome(manifest, failed(error), ObjectState::Unmapped, &ManifestOptions::default()).await
            }
        }
    }

    async fn apply_to(&self, manifest: &ResolvedManifest, target: &Target) -> Outcome {
        let options = &target.options;
        if self.is_complete(manifest, options) {
            let object = self.resources.observe(&manifest.meta, options).await;
            return self.outcome(manifest, ApplyResult::Applied, object, options).await;
        }
        if let Err(error) = self.authorize(manifest, target).await {
            return self.unauthorized(manifest, options, &error).await;
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
        self.outcome(manifest, applied, object, options).await
    }

    /// An object that could not be applied may still exist, as it was.
    async fn state(&self, manifest: &ResolvedManifest, options: &ManifestOptions, error: &ApplyError) -> ObjectState {
        match error {
            ApplyError::NoNamespace(_) => ObjectState::NotFound,
            _ => self.resources.observe(&manifest.meta, options).await,
        }
    }

    /// What an executor may not apply, it may not be allowed to read either, so nothing is computed from that. While its rights
    /// are not known, what the status says stays.
    async fn unauthorized(
        &self,
        manifest: &ResolvedManifest,
        options: &ManifestOptions,
        error: &ApplyError,
    ) -> Outcome {
        let options = &options.clone().without_rules();
        let object = self.state(manifest, options, error).await;
        let outcome = self.outcome(manifest, failed(error), object, options).await;
        if matches!(error, ApplyError::Executor(_)) { outcome } else { outcome.without_evaluation() }
    }

    async fn outcome(
        &self,
        manifest: &ResolvedManifest,
        applied: ApplyResult,
        object: ObjectState,
        options: &ManifestOptions,
    ) -> Outcome {
        Outcome::evaluated(self.resources.pool(), manifest.meta.clone(), applied, object, options, self.feedback).await
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
    async fn authorize(&self, manifest: &ResolvedManifest, target: &Target) -> Result<(), ApplyError> {
        match &self.executor {
            Some(executor) => executor.authorize(&manifest.meta, target).await,
            None => Ok(()),
        }
    }

    async fn write(&self, manifest: &ResolvedManifest, target: &Target) -> Result<Option<DynamicObject>, ApplyError> {
        let Target { object, mapping, is_owned, options } = target;
        if let Some(problem) = misnamed(&options.condition_rules) {
            return Err(ManifestError::ConditionRule(problem).into());
        }
        let ownership = Ownership::of(*is_owned, self.applied_work, self.former);
        let is_new = !self.known.contains(&manifest.identifier());
        let application = Application { object, mapping, options, ownership: &ownership, is_new };
        self.resources.apply(application).await
    }
}

fn failed(error: &ApplyError) -> ApplyResult {
    ApplyResult::Failed { reason: error.reason(), cause: error.explain(), retry: error.retry() }
}
