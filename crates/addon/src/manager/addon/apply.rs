//! Writing what was planned: rights on the hub, then works.

use std::time::Duration;

use kube::{Api, ResourceExt as _};
use ocm_api::{
    addon::v1alpha1::{ManagedClusterAddOn, RegistrationConfig},
    conditions::addon::REGISTRATION_APPLIED,
    labels,
    reasons::addon::{NIL_REGISTRATION, PERMISSION_CONFIG_PENDING, SET_PERMISSION_APPLIED, SET_PERMISSION_FAILED},
    work::v1::ManifestWork,
};
use ocm_runtime::{
    Class, Classified as _, Error, Next, ObjectKey,
    conditions::Finding,
    error::{chain, found},
    write,
};
use tracing::info;

use super::{
    AddonController,
    memory::{CHECK_AGAIN, Granted},
    observe::Observed,
    plan::{Deploy, Plan, Registering},
    registration::Wanted,
};
use crate::{Grant, PermissionError, manager::works::Step};

/// How long at most until what failed is tried again.
const RETRY: Duration = Duration::from_secs(60);

/// What came of a plan.
#[derive(Debug, Default)]
pub(crate) struct Applied {
    /// Condition `RegistrationApplied`; `None` to leave it as it is.
    pub(super) registration: Option<Finding>,
    /// The agent's identities; `None` to leave them as they are.
    pub(super) registrations: Option<Vec<RegistrationConfig>>,
    pub(super) deployed: Deployed,
}

/// What came of the works.
#[derive(Debug, Default)]
pub(super) enum Deployed {
    /// They were left alone, and so is the condition.
    #[default]
    Nothing,
    /// They are not as they should be, for this reason.
    Failed(String),
    /// These are all there are, and as they should be.
    Works(Vec<ManifestWork>),
}

impl Applied {
    /// When to look again without a change.
    pub(super) fn next(&self) -> Next {
        let rights_failed = self.registration.as_ref().is_some_and(|finding| finding.reason == SET_PERMISSION_FAILED);
        if rights_failed || matches!(self.deployed, Deployed::Failed(_)) {
            return Next::RetryWithin(RETRY);
        }
        if self.registrations.is_some() { Next::After(CHECK_AGAIN) } else { Next::Change }
    }
}

impl AddonController {
    pub(super) async fn write(&self, observed: &Observed, plan: Plan) -> Result<Applied, Error> {
        if let Some(finalizers) = plan.finalizers {
            self.release(observed, finalizers).await?;
            // The change brings the add-on back here, as it then is.
            return Ok(Applied::default());
        }
        let mut applied = Applied::default();
        match plan.registration {
            Registering::Nothing => {}
            Registering::NotNeeded => applied.registration = Some(not_needed()),
            Registering::Refused(reason) => applied.registration = Some(failed(reason)),
            Registering::As(wanted) => {
                applied.registration = Some(self.grant(observed, &wanted).await?);
                applied.registrations = Some(wanted.registrations);
            }
        }
        applied.deployed = match plan.deploy {
            Deploy::Nothing => Deployed::Nothing,
            Deploy::Refused(reason) => Deployed::Failed(reason),
            Deploy::Works(steps) => self.deploy(observed, steps).await?,
        };
        Ok(applied)
    }

    async fn release(&self, observed: &Observed, finalizers: Vec<String>) -> Result<(), Error> {
        let api: Api<ManagedClusterAddOn> = Api::namespaced(self.client.clone(), &observed.key.namespace);
        let mut new = ManagedClusterAddOn::clone(&observed.addon);
        new.metadata.finalizers = Some(finalizers);
        found(write::patch(&api, &*observed.addon, &new).await).map(|_| ())
    }

    /// Sets up what the agent may do on the hub, unless that was done not long ago.
    async fn grant(&self, observed: &Observed, wanted: &Wanted) -> Result<Finding, Error> {
        let registration = observed.served.options.registration.as_ref();
        let Some(permissions) = registration.and_then(crate::Registration::permission_config) else {
            return Ok(granted());
        };
        let granted_to = Granted { uid: observed.addon.uid(), identity: wanted.identity.clone() };
        if self.memory.knows(&observed.key, &granted_to) {
            return Ok(granted());
        }
        let grant = Grant {
            client: &self.client,
            on: &observed.installation(),
            identity: wanted.identity.as_ref(),
            is_first: !observed.was_registered(),
        };
        let outcome = permissions.apply(&grant).await;
        if outcome.is_ok() {
            self.memory.remember(&observed.key, granted_to);
        }
        finding(outcome)
    }

