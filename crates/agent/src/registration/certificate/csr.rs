//! The request on the hub, what it is answered, and what is said about it.

use k8s_openapi::{
    ByteString,
    api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestSpec},
};
use kube::api::ObjectMeta;
use ocm_api::{
    components, conditions, labels,
    reasons::cluster::{CLIENT_CERTIFICATE_UPDATE_FAILED, CLIENT_CERTIFICATE_UPDATED},
    signers,
};
use ocm_runtime::{
    conditions::Finding,
    error::chain,
    pki::{PrivateKey, RequestError},
};

use super::{
    CertificateError,
    plan::{Cause, Credentials, Wanted},
};

const ROTATED: &str = conditions::cluster::CERTIFICATE_ROTATED;

/// The request for what is wanted.
pub(super) fn request(wanted: &Wanted, key: &PrivateKey) -> Result<CertificateSigningRequest, RequestError> {
    let cluster = &wanted.names.cluster;
    Ok(CertificateSigningRequest {
        metadata: ObjectMeta {
            generate_name: Some(components::cluster_csr_generate_name(cluster)),
            labels: Some([(labels::CLUSTER_NAME.to_owned(), cluster.clone())].into()),
            ..ObjectMeta::default()
        },
        spec: CertificateSigningRequestSpec {
            request: ByteString(key.request(&wanted.names.subject())?.into_bytes()),
            signer_name: signers::KUBE_API_SERVER_CLIENT.into(),
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
    /// Denied: it stays so until somebody deletes the request.
    No,
    Issued(&'a [u8]),
}

pub(super) fn answer(request: &CertificateSigningRequest) -> Answer<'_> {
    let Some(status) = &request.status else { return Answer::NotYet };
    let is = |type_: &str| status.conditions.iter().flatten().any(|condition| condition.type_ == type_);
    match &status.certificate {
        _ if is(conditions::csr::DENIED) => Answer::No,
        Some(certificate) if is(conditions::csr::APPROVED) && !certificate.0.is_empty() => {
            Answer::Issued(&certificate.0)
        }
        _ => Answer::NotYet,
    }
}

/// Whether a request is one of the cluster's agents, not of an add-on.
pub(super) fn is_clusters_own(request: &CertificateSigningRequest, prefix: &str) -> bool {
    counts(request) && request.metadata.name.as_deref().is_some_and(|name| name.starts_with(prefix))
}

/// Whether a request counts towards the limit: those of add-ons do not.
pub(super) fn counts(request: &CertificateSigningRequest) -> bool {
    request.metadata.labels.as_ref().is_none_or(|labels| !labels.contains_key(labels::ADDON_NAME))
}

pub(super) fn rotated(credentials: &Credentials) -> Finding {
    let (from, to) = (credentials.bundle.not_before(), credentials.bundle.not_after());
    let message = format!("The agent's client certificate is new: it holds from {from} to {to}");
    Finding::is_true(ROTATED, CLIENT_CERTIFICATE_UPDATED, message)
}

pub(super) fn came_to_nothing(cause: &Cause) -> Finding {
    let message = format!("Failed to renew the agent's client certificate: {cause}; the agent asks again");
    Finding::is_false(ROTATED, CLIENT_CERTIFICATE_UPDATE_FAILED, message)
}

pub(super) fn create_failed(error: &CertificateError) -> Finding {
    let message = format!("Failed to create a certificate signing request: {}", chain(error));
    Finding::is_false(ROTATED, CLIENT_CERTIFICATE_UPDATE_FAILED, message)
}

pub(super) fn halted() -> Finding {
    let message = "The agent makes no more certificate signing requests, since the hub already holds too many of this \
                   cluster: approve the newest or delete them";
    Finding::is_false(ROTATED, CLIENT_CERTIFICATE_UPDATE_FAILED, message)
}
