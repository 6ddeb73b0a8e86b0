//! Starts and stops one certificate per registration of an add-on.
//!
//! A registration that goes, or changes in any way, takes its secret with it; so does an add-on once it is gone. While an
//! add-on is being deleted everything stays, since its agent may have to clean up on the hub.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, api::ObjectMeta};
use ocm_api::addon::v1alpha1::{KubeClientDriver, ManagedClusterAddOn};
use ocm_runtime::{
    Cache, Change, Class, Classified, Context, Controller, Next, ObjectKey, Watches, Wiring, error::found, write,
};
use tracing::{info, info_span};

use super::{
    Settings, Sites,
    target::{Due, Target},
};
use crate::registration::certificate::{self, Certificate, Reporting, Requests};

/// How often a refusal is told again: a certificate that is renewed may have said otherwise since.
const RETELL: Duration = Duration::from_secs(300);

/// What can go wrong while an add-on's certificates are set up.
#[derive(Debug, thiserror::Error)]
pub(super) enum RegistrationError {
    /// An API server did not do what it was asked to.
    #[error(transparent)]
    Api(#[from] ocm_runtime::Error),
    /// The watch has lost the add-on, which is no reason to take its credentials away.
    #[error("the agent's watch has lost ManagedClusterAddOn {0}, which is still on the hub: its credentials stay")]
    NotGone(ObjectKey),
}

impl Classified for RegistrationError {
    fn class(&self) -> Class {
        match self {
            Self::Api(error) => error.class(),
            Self::NotGone(_) => Class::Transient,
        }
    }
}

/// Starts and stops certificates.
pub(super) struct Registrations {
    context: Context,
    requests: Requests,
    addons: Cache<ManagedClusterAddOn>,
    sites: Sites,
    settings: Arc<Settings>,
    running: Mutex<HashMap<ObjectKey, Vec<Running>>>,
}

/// A certificate that is looked after.
struct Running {
    target: Target,
    context: Context,
}

/// A certificate that was started.
#[derive(Clone, Debug)]
pub(super) struct Started {
    target: Target,
    /// `false` when it is stopped, and only its secret is still to be deleted.
    runs: bool,
}

/// What a decision depends on.
pub(super) struct Observed {
    key: ObjectKey,
    addon: Option<Arc<ManagedClusterAddOn>>,
    due: Due,
    started: Vec<Started>,
}

/// What to do about an add-on.
#[derive(Debug, PartialEq)]
pub(super) enum Plan {
    Nothing,
    /// Say in its status how its agent is to log in.
    SetDriver,
    /// First stop these and delete their secrets, then start those.
    Change {
        stop: Vec<Target>,
        start: Vec<Target>,
        refused: Option<String>,
    },
}

impl Registrations {
    pub(super) fn new(
        context: &Context,
        requests: Requests,
        addons: Cache<ManagedClusterAddOn>,
        sites: Sites,
        settings: Arc<Settings>,
    ) -> Self {
        Self { context: context.clone(), requests, addons, sites, settings, running: Mutex::default() }
    }

    fn running(&self) -> MutexGuard<'_, HashMap<ObjectKey, Vec<Running>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn started(&self, key: &ObjectKey) -> Vec<Started> {
        let running = self.running();
        let all = running.get(key).into_iter().flatten();
        all.map(|one| Started { target: one.target.clone(), runs: !one.context.is_ended() }).collect()
    }

    fn addons_on_hub(&self) -> Api<ManagedClusterAddOn> {
        Api::namespaced(self.requests.hub.clone(), &self.settings.cluster)
    }

    async fn set_driver(&self, addon: &ManagedClusterAddOn) -> Result<(), RegistrationError> {
        let mut new = addon.clone();
        new.status.get_or_insert_default().kube_client_driver = Some(KubeClientDriver::Csr);
        if let Some(patched) = found(write::patch_status(&self.addons_on_hub(), addon, &new).await)?.flatten() {
            self.addons.learn(patched);
        }
        Ok(())
    }

    /// Credentials are only taken away when the hub says so itself: a watch also leaves out what it cannot read.
    async fn make_sure_it_is_gone(&self, key: &ObjectKey) -> Result<(), RegistrationError> {
        match write::get(&self.addons_on_hub(), &key.name).await? {
            Some(_) => Err(RegistrationError::NotGone(key.clone())),
            None => Ok(()),
        }
    }

    async fn change(
        &self,
        observed: &Observed,
        stop: Vec<Target>,
        start: Vec<Target>,
    ) -> Result<(), RegistrationError> {
        if observed.addon.is_none() && !stop.is_empty() {
            self.make_sure_it_is_gone(&observed.key).await?;
        }
        for target in stop {
            self.stop(&observed.key, &target).await?;
        }
        for target in start {
            self.start(&observed.key, target);
        }
        Ok(())
    }

