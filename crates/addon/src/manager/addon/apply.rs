//! Writes what was planned: permissions on the hub, then works.

use std::time::Duration;

use kube::{Api, ResourceExt as _};
use ocm_api::{
    addon::v1alpha1::{ManagedClusterAddOn, RegistrationConfig},
    labels,
    work::v1::ManifestWork,
};
use ocm_runtime::{
    Class, Classified as _, Error, ObjectKey, Requeue,
    conditions::NewCondition,
    error::{chain, found},
    write,
};
use tracing::info;

use super::{
    AddonController,
    grants::RESYNC,
    observe::Observed,
    permissions,
    plan::{Deploy, Plan, Registering},
};
use crate::manager::works::Step;

/// The longest delay before a retry, unless the API server refused something.
const RETRY: Duration = Duration::from_secs(60);

/// By how much a resync is delayed at most, as a share of its period, so that the add-ons of a fleet are not all resynced
/// at once.
const RESYNC_JITTER: f64 = 0.2;

/// The outcome of a plan.
#[derive(Debug, Default)]
pub(crate) struct Applied {
    /// Condition `RegistrationApplied`; `None` to leave it as it is.
    pub(super) registration: Option<NewCondition>,
    /// The agent's identities; `None` to leave them as they are.
    pub(super) registrations: Option<Vec<RegistrationConfig>>,
    pub(super) deployed: Deployed,
    /// What to do about what failed; of several failures about the one that is retried first.
    pub(super) failure: Option<Class>,
}

/// The outcome of the works' steps.
#[derive(Debug, Default)]
pub(super) enum Deployed {
    /// There were none, and the condition stays as it is.
    #[default]
    Nothing,
    /// A work could not be written, for this reason.
    Failed(String),
    /// A work that is being deleted must be gone first.
    Waiting(String),
    /// All works, up to date.
    Works(Vec<ManifestWork>),
}

impl Applied {
    /// When to reconcile again without a change.
    pub(super) fn next(&self) -> Requeue {
        let is_served = self.registration.is_some() || !matches!(self.deployed, Deployed::Nothing);
        match self.failure {
            Some(Class::Refused) => Requeue::BackOffSlowly,
            Some(_) => Requeue::BackOffWithin(RETRY),
            None if is_served => Requeue::After(RESYNC.mul_f64(rand::random_range(1.0..=1.0 + RESYNC_JITTER))),
            None => Requeue::OnChange,
        }
    }

    fn fail(&mut self, failure: Option<Class>) {
        self.failure = self.failure.max(failure);
    }
}

impl AddonController {
    pub(super) async fn write(&self, observed: &Observed, plan: Plan) -> Result<Applied, Error> {
        if let Some(finalizers) = plan.finalizers {
            self.release(observed, finalizers).await?;
            // The change is reconciled.
            return Ok(Applied::default());
        }
        let mut applied = Applied::default();
        match plan.registration {
            Registering::Nothing => {}
            Registering::NotNeeded { former } => {
                let (condition, failure) = self.revoke(observed).await?;
                applied.registration = Some(condition);
                applied.registrations = (former > 0).then(Vec::new);
                applied.fail(failure);
            }
            Registering::Refused(reason) => {
                applied.registration = Some(permissions::failed(reason));
                applied.fail(Some(Class::Transient));
            }
            Registering::As(desired) => {
                let (condition, failure) = self.grant(observed, &desired).await?;
                applied.registration = Some(condition);
                applied.registrations = Some(desired.configs);
                applied.fail(failure);
            }
        }
        let (deployed, failure) = match plan.deploy {
            Deploy::Nothing => (Deployed::Nothing, None),
            Deploy::Refused(reason) => (Deployed::Failed(reason), Some(Class::Transient)),
            Deploy::Works(steps) => self.deploy(observed, steps).await?,
        };
        applied.deployed = deployed;
        applied.fail(failure);
        Ok(applied)
    }

    async fn release(&self, observed: &Observed, finalizers: Vec<String>) -> Result<(), Error> {
        let api: Api<ManagedClusterAddOn> = Api::namespaced(self.client.clone(), &observed.key.namespace);
        let mut new = ManagedClusterAddOn::clone(&observed.addon);
        new.metadata.finalizers = Some(finalizers);
        found(write::patch(&api, &*observed.addon, &new).await).map(|_| ())
    }

    async fn deploy(&self, observed: &Observed, steps: Vec<Step>) -> Result<(Deployed, Option<Class>), Error> {
        let api: Api<ManifestWork> = Api::namespaced(self.client.clone(), &observed.key.namespace);
        let awaited =
            steps.iter().find_map(|step| if let Step::Wait(work) = step { Some(waiting(work)) } else { None });
        let (mut works, mut first, mut failure) = (Vec::new(), None, None);
        for step in steps {
            match self.execute(&api, observed, step).await {
                Ok(work) => works.extend(work),
                Err(StepError::Conflict(error)) => return Err(error),
                // The other works are written all the same.
                Err(StepError::Failed { class, reason }) => {
                    failure = failure.max(Some(class));
                    first.get_or_insert(reason);
                }
            }
        }
        let done = || awaited.map_or(Deployed::Works(works), Deployed::Waiting);
        Ok((first.map_or_else(done, Deployed::Failed), failure))
    }