    async fn deploy(&self, observed: &Observed, steps: Vec<Step>) -> Result<Deployed, Error> {
        let api: Api<ManifestWork> = Api::namespaced(self.client.clone(), &observed.key.namespace);
        let mut works = Vec::new();
        for step in steps {
            match self.take(&api, observed, step).await {
                Ok(work) => works.extend(work),
                Err(Refusal::Again(error)) => return Err(error),
                Err(Refusal::Cannot(reason)) => return Ok(Deployed::Failed(reason)),
            }
        }
        Ok(Deployed::Works(works))
    }

    /// Takes one step; returns the work as it then is, unless it is gone.
    async fn take(
        &self,
        api: &Api<ManifestWork>,
        observed: &Observed,
        step: Step,
    ) -> Result<Option<ManifestWork>, Refusal> {
        let cache = &observed.served.works;
        let work = match step {
            Step::Keep(work) => return Ok(Some(ManifestWork::clone(&work))),
            Step::Delete(work) => {
                write::delete(api, &*work).await?;
                info!(work = %ObjectKey::of(&*work), "deleted a work that is empty");
                return Ok(None);
            }
            Step::Update { old, new } => write::patch(api, &*old, &*new).await?.unwrap_or(*new),
            Step::Create(new) => match write::create(api, &*new).await {
                Ok(created) => created,
                Err(error) if error.is_conflict() => return Err(taken(api, &new, error).await),
                Err(error) => return Err(error.into()),
            },
        };
        info!(work = %ObjectKey::of(&work), manifests = work.spec.workload.manifests.len(), "wrote a work");
        cache.learn(work.clone());
        Ok(Some(work))
    }
}

/// Why a step was not taken.
enum Refusal {
    /// Somebody else wrote first: decide again.
    Again(Error),
    /// The hub does not let us.
    Cannot(String),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        match error.class() {
            Class::Conflict => Self::Again(error),
            Class::Invalid | Class::Transient => {
                Self::Cannot(format!("The add-on's manager could not write a work: {}.", chain(&error)))
            }
        }
    }
}

/// There is a work of that name: ours, which the watch has not brought yet, or somebody else's.
async fn taken(api: &Api<ManifestWork>, new: &ManifestWork, exists: Error) -> Refusal {
    let is_ours = |work: &ManifestWork| work.labels().get(labels::ADDON_NAME) == new.labels().get(labels::ADDON_NAME);
    match write::get(api, &new.name_any()).await {
        Ok(Some(work)) if !is_ours(&work) => Refusal::Cannot(format!(
            "ManifestWork {} is there already, without label {} of this add-on, so it belongs to somebody else. Delete \
             it, or add the label to have it overwritten.",
            ObjectKey::of(&work),
            labels::ADDON_NAME
        )),
        _ => Refusal::Again(exists),
    }
}

fn finding(outcome: Result<(), PermissionError>) -> Result<Finding, Error> {
    match outcome {
        Ok(()) => Ok(granted()),
        Err(PermissionError::Api(error)) if error.is_conflict() => Err(error),
        Err(error @ PermissionError::SubjectNotReady) => {
            let message = format!("The agent gets its rights on the hub later: {error}.");
            Ok(Finding::is_false(REGISTRATION_APPLIED, PERMISSION_CONFIG_PENDING, message))
        }
        Err(error) => {
            let message = format!("The agent's rights on the hub could not be set up: {}.", chain(&error));
            Ok(failed(message))
        }
    }
}

fn granted() -> Finding {
    let message = "The agent's identity on the hub and its rights are set up.";
    Finding::is_true(REGISTRATION_APPLIED, SET_PERMISSION_APPLIED, message)
}

fn not_needed() -> Finding {
    let message = "The add-on's agent needs no identity on the hub.";
    Finding::is_true(REGISTRATION_APPLIED, NIL_REGISTRATION, message)
}

fn failed(message: String) -> Finding {
    Finding::is_false(REGISTRATION_APPLIED, SET_PERMISSION_FAILED, message)
}
