//! Whether a request with a proof is approved. Pure.

use std::{sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{
    api::{certificates::v1::CertificateSigningRequest, core::v1::Namespace},
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::ResourceExt as _;
use ocm_api::{cluster::v1::ManagedCluster, recovery::RECORD_ANNOTATION};
use ocm_runtime::{
    Requeue,
    pki::{ClientCertificate, Subject},
    write,
};

use super::{
    RecoveryPolicy,
    proof::{Proof, ProofError},
    record::{Recoveries, Recovery},
};
use crate::{caches::cluster_of, requester::Requester};

/// Signers date a certificate back by some minutes, for clocks that are slow.
const BACKDATE: SignedDuration = SignedDuration::from_mins(10);
/// How long, at most, until a request is considered again.
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);

/// A request with a proof, and what the decision depends on.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(super) policy: RecoveryPolicy,
    pub(super) cluster: String,
    pub(super) request: Arc<CertificateSigningRequest>,
    pub(super) requester: Requester,
    /// What the request asks for.
    pub(super) subject: Subject,
    pub(super) candidate: Result<Candidate, Refusal>,
}

/// What was read about a request that the policy may be for.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(super) proof: Proof,
    /// Accepted, and not being deleted.
    pub(super) cluster: ManagedCluster,
    /// The certificate authorities of client certificates, PEM.
    pub(super) authorities: String,
    pub(super) namespace: Option<Namespace>,
    /// Whether the identity that is asked for may renew certificates.
    pub(super) may_renew: bool,
}

/// A recovery.
#[derive(Debug, PartialEq)]
pub(crate) struct Grant {
    /// The cluster's namespace as read, and with the recovery recorded; `None` if it is recorded already.
    pub(super) record: Option<(Box<Namespace>, Box<Namespace>)>,
    pub(super) message: String,
    pub(super) fingerprint: String,
}

/// Why a request with a proof is left to an administrator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("it has no proof")]
    NoProof,
    #[error("{0}")]
    Proof(String),
    #[error("neither --certificate-recovery-users nor --certificate-recovery-groups names its requester {0}")]
    NotNamed(String),
    #[error("the hub does not accept the cluster, or it is being deleted")]
    NotAccepted,
    #[error("the former certificate was issued to {0}, another user or in other groups than the request asks for")]
    OtherIdentity(String),
    #[error(
        "the former certificate is from {issued}, and the ManagedCluster from {created}: it may have been issued to a former \
         cluster of that name"
    )]
    FormerCluster { issued: Timestamp, created: Timestamp },
    #[error("the former certificate expired at {expired}, longer ago than --certificate-recovery-window={hours}h")]
    TooLate { expired: Timestamp, hours: u64 },
    #[error("its agents have lost the right to renew certificates")]
    MayNotRenew,
    #[error("the cluster has no namespace yet")]
    NoNamespace,
    #[error("the annotation {RECORD_ANNOTATION} of the cluster's namespace cannot be read; remove it")]
    Record,
    #[error(
        "the cluster has had {limit} recoveries, which is --certificate-recovery-limit, and may have the next one at {next}; \
         to allow it now, remove the annotation {RECORD_ANNOTATION} of the cluster's namespace"
    )]
    TooMany { limit: usize, next: Timestamp, pause: Duration },
}

impl From<ProofError> for Refusal {
    fn from(error: ProofError) -> Self {
        Self::Proof(error.to_string())
    }
}

impl Refusal {
    /// What an administrator needs to know.
    pub(super) fn note(&self, cluster: &str, request: &str) -> String {
        format!(
            "Certificate signing request {request}, which is to recover the expired certificate of an agent of cluster \
             {cluster}, waits for an administrator: {self}. If you trust it, approve it: clusteradm accept --clusters \
             {cluster}, or kubectl certificate approve {request}"
        )
    }

    /// When the request is considered again without another change.
    pub(super) fn requeue(&self) -> Requeue {
        match self {
            Self::MayNotRenew | Self::NoNamespace | Self::Record => Requeue::BackOffSlowly,
            Self::TooMany { pause, .. } => Requeue::After(*pause),
            _ => Requeue::OnChange,
        }
    }
}

