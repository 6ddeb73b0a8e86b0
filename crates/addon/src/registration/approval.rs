//! Whether a certificate request is that of an add-on's agent, for the identity it is to have.
//!
//! This decides who gets a certificate without an administrator, so every rule must hold, and a request that cannot be read
//! is refused. Labels are not trusted: they only select the add-on and the cluster whose identity the subject must then be.
//! The requester is the user that the API server has authenticated, and must be an agent of that cluster, by its whole
//! name: an agent of `cluster10` is not one of `cluster1`.

use std::collections::BTreeSet;

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::ResourceExt as _;
use ocm_api::{annotations, components, conditions::csr, identities, labels, namespaces};
use ocm_runtime::pki::{RequestError, Subject, parse_request};

use super::Identity;

/// Why a request is left to an administrator.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("its name does not begin with {NAME_PREFIX:?}")]
    Name,
    #[error(transparent)]
    Unreadable(#[from] RequestError),
    #[error("its common name is {0:?}, which is not the user this add-on has on this cluster")]
    User(String),
    #[error("it lacks group {0:?}")]
    LacksGroup(String),
    #[error("it asks for group {0:?}, which this add-on does not have on this cluster")]
    ForeignGroup(String),
    #[error("its organizational units are {0:?}, which are not those of this add-on on this cluster")]
    OtherUnits(Vec<String>),
    #[error("{0:?}, who made it, is not an agent of this cluster")]
    Requester(String),
}

/// Prefix of the name of every request of an add-on's agent.
const NAME_PREFIX: &str = "addon";

/// A group that requests of old agents name: every user is a member.
const EVERYBODY: &str = "system:authenticated";

/// Whether somebody has decided about the request.
pub(crate) fn is_decided(request: &CertificateSigningRequest) -> bool {
    has_condition(request, csr::APPROVED) || has_condition(request, csr::DENIED)
}

/// Whether the request is approved and has no certificate yet.
pub(crate) fn is_unsigned(request: &CertificateSigningRequest) -> bool {
    let has_certificate = request.status.as_ref().is_some_and(|status| status.certificate.is_some());
    let is_refused = has_condition(request, csr::DENIED) || has_condition(request, csr::FAILED);
    has_condition(request, csr::APPROVED) && !is_refused && !has_certificate
}

fn has_condition(request: &CertificateSigningRequest, type_: &str) -> bool {
    let mut conditions = request.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.any(|condition| condition.type_ == type_)
}

/// The cluster and the add-on that a request is labelled with.
pub(crate) fn claimed(request: &CertificateSigningRequest) -> Option<(&str, &str)> {
    let label = |key| request.labels().get(key).map(String::as_str).filter(|value| !value.is_empty());
    Some((label(labels::CLUSTER_NAME)?, label(labels::ADDON_NAME)?))
}

/// Checks that a request asks for `identity`, nothing more and nothing less, and was made by an agent of `cluster`;
/// returns who made it.
pub(crate) fn check<'a>(
    request: &'a CertificateSigningRequest,
    cluster: &str,
    identity: &Identity,
) -> Result<&'a str, Refusal> {
    if !request.name_any().starts_with(NAME_PREFIX) {
        return Err(Refusal::Name);
    }
    check_subject(parse_request(&request.spec.request.0)?, identity)?;
    check_requester(request, cluster)
}

fn check_subject(subject: Subject, identity: &Identity) -> Result<(), Refusal> {
    if subject.common_name != identity.user {
        return Err(Refusal::User(subject.common_name));
    }
    if let Some(missing) = identity.groups.iter().find(|group| !subject.organizations.contains(group)) {
        return Err(Refusal::LacksGroup(missing.clone()));
    }
    let is_foreign = |group: &String| group != EVERYBODY && !identity.groups.contains(group);
    if let Some(foreign) = subject.organizations.into_iter().find(is_foreign) {
        return Err(Refusal::ForeignGroup(foreign));
    }
    let units = |units: &[String]| units.iter().cloned().collect::<BTreeSet<_>>();
    if units(&subject.organizational_units) != units(&identity.organization_units) {
        return Err(Refusal::OtherUnits(subject.organizational_units));
    }
    Ok(())
}

fn check_requester<'a>(request: &'a CertificateSigningRequest, cluster: &str) -> Result<&'a str, Refusal> {
    let requester = requester(request);
    match identities::parse_cluster_user(requester) {
        Some((of, _)) if of == cluster => Ok(requester),
        _ => Err(Refusal::Requester(requester.to_owned())),
    }
}

/// The user who made a request. The hub's gRPC server makes requests for agents, and names the agent in an annotation.
pub(crate) fn requester(request: &CertificateSigningRequest) -> &str {
    let user = request.spec.username.as_deref().unwrap_or_default();
    if user == identities::service_account_user(namespaces::HUB, components::GRPC_SERVER_ACCOUNT) {
        return request.annotations().get(annotations::CSR_USER).map(String::as_str).unwrap_or_default();
    }
    user
}

#[cfg(test)]
mod tests;
