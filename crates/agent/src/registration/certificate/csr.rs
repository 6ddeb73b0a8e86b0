//! The request on the hub, and what it is answered.

use k8s_openapi::{
    ByteString,
    api::certificates::v1::{
        CertificateSigningRequest, CertificateSigningRequestCondition, CertificateSigningRequestSpec,
    },
};
use kube::{Api, Client, api::ObjectMeta};
use ocm_api::{conditions, labels, signers};
use ocm_runtime::{
    Cache, Informers,
    informer::{View, WatchFilter},
    pki::{PrivateKey, RequestError},
};

use super::wanted::{Wanted, party};

/// The request for what is wanted.
pub(super) fn request(wanted: &Wanted, key: &PrivateKey) -> Result<CertificateSigningRequest, RequestError> {
    let request = key.request_with_names(&wanted.subject, &wanted.dns_names())?;
    Ok(CertificateSigningRequest {
        metadata: ObjectMeta {
            generate_name: Some(wanted.generate_name()),
            labels: Some(wanted.labels()),
            ..ObjectMeta::default()
        },
        spec: CertificateSigningRequestSpec {
            request: ByteString(request.into_bytes()),
            signer_name: wanted.signer.clone(),
            usages: Some(signers::CLIENT_USAGES.map(str::to_owned).to_vec()),
            expiration_seconds: wanted.expiration_seconds,
            ..CertificateSigningRequestSpec::default()
        },
        status: None,
    })
}

/// What the hub says to a request.
#[derive(Debug, PartialEq)]
pub(super) enum Answer<'a> {
    NotYet,
    /// Denied, or approved but not to be signed: it stays so until somebody deletes the request. With
    /// what was said about it.
    No(&'a str),
    Issued(&'a [u8]),
}

pub(super) fn answer(request: &CertificateSigningRequest) -> Answer<'_> {
    let Some(status) = &request.status else { return Answer::NotYet };
    let condition = |type_: &str| status.conditions.iter().flatten().find(|condition| condition.type_ == type_);
    if let Some(no) = condition(conditions::csr::DENIED).or_else(|| condition(conditions::csr::FAILED)) {
        return Answer::No(said(no));
    }
    match &status.certificate {
        Some(certificate) if condition(conditions::csr::APPROVED).is_some() && !certificate.0.is_empty() => {
            Answer::Issued(&certificate.0)
        }
        _ => Answer::NotYet,
    }
}

fn said(condition: &CertificateSigningRequestCondition) -> &str {
    condition.message.as_deref().or(condition.reason.as_deref()).unwrap_or_default()
}

/// The requests of a cluster and its add-ons on the hub. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Requests {
    /// The agent on the hub.
    pub(crate) hub: Client,
    pub(super) cache: Cache<CertificateSigningRequest>,
    /// The add-on that each is for.
    parties: View<Option<String>>,
}

impl Requests {
    /// Those of `cluster`.
    pub(crate) fn of(hub: &Informers, cluster: &str) -> Self {
        let cache = hub.all(WatchFilter::labelled(format!("{}={cluster}", labels::CLUSTER_NAME)));
        let parties = cache.view(|request| Some(party(request).map(str::to_owned)));
        Self { hub: hub.client().clone(), cache, parties }
    }

    pub(super) fn api(&self) -> Api<CertificateSigningRequest> {
        Api::all(self.hub.clone())
    }

    /// How many there are of the same party.
    pub(super) fn count(&self, wanted: &Wanted) -> usize {
        self.parties.read(|parties| parties.values().filter(|party| **party == wanted.addon).count())
    }
}