pub(super) fn decide(facts: &Facts, now: Timestamp) -> Result<Grant, Refusal> {
    let candidate = facts.candidate.as_ref().map_err(Refusal::clone)?;
    let certificate = candidate.proof.verify(&candidate.authorities, now)?;
    check_identity(&certificate, &facts.subject)?;
    check_times(&certificate, &candidate.cluster, &facts.policy, now)?;
    if !candidate.may_renew {
        return Err(Refusal::MayNotRenew);
    }
    grant(facts, candidate, &certificate, now)
}

fn check_identity(certificate: &ClientCertificate, subject: &Subject) -> Result<(), Refusal> {
    let was = certificate.subject();
    was.is_same_as(subject).then_some(()).ok_or_else(|| Refusal::OtherIdentity(was.common_name.clone()))
}

/// A certificate that is valid proves no less than one that has expired: clocks differ, and an agent also bootstraps again
/// when its bootstrap kubeconfig changes.
fn check_times(
    certificate: &ClientCertificate,
    cluster: &ManagedCluster,
    policy: &RecoveryPolicy,
    now: Timestamp,
) -> Result<(), Refusal> {
    let (issued, expired) = (certificate.not_before(), certificate.not_after());
    let created = cluster.metadata.creation_timestamp.as_ref().map_or(Timestamp::MAX, |time| time.0);
    if issued.saturating_add(BACKDATE).unwrap_or(Timestamp::MIN) < created {
        return Err(Refusal::FormerCluster { issued, created });
    }
    if expired.saturating_add(policy.window).unwrap_or(Timestamp::MIN) < now {
        return Err(Refusal::TooLate { expired, hours: policy.window.as_secs() / 3600 });
    }
    Ok(())
}

fn grant(
    facts: &Facts,
    candidate: &Candidate,
    certificate: &ClientCertificate,
    now: Timestamp,
) -> Result<Grant, Refusal> {
    let is_own = |namespace: &&Namespace| {
        cluster_of(*namespace).as_deref() == Some(&facts.cluster) && !write::is_deleting(*namespace)
    };
    let namespace = candidate.namespace.as_ref().filter(is_own).ok_or(Refusal::NoNamespace)?;
    let recoveries = Recoveries::of(namespace, now, facts.policy.window).ok_or(Refusal::Record)?;
    let uid = facts.request.uid().unwrap_or_default();
    let (count, is_recorded) = (recoveries.count(), recoveries.has(&uid));
    if !is_recorded && count >= facts.policy.limit {
        return Err(too_many(&recoveries, &facts.policy, now));
    }
    let number = if is_recorded { count } else { count + 1 };
    let record = (!is_recorded).then(|| {
        let new = recoveries.with(recovery(facts, uid, certificate, now), namespace);
        (Box::new(namespace.clone()), Box::new(new))
    });
    Ok(Grant { record, message: message(facts, certificate, number), fingerprint: certificate.fingerprint().into() })
}

fn too_many(recoveries: &Recoveries, policy: &RecoveryPolicy, now: Timestamp) -> Refusal {
    let next = recoveries.until(policy.window).unwrap_or(now);
    let pause = Duration::try_from(next.duration_since(now)).unwrap_or_default();
    let pause = pause.clamp(Duration::from_secs(1), LONGEST_PAUSE);
    Refusal::TooMany { limit: policy.limit, next, pause }
}

fn recovery(facts: &Facts, uid: String, certificate: &ClientCertificate, now: Timestamp) -> Recovery {
    Recovery {
        at: Time(now),
        request: facts.request.name_any(),
        uid,
        requester: facts.requester.user.clone(),
        certificate: certificate.fingerprint().into(),
    }
}

fn message(facts: &Facts, certificate: &ClientCertificate, number: usize) -> String {
    let Facts { policy, requester, subject, .. } = facts;
    format!(
        "The hub approved this request of {user}: it proves that it comes from {agent}, whose certificate is valid until \
         {until}. This is recovery {number} of {limit} within {hours}h.",
        user = requester.user,
        agent = subject.common_name,
        until = certificate.not_after(),
        limit = policy.limit,
        hours = policy.window.as_secs() / 3600,
    )
}
