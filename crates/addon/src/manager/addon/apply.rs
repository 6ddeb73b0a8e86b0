//! Writing what was planned: rights on the hub, then works.

use std::time::Duration;

use kube::{Api, ResourceExt as _};
use ocm_api::{
    addon::v1alpha1::{ManagedClusterAddOn, RegistrationConfig},
    labels,
    reasons::addon::SET_PERMISSION_FAILED,
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

/// How long at most until what failed is tried again.
const RETRY: Duration = Duration::from_secs(60);

/// What came of a plan.
#[derive(Debug, Default)]
pub(crate) struct Applied {
    /// Condition `RegistrationApplied`; `None` to leave it as it is.
    pub(super) registration: Option<NewCondition>,
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
    /// They are not yet as they should be: this is waited for.
    Waiting(String),
    /// These are all there are, and as they should be.
    Works(Vec<ManifestWork>),
}

impl Applied {
    /// When to look again without a change.
    pub(super) fn next(&self) -> Requeue {
        let rights_failed =
            self.registration.as_ref().is_some_and(|condition| condition.reason == SET_PERMISSION_FAILED);
        if rights_failed || matches!(self.deployed, Deployed::Failed(_)) {
            return Requeue::BackOffWithin(RETRY);
        }
        let is_served = self.registration.is_some() || !matches!(self.deployed, Deployed::Nothing);
        if is_served { Requeue::After(RESYNC) } else { Requeue::OnChange }
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
            Registering::NotNeeded { former } => {
                applied.registration = Some(self.revoke(observed).await?);
                applied.registrations = (former > 0).then(Vec::new);
            }
            Registering::Refused(reason) => applied.registration = Some(permissions::failed(reason)),
            Registering::As(desired) => {
                applied.registration = Some(self.grant(observed, &desired).await?);
                applied.registrations = Some(desired.configs);
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

    async fn deploy(&self, observed: &Observed, steps: Vec<Step>) -> Result<Deployed, Error> {
        let api: Api<ManifestWork> = Api::namespaced(self.client.clone(), &observed.key.namespace);
        let leaving =
            steps.iter().find_map(|step| if let Step::Wait(work) = step { Some(waiting(work)) } else { None });
        let (mut works, mut failure) = (Vec::new(), None);
        for step in steps {
            match self.take(&api, observed, step).await {
                Ok(work) => works.extend(work),
                Err(Refusal::Again(error)) => return Err(error),
                // The other works are written all the same.
                Err(Refusal::Cannot(reason)) => _ = failure.get_or_insert(reason),
            }
        }
        let done = || leaving.map_or(Deployed::Works(works), Deployed::Waiting);
        Ok(failure.map_or_else(done, Deployed::Failed))
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
            Class::Invalid | Class::Refused | Class::Transient => {
                Self::Cannot(format!("The add-on's manager could not write a work: {}.", chain(&error)))
            }
        }
    }
}

fn waiting(work: &ManifestWork) -> String {
    format!(
        "ManifestWork {} is being deleted. What it holds is brought to the cluster again when it is gone, for which the \
         cluster's agent has to remove it there first.",
        ObjectKey::of(work)
    )
}

/// There is a work of the name of a new one. It may be ours, when the watch has not brought it yet or cannot, since
/// somebody has taken our label away: then it becomes what the new one is to be.
async fn recover(api: &Api<ManifestWork>, new: &ManifestWork, exists: Error) -> Result<ManifestWork, Refusal> {
    let old = match write::get(api, &new.name_any()).await? {
        Some(old) if old.labels().get(labels::ADDON_NAME) != new.labels().get(labels::ADDON_NAME) => old,
        _ => return Err(Refusal::Again(exists)),
    };
    let owners = new.owner_references();
    if !old.owner_references().iter().any(|owner| owners.iter().any(|own| own.uid == owner.uid)) {
        return Err(Refusal::Cannot(format!(
            "ManifestWork {} is there already, without label {} of this add-on, so it belongs to somebody else. Delete \
             it, or add the label to have it overwritten.",
            ObjectKey::of(&old),
            labels::ADDON_NAME
        )));
    }
    let mut ours = old.clone();
    ours.labels_mut().extend(new.labels().clone());
    ours.spec = new.spec.clone();
    Ok(write::patch(api, &old, &ours).await?.unwrap_or(ours))
}
