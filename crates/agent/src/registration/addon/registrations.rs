//! Starts and stops one credential controller per registration of an add-on.
//!
//! The secret of a registration is deleted when the registration is removed or changed, and when the add-on has been deleted.
//! While an add-on is being deleted nothing changes, since its agent may have to clean up on the hub. A registration that is
//! removed while the agent is not running leaves its secret behind, as in OCM: a secret does not record its owner.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, api::ObjectMeta};
use ocm_api::addon::v1alpha1::ManagedClusterAddOn;
use ocm_runtime::{
    Cache, Change, Class, Classified, Context, Controller, ControllerBuilder, ObjectKey, Requeue,
    conditions::NewCondition,
    error::{all, found},
    write,
};
use tracing::{info, info_span};

use super::{
    HostClusters, Settings,
    credentials::{CredentialSet, Started},
    target::{Credential, Desired, Refusals, Target},
    token::AddOnToken,
};
use crate::registration::certificate::{Certificate, Reporter, Requests, lacks_condition, set_condition};

/// An error while an add-on's credentials are set up.
#[derive(Debug, thiserror::Error)]
pub(super) enum RegistrationError {
    /// A request failed.
    #[error(transparent)]
    Api(#[from] ocm_runtime::Error),
    /// The add-on is not in the cache but on the hub: its credentials are not deleted.
    #[error(
        "ManagedClusterAddOn {0} is missing in the agent's cache but still exists on the hub: its credentials are kept"
    )]
    NotGone(ObjectKey),
    /// The hub's CRD drops the registration driver.
    #[error(
        "the hub drops status.kubeClientDriver of ManagedClusterAddOn {0}, so the add-on gets no credentials: bring the \
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

/// Starts and stops credential controllers.
pub(super) struct Registrations {
    context: Context,
    requests: Requests,
    addons: Cache<ManagedClusterAddOn>,
    hosts: HostClusters,
    settings: Arc<Settings>,
    credentials: CredentialSet,
}

/// The input of `plan`.
pub(super) struct Observed {
    key: ObjectKey,
    addon: Option<Arc<ManagedClusterAddOn>>,
    desired: Desired,
    started: Vec<Started>,
}

/// What to do about an add-on.
#[derive(Debug, PartialEq)]
pub(super) enum Plan {
    Nothing,
    /// Set the registration driver in its status.
    SetDriver,
    Change(Changes),
}

/// First stop these and delete their secrets, then start those.
#[derive(Debug, PartialEq)]
pub(super) struct Changes {
    stop: Vec<Target>,
    start: Vec<Target>,
    /// Why registrations get no credentials.
    refused: Refusals,
}

impl Registrations {
    pub(super) fn new(
        context: &Context,
        requests: Requests,
        addons: Cache<ManagedClusterAddOn>,
        hosts: HostClusters,
        settings: Arc<Settings>,
    ) -> Self {
        Self { context: context.clone(), requests, addons, hosts, settings, credentials: CredentialSet::default() }
    }

    fn addons_on_hub(&self) -> Api<ManagedClusterAddOn> {
        Api::namespaced(self.requests.hub.clone(), &self.settings.cluster)
    }

    async fn set_driver(&self, addon: &ManagedClusterAddOn) -> Result<(), RegistrationError> {
        let new = self.settings.with_driver(addon);
        let Some(patched) = found(write::patch_status(&self.addons_on_hub(), addon, &new).await)?.flatten() else {
            return Ok(());
        };
        let is_dropped = !self.settings.has_driver(&patched);
        self.addons.record_write(patched);
        if is_dropped { Err(RegistrationError::DriverDropped(ObjectKey::of(addon))) } else { Ok(()) }
    }

    /// Credentials are deleted only after a live read: the cache also lacks objects that it cannot parse.
    async fn check_deleted(&self, key: &ObjectKey) -> Result<(), RegistrationError> {
        match write::get(&self.addons_on_hub(), &key.name).await? {
            Some(_) => Err(RegistrationError::NotGone(key.clone())),
            None => Ok(()),
        }
    }

    async fn change(&self, observed: &Observed, change: Changes) -> Result<(), RegistrationError> {
        let key = &observed.key;
        if observed.addon.is_none() && !change.stop.is_empty() {
            self.check_deleted(key).await?;
        }
        self.credentials.refuse(key, change.refused);
        let mut results = Vec::new();
        let mut undeleted = Vec::new();
        for target in change.stop {
            let stopped = self.stop(key, &target).await;
            undeleted.extend(stopped.is_err().then(|| target.secret().clone()));
            results.push(stopped);
        }
        // A registration waits until the secret of its predecessor is deleted.
        for target in change.start.into_iter().filter(|target| !undeleted.contains(target.secret())) {
            self.start(key, target);
        }
        all(results)
    }

