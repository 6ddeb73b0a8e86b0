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
    conditions::Finding,
    error::{chain, found},
    watch::Watchable,
    write::{self, Writable},
};

use super::{
    CertificateError,
    plan::{Cause, Credentials, Refusal},
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
    /// On the ManagedClusterAddOn.
    AddOn(Cache<ManagedClusterAddOn>),
}

impl Reporting {
    /// Says it there; says whether nothing is left to be said.
    pub(super) async fn write(
        &self,
        hub: &Client,
        wanted: &Wanted,
        finding: Finding,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let cluster = wanted.cluster.as_str();
        match self {
            Self::Nobody => Ok(true),
            Self::Cluster(cache) => {
                set_condition(&Api::all(hub.clone()), cache, &ObjectKey::new("", cluster), finding, now).await
            }
            Self::AddOn(cache) => {
                let key = ObjectKey::new(cluster, wanted.addon.as_deref().unwrap_or_default());
                set_condition(&Api::namespaced(hub.clone(), cluster), cache, &key, finding, now).await
            }
        }
    }
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
    finding: Finding,
    now: Timestamp,
) -> Result<bool, Error> {
    let Some(object) = cache.get(key) else { return Ok(cache.is_synced()) };
    let mut new = K::clone(&object);
    set::set(new.conditions_mut(), finding, None, now);
    if let Some(patched) = found(write::patch_status(api, &*object, &new).await)?.flatten() {
        cache.learn(patched);
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

pub(super) fn rotated(wanted: &Wanted, credentials: &Credentials) -> Finding {
    let (from, to) = (credentials.bundle.not_before(), credentials.bundle.not_after());
    let message = format!("The {} is new: it holds from {from} to {to}", subject_of(wanted));
    Finding::is_true(ROTATED, CLIENT_CERTIFICATE_UPDATED, message)
}

/// No certificate, or no new one.
pub(crate) fn failed(message: String) -> Finding {
    Finding::is_false(ROTATED, CLIENT_CERTIFICATE_UPDATE_FAILED, message)
}

pub(super) fn came_to_nothing(wanted: &Wanted, cause: &Cause) -> Finding {
    failed(format!("Failed to renew the {}: {cause}; the agent asks again", subject_of(wanted)))
}

pub(super) fn refused(wanted: &Wanted, refusal: &Refusal) -> Finding {
    failed(format!("No {}: {refusal}. Delete the request on the hub, and the agent asks again", subject_of(wanted)))
}

pub(super) fn create_failed(wanted: &Wanted, error: &CertificateError) -> Finding {
    failed(format!("Failed to ask for the {}: {}; the agent tries again", subject_of(wanted), chain(error)))
}

pub(super) fn save_failed(wanted: &Wanted, error: &CertificateError) -> Finding {
    let next = match error {
        CertificateError::Api(error) if error.is_not_found() => "create the namespace, and the agent tries again",
        _ => "the agent tries again",
    };
    let (what, secret) = (subject_of(wanted), &wanted.secret);
    failed(format!("Failed to keep the {what} in secret {secret}: {}; {next}", chain(error)))
}

pub(super) fn halted(wanted: &Wanted) -> Finding {
    let whose = wanted.addon.as_ref().map_or("this cluster".into(), |addon| format!("add-on {addon}"));
    failed(format!(
        "The agent makes no more certificate signing requests, since the hub already holds too many of {whose}: approve \
         the newest or delete them"
    ))
}
