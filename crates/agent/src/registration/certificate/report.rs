//! The condition about the certificate, and where it is reported.

use jiff::Timestamp;
use k8s_openapi::{api::core::v1::Secret, apimachinery::pkg::apis::meta::v1::Condition};
use kube::{Api, Client};
use ocm_api::{
    addon::v1alpha1::ManagedClusterAddOn,
    cluster::v1::ManagedCluster,
    conditions::{self, status},
    reasons::cluster::{CLIENT_CERTIFICATE_UPDATE_FAILED, CLIENT_CERTIFICATE_UPDATED},
    secrets::KEY_TLS_CERT,
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
    desired::DesiredCertificate,
    outcomes::Outcomes,
    plan::{Cause, Refusal},
};

const ROTATED: &str = conditions::cluster::CERTIFICATE_ROTATED;

/// Where the condition about the certificate is reported.
#[derive(Clone, Debug)]
pub(crate) enum Reporter {
    /// Nowhere: before it has its first certificate, the agent has no permission.
    Disabled,
    /// On the ManagedCluster.
    Cluster(Cache<ManagedCluster>),
    /// On the ManagedClusterAddOn, in one condition for all certificates of the add-on.
    AddOn(Cache<ManagedClusterAddOn>, Outcomes),
}

impl Reporter {
    /// Records the outcome for the certificate.
    pub(super) fn record(&self, desired: &DesiredCertificate, condition: &NewCondition) {
        if let Self::AddOn(_, outcomes) = self {
            outcomes.record(&desired.secret, condition.clone());
        }
    }

    /// Records that the certificate is valid, and returns the condition if it must still be written: a previous process may
    /// have been killed after it saved the certificate. The agent's own has none until its first rotation, as in OCM.
    pub(super) fn confirm(&self, desired: &DesiredCertificate, condition: NewCondition) -> Option<NewCondition> {
        let Self::AddOn(cache, outcomes) = self else { return None };
        let is_first = outcomes.record_initial(&desired.secret, &condition);
        (is_first && lacks_condition(cache, &addon_key(desired), ROTATED)).then_some(condition)
    }

    /// Writes the condition; `false` if it must be written again.
    pub(super) async fn write(
        &self,
        hub: &Client,
        desired: &DesiredCertificate,
        condition: NewCondition,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let cluster = desired.cluster.as_str();
        match self {
            Self::Disabled => Ok(true),
            Self::Cluster(cache) => {
                set_condition(&Api::all(hub.clone()), cache, &ObjectKey::new("", cluster), condition, now).await
            }
            Self::AddOn(cache, outcomes) => {
                let condition = outcomes.failure().unwrap_or(condition);
                let addons = Api::namespaced(hub.clone(), cluster);
                set_condition(&addons, cache, &addon_key(desired), condition, now).await
            }
        }
    }
}

fn addon_key(desired: &DesiredCertificate) -> ObjectKey {
    ObjectKey::new(desired.cluster.as_str(), desired.addon.as_deref().unwrap_or_default())
}

/// Whether the add-on exists and its condition of this type is not True.
pub(crate) fn lacks_condition(addons: &Cache<ManagedClusterAddOn>, key: &ObjectKey, type_: &str) -> bool {
    let has_it = |addon: &ManagedClusterAddOn| {
        addon.status.as_ref().is_some_and(|status| set::is_true(&status.conditions, type_))
    };
    addons.get(key).is_some_and(|addon| !has_it(&addon))
}

/// A kind with conditions in its status.
pub(crate) trait HasConditions: Writable + Watchable {
    /// The conditions. Creates an empty status if there is none.
    fn conditions_mut(&mut self) -> &mut Vec<Condition>;
}

impl HasConditions for ManagedCluster {
    fn conditions_mut(&mut self) -> &mut Vec<Condition> {
        &mut self.status.get_or_insert_default().conditions
    }
}

impl HasConditions for ManagedClusterAddOn {
    fn conditions_mut(&mut self) -> &mut Vec<Condition> {
        &mut self.status.get_or_insert_default().conditions
    }
}

/// Sets a condition of an object, and writes it only if it changed. An object that was deleted is no error; `false` while the
/// cache has not synced.
pub(crate) async fn set_condition<K: HasConditions>(
    api: &Api<K>,
    cache: &Cache<K>,
    key: &ObjectKey,
    condition: NewCondition,
    now: Timestamp,
) -> Result<bool, Error> {
    let Some(object) = cache.get(key) else { return Ok(cache.is_synced()) };
    let mut new = K::clone(&object);
    set::set(new.conditions_mut(), condition, None, now);
    if let Some(patched) = found(write::patch_status(api, &*object, &new).await)?.flatten() {
        cache.record_write(patched);
    }
    Ok(true)
}

