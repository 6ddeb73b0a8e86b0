//! The certificate signing request on the hub, and its outcome.

use k8s_openapi::{
    ByteString,
    api::certificates::v1::{
        CertificateSigningRequest, CertificateSigningRequestCondition, CertificateSigningRequestSpec,
    },
};
use kube::{Api, Client, api::ObjectMeta};
use ocm_api::{conditions, labels, recovery::SIGNATURE_ANNOTATION, signers};
use ocm_runtime::{
    Cache, Informers,
    informer::{View, WatchFilter},
    pki::{PrivateKey, RequestError},
};

use super::desired::{DesiredCertificate, party};
use crate::registration::list_one;

/// The request for the desired certificate.
pub(super) fn request(
    desired: &DesiredCertificate,
    key: &PrivateKey,
) -> Result<CertificateSigningRequest, RequestError> {
    let request = key.request_with_names(&desired.subject, &desired.dns_names())?;
    Ok(CertificateSigningRequest {
        metadata: ObjectMeta {
            generate_name: Some(desired.generate_name()),
            labels: Some(desired.labels()),
            ..ObjectMeta::default()
        },
        spec: CertificateSigningRequestSpec {
            request: ByteString(request.into_bytes()),
            signer_name: desired.signer.clone(),
            usages: Some(signers::CLIENT_USAGES.map(str::to_owned).to_vec()),
            expiration_seconds: desired.expiration_seconds,
            ..CertificateSigningRequestSpec::default()
        },
        status: None,
    })
}

/// The outcome of a request.
#[derive(Debug, PartialEq)]
pub(super) enum Answer<'a> {
    NotYet,
    /// Approved, and neither signed nor refused by the signer.
    Unsigned,
    /// Denied, or approved but not signed: final until the request is deleted.
    No(&'a CertificateSigningRequestCondition),
    Issued(&'a [u8]),
}

pub(super) fn answer(request: &CertificateSigningRequest) -> Answer<'_> {
    let Some(status) = &request.status else { return Answer::NotYet };
    let condition = |type_: &str| status.conditions.iter().flatten().find(|condition| condition.type_ == type_);
    if let Some(no) = condition(conditions::csr::DENIED).or_else(|| condition(conditions::csr::FAILED)) {
        return Answer::No(no);
    }
    if condition(conditions::csr::APPROVED).is_none() {
        return Answer::NotYet;
    }
    match &status.certificate {
        Some(certificate) if !certificate.0.is_empty() => Answer::Issued(&certificate.0),
        _ => Answer::Unsigned,
    }
}

pub(super) fn is_unsigned(request: &CertificateSigningRequest) -> bool {
    answer(request) == Answer::Unsigned
}

/// Reason and message of an outcome.
pub(super) fn said(condition: &CertificateSigningRequestCondition) -> String {
    let given = [&condition.reason, &condition.message].map(|text| text.as_deref().unwrap_or_default());
    let given = given.into_iter().filter(|text| !text.is_empty());
    given.collect::<Vec<_>>().join(": ")
}

/// Whether a request contains a proof by the former certificate.
pub(super) fn has_proof(request: &CertificateSigningRequest) -> bool {
    request.metadata.annotations.as_ref().is_some_and(|annotations| annotations.contains_key(SIGNATURE_ANNOTATION))
}

/// The requests of a cluster and its add-ons on the hub. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Requests {
    /// The agent on the hub.
    pub(crate) hub: Client,
    pub(super) cache: Cache<CertificateSigningRequest>,
    /// The add-on of each request.
    parties: View<Option<String>>,
}

impl Requests {
    /// The requests of `cluster`.
    pub(crate) fn of(hub: &Informers, cluster: &str) -> Self {
        let cache = hub.all(WatchFilter::labelled(format!("{}={cluster}", labels::CLUSTER_NAME)));
        let parties = cache.view(|request| Some(party(request).map(str::to_owned)));
        Self { hub: hub.client().clone(), cache, parties }
    }

    /// Waits until they have been read.
    pub(crate) async fn synced(&self) {
        self.cache.synced().await;
    }

    /// Lists one, to check that the agent may.
    pub(crate) async fn check_right(&self) -> Result<(), ocm_runtime::Error> {
        list_one(&self.api()).await
    }

    pub(super) fn api(&self) -> Api<CertificateSigningRequest> {
        Api::all(self.hub.clone())
    }

    /// How many requests the hub has of the same cluster or add-on.
    pub(super) fn count(&self, desired: &DesiredCertificate) -> usize {
        self.parties.read(|parties| parties.values().filter(|party| **party == desired.addon).count())
    }
}
