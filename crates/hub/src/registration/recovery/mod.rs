//! Lets agents back in whose certificate has expired, without an administrator, within a policy that is off by default.
//!
//! An agent whose certificate has expired falls back to its bootstrap kubeconfig. Its request then carries a proof: the
//! former certificate and a signature with its key ([`ocm_api::recovery`]). The hub approves the request if the [`policy`]
//! names the requester and everything else holds that [`decision`] checks; what it does not approve waits for an
//! administrator as without a policy, and an event on the ManagedCluster says why.
//!
//! ```text
//!  request ──> proof? ──> screen: policy, acceptance ──> read: authorities, namespace, right to renew ──> decide
//!                                                          namespace <── recovery recorded, then approved <──┘
//! ```
//!
//! # Threats
//!
//! - *Someone with a bootstrap token* sees all requests, creates any, and chooses their labels and annotations. They need the
//!   key of a certificate of that very agent, so a token alone recovers nothing. A copy of an agent's request has another
//!   name, which the signature covers, and the certificate for it would be for a key that only the agent has.
//! - *Someone with an expired certificate and its key*, from a backup or a discarded disk, also needs a bootstrap
//!   identity that the policy names. For them the policy extends the life of the certificate: this is why it is off by
//!   default, and bounded in time and number.
//! - *The agent of a former cluster of the same name*: its certificate is older than the ManagedCluster, and is refused.
//! - *An agent that was shut out*: its cluster must be accepted and must not be deleted, and its identity must have the right
//!   to renew certificates, now.
//! - *Someone who may edit the cluster on the hub*, as agents may, cannot reset the count: it is in an annotation of the cluster's
//!   namespace, which the hub writes and agents cannot.
//! - *A crash* between recording and approving costs no recovery: the record names the request, which is approved when the
//!   hub considers it again, and is not counted twice.

mod decision;
#[cfg(fuzzing)]
pub mod fuzzing;
mod policy;
mod proof;
mod record;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use jiff::Timestamp;
use k8s_openapi::api::{
    certificates::v1::CertificateSigningRequest,
    core::v1::{ConfigMap, Namespace},
};
use kube::{Api, ResourceExt as _};
use ocm_api::{cluster::v1::ManagedCluster, reasons::csr::RECOVERED};
use ocm_runtime::{
    Cache, Change, Controller, ControllerBuilder, Requeue, error::chain, events::NewEvent, informer::View,
    pki::parse_request, write,
};
use tracing::{info, warn};

pub use self::policy::RecoveryPolicy;
use self::{
    decision::{Candidate, Facts, Grant, Refusal, decide},
    proof::Proof,
};
use crate::{
    caches::{self, cluster_of},
    context::HubContext,
    error::{Error, Result},
    registration::{
        accepted::{accepted_now, requests_to_reconsider},
        requester::{Purpose, is_decided, renewal},
    },
    requester::Requester,
};

/// Where Kubernetes publishes the certificate authorities of client certificates. The Role
/// `extension-apiserver-authentication-reader`, which comes with Kubernetes, grants the right to read it.
const AUTHENTICATION_NAMESPACE: &str = "kube-system";
const AUTHENTICATION_CONFIG_MAP: &str = "extension-apiserver-authentication";
const CLIENT_CA_KEY: &str = "client-ca-file";

/// Reasons of the events.
const EVENT_RECOVERED: &str = "CertificateRecovered";
const EVENT_REFUSED: &str = "CertificateRecoveryRefused";

/// See the module.
#[derive(Debug)]
pub(crate) struct RecoveryController {
    hub: HubContext,
    requests: Cache<CertificateSigningRequest>,
    /// The cluster of each request with a proof that is not decided on.
    pending: View<String>,
    clusters: Cache<ManagedCluster>,
    /// The refusals that were reported, by request.
    reported: Mutex<BTreeMap<String, String>>,
}

impl RecoveryController {
    pub(crate) fn new(hub: &HubContext) -> Self {
        let (requests, clusters) = (caches::requests(&hub.informers), caches::clusters(&hub.informers));
        let pending = requests.view(|request| cluster_of(request).filter(|_| is_open(request)));
        Self { requests, pending, clusters, hub: hub.clone(), reported: Mutex::default() }
    }

    /// What a request with a proof asks for; `None` if it is not one for an agent of the cluster in its label, or if the hub
    /// approves it for another reason.
    fn facts(&self, request: &Arc<CertificateSigningRequest>) -> Option<Facts> {
        let driver = self.hub.drivers.of_signer(&request.spec.signer_name)?;
        let requester = driver.requester(request);
        if driver.may_bootstrap(&requester.user) {
            return None;
        }
        let Ok(Purpose::Bootstrap { cluster }) = requester.purpose(request, true) else { return None };
        let subject = parse_request(&request.spec.request.0).ok()?;
        let policy = self.hub.config.recovery.clone();
        Some(Facts {
            policy,
            cluster,
            requester,
            subject,
            candidate: Err(Refusal::NotAccepted),
            request: request.clone(),
        })
    }

    /// Checks what is in memory before anything is read.
    fn screen(&self, facts: &Facts) -> Result<Proof, Refusal> {
        let proof = Proof::of(&facts.request).ok_or(Refusal::NoProof)??;
        if !facts.policy.names(&facts.requester) {
            return Err(Refusal::NotNamed(facts.requester.user.clone()));
        }
        Ok(proof)
    }

