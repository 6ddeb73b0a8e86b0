//! What is said about the certificate, and where.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{Api, Client};
use ocm_api::{
    addon::v1alpha1::ManagedClusterAddOn,
    cluster::v1::ManagedCluster,
    conditions,
    reasons::cluster::{CLIENT_CERTIFICATE_UPDATE_FAILED, CLIENT_CERTIFICATE_UPDATED},
};
use ocm_runtime::{
    Cache, Error, ObjectKey, conditions as set,
    conditions::NewCondition,
    error::{chain, found},
    informer::Watchable,
    pki::Bundle,
    write::{self, Writable},
};

use super::{
    CertificateError,
    outcomes::Outcomes,
    plan::{Cause, Refusal},
    wanted::Wanted,
};

const ROTATED: &str = conditions::cluster::CERTIFICATE_ROTATED;

/// Where the certificate's fate is reported.
#[derive(Clone, Debug)]
pub(crate) enum Reporting {
    /// Nowhere: before it has its first certificate, the agent has no right to.
    Nobody,
    /// On the ManagedCluster.
    Cluster(Cache<ManagedCluster>),
    /// On the ManagedClusterAddOn, in one condition for all certificates of the add-on.
    AddOn(Cache<ManagedClusterAddOn>, Outcomes),
}

impl Reporting {
    /// Takes in what came of the certificate.
    pub(super) fn learn(&self, wanted: &Wanted, finding: &NewCondition) {
        if let Self::AddOn(_, outcomes) = self {
            outcomes.learn(&wanted.secret, finding.clone());
        }
    }

    /// Takes in that the certificate is well; answers with what is left to be said of it, as after a former process was
    /// killed between saving the certificate and saying so. Of the agent's own there is nothing: its first one is from a
    /// time when it could not report.
    pub(super) fn found_well(&self, wanted: &Wanted, finding: NewCondition) -> Option<NewCondition> {
        let Self::AddOn(cache, outcomes) = self else { return None };
        let is_first = outcomes.learn_first(&wanted.secret, &finding);
        (is_first && is_in_doubt(cache, &addon_key(wanted))).then_some(finding)
    }

    /// Says it there; says whether nothing is left to be said.
    pub(super) async fn write(
        &self,
        hub: &Client,
        wanted: &Wanted,
        finding: NewCondition,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let cluster = wanted.cluster.as_str();
        match self {
            Self::Nobody => Ok(true),
            Self::Cluster(cache) => {
                set_condition(&Api::all(hub.clone()), cache, &ObjectKey::new("", cluster), finding, now).await
            }
            Self::AddOn(cache, outcomes) => {
                let finding = outcomes.failure().unwrap_or(finding);
                let addons = Api::namespaced(hub.clone(), cluster);
                set_condition(&addons, cache, &addon_key(wanted), finding, now).await
            }
        }
    }
}

fn addon_key(wanted: &Wanted) -> ObjectKey {
    ObjectKey::new(wanted.cluster.as_str(), wanted.addon.as_deref().unwrap_or_default())
}

/// Whether there is an add-on whose condition does not say that its certificates are well.
pub(crate) fn is_in_doubt(addons: &Cache<ManagedClusterAddOn>, key: &ObjectKey) -> bool {
    let says_well = |addon: &ManagedClusterAddOn| {
        addon.status.as_ref().is_some_and(|status| set::is_true(&status.conditions, ROTATED))
    };
    addons.get(key).is_some_and(|addon| !says_well(&addon))
}

/// A kind with conditions in its status.
pub(crate) trait Conditioned: Writable + Watchable {
    /// The conditions, of a status that is made when there is none.
    fn conditions_mut(&mut self) -> &mut Vec<Condition>;
}

impl Conditioned for ManagedCluster {
    fn conditions_mut(&mut self) -> &mut Vec<Condition> {
        &mut self.status.get_or_insert_default().conditions
    }
}

impl Conditioned for ManagedClusterAddOn {
    fn conditions_mut(&mut self) -> &mut Vec<Condition> {
        &mut self.status.get_or_insert_default().conditions
    }
}

/// Sets a condition of an object, with a write only where it says something else. An object that is gone is fine;
/// `false` while it is not known whether there is one.
pub(crate) async fn set_condition<K: Conditioned>(
    api: &Api<K>,
    cache: &Cache<K>,
    key: &ObjectKey,
    finding: NewCondition,
    now: Timestamp,
) -> Result<bool, Error> {
    let Some(object) = cache.get(key) else { return Ok(cache.is_synced()) };
    let mut new = K::clone(&object);
    set::set(new.conditions_mut(), finding, None, now);
    if let Some(patched) = found(write::patch_status(api, &*object, &new).await)?.flatten() {
        cache.record_write(patched);
    }
    Ok(true)
}

/// What the certificate is called in messages.
fn subject_of(wanted: &Wanted) -> String {
    match &wanted.addon {
        Some(addon) => format!("client certificate of add-on {addon} for signer {}", wanted.signer),
        None => "agent's client certificate".into(),
    }
}

pub(super) fn rotated(wanted: &Wanted, bundle: &Bundle) -> NewCondition {
    let (from, to) = (bundle.not_before(), bundle.not_after());
    let message = format!("The {} is new: it holds from {from} to {to}", subject_of(wanted));
    NewCondition::is_true(ROTATED, CLIENT_CERTIFICATE_UPDATED, message)
}

/// No certificate, or no new one.
pub(crate) fn failed(message: String) -> NewCondition {
    NewCondition::is_false(ROTATED, CLIENT_CERTIFICATE_UPDATE_FAILED, message)
}

pub(super) fn came_to_nothing(wanted: &Wanted, cause: &Cause) -> NewCondition {
    failed(format!("Failed to renew the {}: {cause}; the agent asks again", subject_of(wanted)))
}

pub(super) fn refused(wanted: &Wanted, refusal: &Refusal) -> NewCondition {
    failed(format!("No {}: {refusal}. Delete the request on the hub, and the agent asks again", subject_of(wanted)))
}

pub(super) fn create_failed(wanted: &Wanted, error: &CertificateError) -> NewCondition {
    failed(format!("Failed to ask for the {}: {}; the agent tries again", subject_of(wanted), chain(error)))
}

pub(super) fn save_failed(wanted: &Wanted, error: &CertificateError) -> NewCondition {
    let next = match error {
        CertificateError::Api(error) if error.is_not_found() => "create the namespace, and the agent tries again",
        _ => "the agent tries again",
    };
    let (what, secret) = (subject_of(wanted), &wanted.secret);
    failed(format!("Failed to keep the {what} in secret {secret}: {}; {next}", chain(error)))
}

pub(super) fn halted(wanted: &Wanted) -> NewCondition {
    let whose = wanted.addon.as_ref().map_or("this cluster".into(), |addon| format!("add-on {addon}"));
    failed(format!(
        "The agent makes no more certificate signing requests, since the hub already holds too many of {whose}: approve \
         the newest or delete them"
    ))
}