    /// Executes one step; returns the work, unless it was deleted.
    async fn execute(
        &self,
        api: &Api<ManifestWork>,
        observed: &Observed,
        step: Step,
    ) -> Result<Option<ManifestWork>, StepError> {
        let cache = &observed.served.works;
        let work = match step {
            Step::Keep(work) | Step::Wait(work) => return Ok(Some(ManifestWork::clone(&work))),
            Step::Delete(work) => {
                write::delete(api, &*work).await?;
                info!(work = %ObjectKey::of(&*work), "deleted a work that is empty");
                return Ok(None);
            }
            Step::Update { old, new } => write::patch(api, &*old, &*new).await?.unwrap_or(*new),
            Step::Create(new) => match write::create(api, &*new).await {
                Ok(created) => created,
                Err(error) if error.is_conflict() => recover(api, &new, error).await?,
                Err(error) => return Err(error.into()),
            },
        };
        info!(work = %ObjectKey::of(&work), manifests = work.spec.workload.manifests.len(), "wrote a work");
        cache.record_write(work.clone());
        Ok(Some(work))
    }
}

/// Why a step failed.
enum StepError {
    /// Somebody else wrote first: reconcile again.
    Conflict(Error),
    /// The work could not be written, for this reason.
    Failed { class: Class, reason: String },
}

impl From<Error> for StepError {
    fn from(error: Error) -> Self {
        match error.class() {
            Class::Conflict => Self::Conflict(error),
            class @ (Class::Invalid | Class::Refused | Class::Transient) => {
                let reason = format!("The add-on's manager could not write a work: {}.", chain(&error));
                Self::Failed { class, reason }
            }
        }
    }
}

fn waiting(work: &ManifestWork) -> String {
    format!(
        "ManifestWork {} is being deleted. Its objects are deployed again when it is gone; the cluster's agent has to clean \
         up first.",
        ObjectKey::of(work)
    )
}

/// A work with the name of a new one exists. If the add-on owns it, the informer lacks it because it is late, or because
/// somebody removed the label: then the work is updated to the new one.
async fn recover(api: &Api<ManifestWork>, new: &ManifestWork, exists: Error) -> Result<ManifestWork, StepError> {
    let old = match write::get(api, &new.name_any()).await? {
        Some(old) if old.labels().get(labels::ADDON_NAME) != new.labels().get(labels::ADDON_NAME) => old,
        _ => return Err(StepError::Conflict(exists)),
    };
    let owners = new.owner_references();
    if !old.owner_references().iter().any(|owner| owners.iter().any(|own| own.uid == owner.uid)) {
        let reason = format!(
            "ManifestWork {} exists without label {} of this add-on, so it belongs to somebody else. Delete \
             it, or add the label to have it overwritten.",
            ObjectKey::of(&old),
            labels::ADDON_NAME
        );
        // No event reports that it is gone.
        return Err(StepError::Failed { class: Class::Transient, reason });
    }
    let mut ours = old.clone();
    ours.labels_mut().extend(new.labels().clone());
    ours.spec = new.spec.clone();
    Ok(write::patch(api, &old, &ours).await?.unwrap_or(ours))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(failures: &[Class]) -> Requeue {
        let mut applied = Applied { registration: Some(permissions::failed("no".into())), ..Applied::default() };
        failures.iter().for_each(|class| applied.fail(Some(*class)));
        applied.next()
    }

    #[test]
    fn what_the_api_server_refuses_is_retried_slowly_and_other_failures_within_a_minute() {
        assert_eq!(next(&[Class::Refused]), Requeue::BackOffSlowly);
        for failures in
            [&[Class::Transient][..], &[Class::Refused, Class::Transient], &[Class::Transient, Class::Refused]]
        {
            assert_eq!(next(failures), Requeue::BackOffWithin(RETRY), "{failures:?}");
        }
        assert_eq!(Applied::default().next(), Requeue::OnChange);
    }

    #[test]
    fn resyncs_are_spread_and_none_comes_before_permissions_are_applied_again() {
        let delays: Vec<_> = (0..100).map(|_| next(&[])).collect();
        assert!(delays.iter().any(|delay| *delay != delays[0]));
        let longest = RESYNC.mul_f64(1.0 + RESYNC_JITTER);
        for delay in delays {
            assert!(matches!(delay, Requeue::After(after) if (RESYNC..=longest).contains(&after)), "{delay:?}");
        }
    }
}