    /// What is stopped is forgotten only when its secret is deleted.
    async fn stop(&self, key: &ObjectKey, target: &Target) -> Result<(), RegistrationError> {
        let of_target = |one: &&Running| one.target == *target;
        let context = self.running().get(key).into_iter().flatten().find(of_target).map(|one| one.context.clone());
        if let Some(context) = context {
            context.stop().await;
        }
        let secret = &target.wanted.secret;
        let secrets = Api::namespaced(self.sites.client(target.site).clone(), &secret.namespace);
        write::delete(&secrets, &named(secret)).await?;
        info!(addon = key.name, %secret, "deleted the secret of a registration that is no longer there");
        let mut running = self.running();
        if let Some(all) = running.get_mut(key) {
            all.retain(|one| one.target != *target);
        }
        running.retain(|_, all| !all.is_empty());
        Ok(())
    }

    fn start(&self, key: &ObjectKey, target: Target) {
        let context = self.context.child();
        info_span!("addon", name = key.name).in_scope(|| {
            let keeper = Watches::new(self.sites.client(target.site).clone(), context.clone());
            let (wanted, reporting) = (target.wanted.clone(), Reporting::AddOn(self.addons.clone()));
            context.run(Certificate::new(self.requests.clone(), &keeper, wanted, reporting), 1);
        });
        self.running().entry(key.clone()).or_default().push(Running { target, context });
    }

    async fn refuse(&self, key: &ObjectKey, cause: String, now: Timestamp) -> Result<(), RegistrationError> {
        let finding = certificate::failed(cause);
        certificate::set_condition(&self.addons_on_hub(), &self.addons, key, finding, now).await?;
        Ok(())
    }
}

fn named(key: &ObjectKey) -> Secret {
    let metadata =
        ObjectMeta { name: Some(key.name.clone()), namespace: Some(key.namespace.clone()), ..ObjectMeta::default() };
    Secret { metadata, ..Secret::default() }
}

impl Controller for Registrations {
    const NAME: &'static str = "addon-registration";
    type Key = ObjectKey;
    type Observed = Observed;
    type Plan = Plan;
    type Applied = Option<String>;
    type Error = RegistrationError;

    fn wire(&self, wiring: &mut Wiring<'_, ObjectKey>) {
        let settings = self.settings.clone();
        wiring.on(&self.addons, move |change| {
            let matters = match change {
                Change::Updated { old, new } => settings.due(old) != settings.due(new),
                Change::Added(_) | Change::Deleted(_) => true,
            };
            matters.then(|| ObjectKey::of(change.object().as_ref()))
        });
    }

    async fn observe(&self, key: &ObjectKey) -> Result<Option<Observed>, RegistrationError> {
        let addon = self.addons.get(key);
        let nothing = || Due::Certificates { targets: Vec::new(), refused: None };
        let due = addon.as_ref().map_or_else(nothing, |addon| self.settings.due(addon));
        Ok(Some(Observed { key: key.clone(), addon, due, started: self.started(key) }))
    }

    fn plan(observed: &Observed, _: Timestamp) -> Plan {
        let (targets, refused) = match &observed.due {
            Due::Stay => return Plan::Nothing,
            Due::Driver => return Plan::SetDriver,
            Due::Certificates { targets, refused } => (targets, refused.clone()),
        };
        let fits = |one: &&Started| one.runs && targets.contains(&one.target);
        let (stay, stop): (Vec<_>, Vec<_>) = observed.started.iter().partition(fits);
        let start = targets.iter().filter(|target| !stay.iter().any(|one| one.target == **target));
        let (start, stop) = (start.cloned().collect(), stop.into_iter().map(|one| one.target.clone()).collect());
        Plan::Change { stop, start, refused }
    }

    async fn apply(&self, observed: &Observed, plan: Plan) -> Result<Option<String>, RegistrationError> {
        match (plan, &observed.addon) {
            (Plan::SetDriver, Some(addon)) => {
                self.set_driver(addon).await?;
                Ok(None)
            }
            (Plan::Change { stop, start, refused }, _) => {
                self.change(observed, stop, start).await?;
                Ok(refused)
            }
            (Plan::Nothing | Plan::SetDriver, _) => Ok(None),
        }
    }

    async fn report(
        &self,
        observed: &Observed,
        refused: Option<String>,
        now: Timestamp,
    ) -> Result<Next, RegistrationError> {
        let Some(cause) = refused else { return Ok(Next::Change) };
        self.refuse(&observed.key, cause, now).await?;
        Ok(Next::After(RETELL))
    }
}

#[cfg(test)]
mod tests;
