//! Whether a certificate request is an agent's renewal of its own certificate.
//!
//! This decides who gets a certificate without an admin looking, so it is strict: every rule must hold, and what cannot
//! be read does not pass. The label chooses the cluster, and anybody may write a label, so the subject must agree with
//! it, and the requester, whom the API server has authenticated, must be the very user the certificate is for.

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use ocm_api::{
    conditions::csr::{APPROVED, DENIED},
    identities::{NotAnAgent, agent_of},
};
use ocm_runtime::pki::{RequestError, parse_request};

use crate::caches::cluster_of;

/// Why a request is none of the hub's business.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotARenewal {
    #[error("it is approved or denied already")]
    Decided,
    #[error("it carries no cluster's name as a label")]
    NoCluster,
    #[error("it is for signer {0}")]
    OtherSigner(String),
    #[error(transparent)]
    Unreadable(#[from] RequestError),
    #[error(transparent)]
    NotAnAgent(#[from] NotAnAgent),
    #[error(
        "{0:?} asks for a certificate of somebody else; the first certificate of an agent needs an admin's approval"
    )]
    NotByItself(String),
}

/// Whether somebody has decided about the request.
pub(super) fn is_decided(request: &CertificateSigningRequest) -> bool {
    let conditions = request.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.map(|condition| condition.type_.as_str()).any(|type_| type_ == APPROVED || type_ == DENIED)
}

/// Checks that a request is made by an agent of a cluster, for the identity that agent has.
pub(super) fn renewal(request: &CertificateSigningRequest, signer: &str) -> Result<(), NotARenewal> {
    if is_decided(request) {
        return Err(NotARenewal::Decided);
    }
    let cluster = cluster_of(request).ok_or(NotARenewal::NoCluster)?;
    if request.spec.signer_name != signer {
        return Err(NotARenewal::OtherSigner(request.spec.signer_name.clone()));
    }
    let subject = parse_request(&request.spec.request.0)?;
    agent_of(&cluster, &subject.common_name, &subject.organizations)?;
    let requester = request.spec.username.as_deref().unwrap_or_default();
    if requester != subject.common_name {
        return Err(NotARenewal::NotByItself(requester.into()));
    }
    Ok(())
}