    async fn candidate(&self, facts: &Facts) -> Result<Result<Candidate, Refusal>> {
        let proof = match self.screen(facts) {
            Ok(proof) => proof,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let Some(cluster) = accepted_now(&self.hub, &self.clusters, &facts.cluster).await? else {
            return Ok(Err(Refusal::NotAccepted));
        };
        let namespaces: Api<Namespace> = Api::all(self.hub.client.clone());
        Ok(Ok(Candidate {
            proof,
            cluster,
            authorities: self.authorities().await?,
            namespace: write::get(&namespaces, &facts.cluster).await?,
            may_renew: identity(facts).may(&self.hub.client, renewal()).await?,
        }))
    }

    /// The certificate authorities of client certificates, PEM; empty if the API server trusts none.
    async fn authorities(&self) -> Result<String> {
        let api: Api<ConfigMap> = Api::namespaced(self.hub.client.clone(), AUTHENTICATION_NAMESPACE);
        let published = write::get(&api, AUTHENTICATION_CONFIG_MAP).await.map_err(explain)?.and_then(|map| map.data);
        Ok(published.and_then(|mut data| data.remove(CLIENT_CA_KEY)).unwrap_or_default())
    }

    /// Records the recovery, then approves the request.
    async fn recover(&self, facts: &Facts, grant: &Grant) -> Result<()> {
        if let Some((old, new)) = &grant.record {
            write::patch(&Api::<Namespace>::all(self.hub.client.clone()), old, new).await?;
        }
        let api: Api<CertificateSigningRequest> = Api::all(self.hub.client.clone());
        let approval = write::approval(&facts.request, RECOVERED, &grant.message);
        self.requests.record_write(write::approve(&api, &facts.request, &approval).await?);
        let Facts { cluster, request, .. } = facts;
        info!(cluster, request = request.name_any(), certificate = grant.fingerprint, "{}", grant.message);
        self.record_event(cluster, "Normal", EVENT_RECOVERED, grant.message.clone()).await;
        Ok(())
    }

    /// Logs a refusal, and records an event if the cluster exists: once for each request.
    async fn refuse(&self, facts: &Facts, refusal: &Refusal) {
        let Facts { cluster, request, .. } = facts;
        let (name, note) = (request.name_any(), refusal.note(cluster, &request.name_any()));
        if !self.is_news(&name, &note) {
            return;
        }
        warn!(cluster, request = name, "{note}");
        self.record_event(cluster, "Warning", EVENT_REFUSED, note).await;
    }

    fn is_news(&self, request: &str, note: &str) -> bool {
        let open = self.pending.read(|all| all.keys().map(|key| key.name.clone()).collect::<Vec<_>>());
        let mut reported = self.reported();
        reported.retain(|request, _| open.contains(request));
        reported.insert(request.to_owned(), note.to_owned()).as_deref() != Some(note)
    }

    fn reported(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.reported.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn record_event(&self, cluster: &str, type_: &'static str, reason: &'static str, note: String) {
        let Some(object) = self.clusters.named(cluster) else { return };
        if let Err(error) = self.hub.recorder.record(cluster, &*object, NewEvent { type_, reason, note }).await {
            warn!(cluster, error = %chain(&error), "failed to record an event");
        }
    }
}

fn explain(error: ocm_runtime::Error) -> Error {
    if error.is_denied() { Error::MayNotVerify(error) } else { error.into() }
}

/// The identity that the agent had.
fn identity(facts: &Facts) -> Requester {
    const AUTHENTICATED: &str = "system:authenticated";
    let groups = facts.subject.organizations.iter().cloned().chain([AUTHENTICATED.to_owned()]);
    Requester { user: facts.subject.common_name.clone(), groups: Some(groups.collect()), ..Requester::default() }
}

/// Whether a request has a proof, and nobody has decided on it.
fn is_open(request: &CertificateSigningRequest) -> bool {
    Proof::is_in(request) && !is_decided(request)
}

impl Controller for RecoveryController {
    const NAME: &'static str = "certificate-recovery";
    type Key = String;
    type Observed = Facts;
    type Plan = Result<Grant, Refusal>;
    type Applied = Requeue;
    type Error = Error;

    fn setup(&self, builder: &mut ControllerBuilder<'_, String>) {
        builder.watches(&self.requests, |change| {
            let is_open = !matches!(change, Change::Deleted(_)) && is_open(change.object());
            is_open.then(|| change.object().name_any())
        });
        let pending = self.pending.clone();
        builder.watches(&self.clusters, move |change| requests_to_reconsider(&pending, change));
    }

    async fn observe(&self, key: &String) -> Result<Option<Facts>> {
        let request = self.requests.named(key).filter(|request| is_open(request));
        let Some(facts) = request.and_then(|request| self.facts(&request)) else { return Ok(None) };
        let candidate = self.candidate(&facts).await?;
        Ok(Some(Facts { candidate, ..facts }))
    }

    fn plan(observed: &Facts, now: Timestamp) -> Result<Grant, Refusal> {
        decide(observed, now)
    }

    async fn apply(&self, observed: &Facts, plan: Result<Grant, Refusal>) -> Result<Requeue> {
        match plan {
            Ok(grant) => self.recover(observed, &grant).await.map(|()| Requeue::OnChange),
            Err(refusal) => {
                self.refuse(observed, &refusal).await;
                Ok(refusal.requeue())
            }
        }
    }

    async fn report(&self, _: &Facts, applied: Requeue, _: Timestamp) -> Result<Requeue> {
        Ok(applied)
    }
}

#[cfg(test)]
mod tests;