    /// A stopped credential stays recorded until its secret is deleted.
    async fn stop(&self, key: &ObjectKey, target: &Target) -> Result<(), RegistrationError> {
        if let Some(context) = self.credentials.mark_removed(key, target) {
            context.stop().await;
        }
        let secret = target.secret();
        let secrets = Api::namespaced(self.hosts.client(target.host).clone(), &secret.namespace);
        write::delete(&secrets, &named(secret)).await?;
        info!(addon = key.name, %secret, "deleted the secret of a removed registration");
        self.credentials.forget(key, target);
        Ok(())
    }

    fn start(&self, key: &ObjectKey, target: Target) {
        let (context, host, credential) = (self.context.child(), target.host, target.credential.clone());
        let outcomes = self.credentials.start(key, target, context.clone());
        info_span!("addon", name = key.name).in_scope(|| {
            let keeper = self.hosts.informers(host).part(context.clone());
            let (requests, addons) = (self.requests.clone(), self.addons.clone());
            match credential {
                Credential::Certificate(certificate) => {
                    let reporter = Reporter::AddOn(addons, outcomes);
                    context.run(Certificate::new(requests, &keeper, certificate, reporter), 1);
                }
                Credential::Token(token) => {
                    context.run(AddOnToken::new(requests.hub, addons, &keeper, token, outcomes), 1);
                }
            }
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
                Change::Updated { old, new } => settings.desired(old) != settings.desired(new),
                Change::Added(_) | Change::Deleted(_) => true,
            };
            matters.then(|| ObjectKey::of(change.object().as_ref()))
        });
    }

    async fn observe(&self, key: &ObjectKey) -> Result<Option<Observed>, RegistrationError> {
        let addon = self.addons.get(key);
        let nothing = || Desired::Credentials { targets: Vec::new(), refused: Refusals::default() };
        let desired = addon.as_ref().map_or_else(nothing, |addon| self.settings.desired(addon));
        Ok(Some(Observed { key: key.clone(), addon, desired, started: self.credentials.started(key) }))
    }

    fn plan(observed: &Observed, _: Timestamp) -> Plan {
        match &observed.desired {
            // After a restart: credentials of the previous process are renewed as well.
            Desired::Unchanged { targets } if observed.started.is_empty() => changes(&[], targets, Refusals::default()),
            Desired::Unchanged { .. } => Plan::Nothing,
            Desired::Driver => Plan::SetDriver,
            Desired::Credentials { targets, refused } => changes(&observed.started, targets, refused.clone()),
        }
    }

    async fn apply(&self, observed: &Observed, plan: Plan) -> Result<(), RegistrationError> {
        match (plan, &observed.addon) {
            (Plan::SetDriver, Some(addon)) => self.set_driver(addon).await,
            (Plan::Change(changes), _) => self.change(observed, changes).await,
            (Plan::Nothing | Plan::SetDriver, _) => Ok(()),
        }
    }

    /// Reports a failure of one of the credentials, and its end.
    async fn report(&self, observed: &Observed, (): (), now: Timestamp) -> Result<Requeue, RegistrationError> {
        let key = &observed.key;
        let is_new = |condition: &NewCondition| {
            condition.status != "True" || lacks_condition(&self.addons, key, condition.type_)
        };
        let mut results = Vec::new();
        for condition in self.credentials.conditions(key).into_iter().filter(is_new) {
            let written = set_condition(&self.addons_on_hub(), &self.addons, key, condition, now).await;
            results.push(written.map(|_| ()));
        }
        all(results)?;
        Ok(Requeue::OnChange)
    }
}

fn changes(started: &[Started], targets: &[Target], refused: Refusals) -> Plan {
    let fits = |one: &&Started| one.desired && targets.contains(&one.target);
    let (stay, stop): (Vec<_>, Vec<_>) = started.iter().partition(fits);
    let start = targets.iter().filter(|target| !stay.iter().any(|one| one.target == **target));
    let (start, stop) = (start.cloned().collect(), stop.into_iter().map(|one| one.target.clone()).collect());
    Plan::Change(Changes { stop, start, refused })
}

#[cfg(test)]
pub(super) mod tests;
