//! Starts and stops one certificate controller per registration of an add-on.
//!
//! The secret of a registration is deleted when the registration is removed or changed, and when the add-on has been deleted.
//! While an add-on is being deleted nothing changes, since its agent may have to clean up on the hub. A registration that is
//! removed while the agent is not running leaves its secret behind, as in OCM: a secret does not record its owner.

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
    HostClusters, Settings,
    certificates::{CertificateSet, Started},
    target::{Desired, Target},
};
use crate::registration::certificate::{self, Certificate, Reporter, Requests};

/// An error while an add-on's certificates are set up.
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

/// Starts and stops certificate controllers.
pub(super) struct Registrations {
    context: Context,
    requests: Requests,
    addons: Cache<ManagedClusterAddOn>,
    hosts: HostClusters,
    settings: Arc<Settings>,
    certificates: CertificateSet,
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
    /// Why a registration gets no certificate.
    refused: Option<String>,
}

impl Registrations {
    pub(super) fn new(
        context: &Context,
        requests: Requests,
        addons: Cache<ManagedClusterAddOn>,
        hosts: HostClusters,
        settings: Arc<Settings>,
    ) -> Self {
        Self { context: context.clone(), requests, addons, hosts, settings, certificates: CertificateSet::default() }
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
        let is_dropped = self.settings.desired(&patched) == Desired::Driver;
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
        self.certificates.refuse(key, change.refused.map(certificate::failed));
        for target in change.stop {
            self.stop(key, &target).await?;
        }
        for target in change.start {
            self.start(key, target);
        }
        Ok(())
    }

    /// A stopped certificate stays recorded until its secret is deleted.
    async fn stop(&self, key: &ObjectKey, target: &Target) -> Result<(), RegistrationError> {
        if let Some(context) = self.certificates.mark_removed(key, target) {
            context.stop().await;
        }
        let secret = &target.certificate.secret;
        let secrets = Api::namespaced(self.hosts.client(target.host).clone(), &secret.namespace);
        write::delete(&secrets, &named(secret)).await?;
        info!(addon = key.name, %secret, "deleted the secret of a removed registration");
        self.certificates.forget(key, target);
        Ok(())
    }

    fn start(&self, key: &ObjectKey, target: Target) {
        let (context, host, certificate) = (self.context.child(), target.host, target.certificate.clone());
        let outcomes = self.certificates.start(key, target, context.clone());
        info_span!("addon", name = key.name).in_scope(|| {
            let keeper = self.hosts.informers(host).part(context.clone());
            let reporter = Reporter::AddOn(self.addons.clone(), outcomes);
            context.run(Certificate::new(self.requests.clone(), &keeper, certificate, reporter), 1);
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
        let nothing = || Desired::Certificates { targets: Vec::new(), refused: None };
        let desired = addon.as_ref().map_or_else(nothing, |addon| self.settings.desired(addon));
        Ok(Some(Observed { key: key.clone(), addon, desired, started: self.certificates.started(key) }))
    }

    fn plan(observed: &Observed, _: Timestamp) -> Plan {
        match &observed.desired {
            // After a restart: certificates of the previous process are renewed as well.
            Desired::Unchanged { targets } if observed.started.is_empty() => changes(&[], targets, None),
            Desired::Unchanged { .. } => Plan::Nothing,
            Desired::Driver => Plan::SetDriver,
            Desired::Certificates { targets, refused } => changes(&observed.started, targets, refused.clone()),
        }
    }

    async fn apply(&self, observed: &Observed, plan: Plan) -> Result<(), RegistrationError> {
        match (plan, &observed.addon) {
            (Plan::SetDriver, Some(addon)) => self.set_driver(addon).await,
            (Plan::Change(changes), _) => self.change(observed, changes).await,
            (Plan::Nothing | Plan::SetDriver, _) => Ok(()),
        }
    }

    /// Reports a failure of one of the certificates, and its end.
    async fn report(&self, observed: &Observed, (): (), now: Timestamp) -> Result<Requeue, RegistrationError> {
        let key = &observed.key;
        let is_new =
            |condition: &NewCondition| condition.status != "True" || certificate::needs_condition(&self.addons, key);
        if let Some(condition) = self.certificates.condition(key).filter(is_new) {
            certificate::set_condition(&self.addons_on_hub(), &self.addons, key, condition, now).await?;
        }
        Ok(Requeue::OnChange)
    }
}

fn changes(started: &[Started], targets: &[Target], refused: Option<String>) -> Plan {
    let fits = |one: &&Started| one.desired && targets.contains(&one.target);
    let (stay, stop): (Vec<_>, Vec<_>) = started.iter().partition(fits);
    let start = targets.iter().filter(|target| !stay.iter().any(|one| one.target == **target));
    let (start, stop) = (start.cloned().collect(), stop.into_iter().map(|one| one.target.clone()).collect());
    Plan::Change(Changes { stop, start, refused })
}

#[cfg(test)]
pub(super) mod tests;