/// The certificate's name in messages.
fn subject_of(desired: &DesiredCertificate) -> String {
    match &desired.addon {
        Some(addon) => format!("client certificate of add-on {addon} for signer {}", desired.signer),
        None => "agent's client certificate".into(),
    }
}

pub(super) fn rotated(desired: &DesiredCertificate, bundle: &Bundle) -> NewCondition {
    let (from, to) = (bundle.not_before(), bundle.not_after());
    let message = format!("The {} was rotated: it is valid from {from} to {to}", subject_of(desired));
    NewCondition::is_true(ROTATED, CLIENT_CERTIFICATE_UPDATED, message)
}

/// No certificate, or no new one.
pub(crate) fn failed(message: String) -> NewCondition {
    NewCondition::is_false(ROTATED, CLIENT_CERTIFICATE_UPDATE_FAILED, message)
}

/// A failure with the time until which there is still a certificate.
pub(super) fn with_expiry(condition: NewCondition, secret: Option<&Secret>) -> NewCondition {
    let certificate = secret.and_then(|secret| secret.data.as_ref()?.get(KEY_TLS_CERT));
    let present = certificate.and_then(|pem| Bundle::parse(&pem.0).ok()).filter(|_| condition.status != status::TRUE);
    let expiry = present.map(|bundle| format!(". The present certificate is valid until {}", bundle.not_after()));
    NewCondition { message: condition.message + expiry.as_deref().unwrap_or_default(), ..condition }
}

/// The hub approves renewals by itself, so something is wrong there.
pub(super) fn overdue(desired: &DesiredCertificate, request: &str, since: Timestamp) -> NewCondition {
    failed(format!(
        "The {what} is to be renewed, and nobody has approved certificate signing request {request} since {since}. Check on the \
         hub that its controllers run, and approve the request: kubectl certificate approve {request}",
        what = subject_of(desired)
    ))
}

pub(super) fn request_failed(desired: &DesiredCertificate, cause: &Cause) -> NewCondition {
    failed(format!("Failed to renew the {}: {cause}; the agent requests it again", subject_of(desired)))
}

pub(super) fn refused(desired: &DesiredCertificate, refusal: &Refusal) -> NewCondition {
    failed(format!(
        "No {}: {refusal}. Delete the request on the hub, and the agent creates another one: kubectl delete \
         certificatesigningrequest {}",
        subject_of(desired),
        refusal.request
    ))
}

/// The hub has not approved a request that proves who the agent is, and says why only to its own administrators.
pub(super) fn unrecovered(desired: &DesiredCertificate, request: &str, since: Timestamp) -> NewCondition {
    let cluster = &desired.cluster;
    failed(format!(
        "No {}: the hub has not approved certificate signing request {request} since {since}, although it contains a proof by \
         the former certificate. The hub does not recover certificates, or its policy refuses this one; an event on the hub \
         says why: kubectl get events --namespace {cluster} --field-selector reason=CertificateRecoveryRefused. An \
         administrator of the hub approves the request with: clusteradm accept --clusters {cluster}",
        subject_of(desired)
    ))
}

pub(super) fn unsigned(desired: &DesiredCertificate, request: &str) -> NewCondition {
    failed(format!(
        "No {}: certificate signing request {request} is approved, and nothing on the hub signs it. Run a signer for {} there; \
         for Kubernetes' own signers that is kube-controller-manager with --cluster-signing-cert-file and \
         --cluster-signing-key-file. `clusteradm check hub --sign` tests it",
        subject_of(desired),
        desired.signer
    ))
}

pub(super) fn create_failed(desired: &DesiredCertificate, error: &CertificateError) -> NewCondition {
    failed(format!("Failed to request the {}: {}; the agent retries", subject_of(desired), chain(error)))
}

pub(super) fn save_failed(desired: &DesiredCertificate, error: &CertificateError) -> NewCondition {
    let next = match error {
        CertificateError::Api(error) if error.is_not_found() => "create the namespace, and the agent retries",
        _ => "the agent retries",
    };
    let (what, secret) = (subject_of(desired), &desired.secret);
    failed(format!("Failed to save the {what} in secret {secret}: {}; {next}", chain(error)))
}

pub(super) fn halted(desired: &DesiredCertificate) -> NewCondition {
    let whose = desired.addon.as_ref().map_or("this cluster".into(), |addon| format!("add-on {addon}"));
    failed(format!(
        "The agent creates no more certificate signing requests, since the hub already has too many of {whose}: approve the \
         newest or delete them"
    ))
}
