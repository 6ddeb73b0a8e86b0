//! Starts and stops one certificate per registration of an add-on.
//!
//! A registration that goes, or changes in any way, takes its secret with it; so does an add-on once it is gone. While an
//! add-on is being deleted everything stays, since its agent may have to clean up on the hub. What goes while the agent is
//! down leaves its secret behind, as with OCM: nothing about a secret says whose it was.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, api::ObjectMeta};
use ocm_api::addon::v1alpha1::{KubeClientDriver, ManagedClusterAddOn};
use ocm_runtime::{
    Cache, Change, Class, Classified, Context, Controller, ControllerBuilder, ObjectKey, Requeue,
    conditions::NewCondition, error::found, write,
};
use tracing::{info, info_span};

use super::{
    Settings, Sites,
    running::{Running, Started},
    target::{Due, Target},
};
use crate::registration::certificate::{self, Certificate, Reporting, Requests};

/// What can go wrong while an add-on's certificates are set up.
#[derive(Debug, thiserror::Error)]
pub(super) enum RegistrationError {
    /// An API server did not do what it was asked to.
    #[error(transparent)]
    Api(#[from] ocm_runtime::Error),
    /// The watch has lost the add-on, which is no reason to take its credentials away.
    #[error("the agent's watch has lost ManagedClusterAddOn {0}, which is still on the hub: its credentials stay")]
    NotGone(ObjectKey),
    /// The hub does not keep how the add-on's agent is to log in.
    #[error(
        "the hub drops status.kubeClientDriver of ManagedClusterAddOn {0}, so the add-on gets no certificate: bring the \
         CRDs of the hub up to date"
    )]
    DriverDropped(ObjectKey),
}

impl Classified for RegistrationError {
    fn class(&self) -> Class {
        match self {
            Self::Api(error) => error.class(),
            Self::NotGone(_) => Class::Transient,
            Self::DriverDropped(_) => Class::Invalid,
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
    running: Running,
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
    Change(Changes),
}

/// First stop some and delete their secrets, then start others.
#[derive(Debug, PartialEq)]
pub(super) struct Changes {
    stop: Vec<Target>,
    start: Vec<Target>,
    /// Why a registration gets no certificate.
    refused: Option<String>,
}

impl Registrations {
    pub(super) fn new(
        context: &Context,
        requests: Requests,
        addons: Cache<ManagedClusterAddOn>,
        sites: Sites,
        settings: Arc<Settings>,
    ) -> Self {
        Self { context: context.clone(), requests, addons, sites, settings, running: Running::default() }
    }

    fn addons_on_hub(&self) -> Api<ManagedClusterAddOn> {
        Api::namespaced(self.requests.hub.clone(), &self.settings.cluster)
    }

    async fn set_driver(&self, addon: &ManagedClusterAddOn) -> Result<(), RegistrationError> {
        let mut new = addon.clone();
        new.status.get_or_insert_default().kube_client_driver = Some(KubeClientDriver::Csr);
        let Some(patched) = found(write::patch_status(&self.addons_on_hub(), addon, &new).await)?.flatten() else {
            return Ok(());
        };
        let is_dropped = self.settings.due(&patched) == Due::Driver;
        self.addons.record_write(patched);
        if is_dropped { Err(RegistrationError::DriverDropped(ObjectKey::of(addon))) } else { Ok(()) }
    }

    /// Credentials are only taken away when the hub says so itself: a watch also leaves out what it cannot read.
    async fn make_sure_it_is_gone(&self, key: &ObjectKey) -> Result<(), RegistrationError> {
        match write::get(&self.addons_on_hub(), &key.name).await? {
            Some(_) => Err(RegistrationError::NotGone(key.clone())),
            None => Ok(()),
        }
    }

    async fn change(&self, observed: &Observed, change: Changes) -> Result<(), RegistrationError> {
        let key = &observed.key;
        if observed.addon.is_none() && !change.stop.is_empty() {
            self.make_sure_it_is_gone(key).await?;
        }
        self.running.refuse(key, change.refused.map(certificate::failed));
        for target in change.stop {
            self.stop(key, &target).await?;
        }
        for target in change.start {
            self.start(key, target);
        }
        Ok(())
    }

    /// What is stopped is forgotten only when its secret is deleted.
    async fn stop(&self, key: &ObjectKey, target: &Target) -> Result<(), RegistrationError> {
        if let Some(context) = self.running.unwant(key, target) {
            context.stop().await;
        }
        let secret = &target.wanted.secret;
        let secrets = Api::namespaced(self.sites.client(target.site).clone(), &secret.namespace);
        write::delete(&secrets, &named(secret)).await?;
        info!(addon = key.name, %secret, "deleted the secret of a registration that is no longer there");
        self.running.forget(key, target);
        Ok(())
    }

    fn start(&self, key: &ObjectKey, target: Target) {
        let (context, site, wanted) = (self.context.child(), target.site, target.wanted.clone());
        let outcomes = self.running.start(key, target, context.clone());
        info_span!("addon", name = key.name).in_scope(|| {
            let keeper = self.sites.watches(site).part(context.clone());
            let reporting = Reporting::AddOn(self.addons.clone(), outcomes);
            context.run(Certificate::new(self.requests.clone(), &keeper, wanted, reporting), 1);
        });
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
    type Applied = ();
    type Error = RegistrationError;

    fn setup(&self, builder: &mut ControllerBuilder<'_, ObjectKey>) {
        let settings = self.settings.clone();
        builder.watches(&self.addons, move |change| {
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
        Ok(Some(Observed { key: key.clone(), addon, due, started: self.running.started(key) }))
    }

    fn plan(observed: &Observed, _: Timestamp) -> Plan {
        match &observed.due {
            // What an agent that is new here has to take up from its predecessor.
            Due::Stay { targets } if observed.started.is_empty() => changes(&[], targets, None),
            Due::Stay { .. } => Plan::Nothing,
            Due::Driver => Plan::SetDriver,
            Due::Certificates { targets, refused } => changes(&observed.started, targets, refused.clone()),
        }
    }

    async fn apply(&self, observed: &Observed, plan: Plan) -> Result<(), RegistrationError> {
        match (plan, &observed.addon) {
            (Plan::SetDriver, Some(addon)) => self.set_driver(addon).await,
            (Plan::Change(changes), _) => self.change(observed, changes).await,
            (Plan::Nothing | Plan::SetDriver, _) => Ok(()),
        }
    }

    /// Says what went wrong with one of the certificates, and that nothing does any more.
    async fn report(&self, observed: &Observed, (): (), now: Timestamp) -> Result<Requeue, RegistrationError> {
        let key = &observed.key;
        let is_news = |verdict: &NewCondition| verdict.status != "True" || certificate::is_in_doubt(&self.addons, key);
        if let Some(verdict) = self.running.verdict(key).filter(is_news) {
            certificate::set_condition(&self.addons_on_hub(), &self.addons, key, verdict, now).await?;
        }
        Ok(Requeue::OnChange)
    }
}

fn changes(started: &[Started], targets: &[Target], refused: Option<String>) -> Plan {
    let fits = |one: &&Started| one.wanted && targets.contains(&one.target);
    let (stay, stop): (Vec<_>, Vec<_>) = started.iter().partition(fits);
    let start = targets.iter().filter(|target| !stay.iter().any(|one| one.target == **target));
    let (start, stop) = (start.cloned().collect(), stop.into_iter().map(|one| one.target.clone()).collect());
    Plan::Change(Changes { stop, start, refused })
}

#[cfg(test)]
pub(super) mod tests;
