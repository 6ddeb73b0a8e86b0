//! Assesses a certificate signing request: who made it, for which agent, and its state. Pure.

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use ocm_api::{conditions, identities, labels, namespaces, rbac, signers};
use ocm_runtime::pki;

/// Prefix of the user names of bootstrap tokens.
const BOOTSTRAP_TOKEN_USER_PREFIX: &str = "system:bootstrap:";
/// The account under which the gRPC server forwards requests of agents.
const GRPC_SERVER_SERVICE_ACCOUNT: &str = "grpc-server-sa";
const FAILED: &str = "Failed";

/// The state of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Pending,
    Approved,
    Denied,
    Failed,
}

/// The first request of an agent, or what is wrong with it.
#[derive(Debug, PartialEq)]
pub(super) enum Assessment {
    /// A bootstrapping agent of the cluster requests the certificate that such an agent may have.
    Candidate {
        /// Common name of the certificate: the agent.
        requester: String,
        /// The state of the request.
        state: State,
    },
    /// Not for `accept` to decide: requests of add-ons, and renewals, which the hub approves.
    NotOurs,
    /// The problem, as a clause about the request.
    Unfit(String),
}

/// Assesses a request with the label of a cluster. Everyone who may create requests can set that label, so everything else
/// is checked: who made the request, and that the certificate is one of an agent of this cluster and no more.
pub(super) fn assess(csr: &CertificateSigningRequest, cluster: &str) -> Assessment {
    let of_addon = csr.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(labels::ADDON_NAME));
    if of_addon {
        return Assessment::NotOurs;
    }
    let user = csr.spec.username.as_deref().unwrap_or_default();
    if user.starts_with(identities::PREFIX) {
        return Assessment::NotOurs;
    }
    match bootstrap_identity(csr, user).and_then(|()| agent(csr, cluster)) {
        Ok(requester) => Assessment::Candidate { requester, state: state(csr) },
        Err(problem) if state(csr) == State::Pending => Assessment::Unfit(problem),
        Err(_) => Assessment::NotOurs,
    }
}

fn state(csr: &CertificateSigningRequest) -> State {
    let has = |type_: &str| {
        let conditions = csr.status.as_ref().and_then(|status| status.conditions.as_ref());
        conditions.is_some_and(|conditions| conditions.iter().any(|condition| condition.type_ == type_))
    };
    if has(conditions::csr::DENIED) {
        State::Denied
    } else if has(FAILED) {
        State::Failed
    } else if has(conditions::csr::APPROVED) {
        State::Approved
    } else {
        State::Pending
    }
}

fn bootstrap_identity(csr: &CertificateSigningRequest, user: &str) -> Result<(), String> {
    let known_user = user.starts_with(BOOTSTRAP_TOKEN_USER_PREFIX)
        || user == identities::service_account_user(namespaces::OPERATOR, rbac::BOOTSTRAP_SERVICE_ACCOUNT)
        || user == identities::service_account_user(namespaces::HUB, GRPC_SERVER_SERVICE_ACCOUNT);
    let known_group = |group: &String| {
        group == identities::BOOTSTRAP_GROUP
            || group == &format!("system:serviceaccounts:{}", namespaces::OPERATOR)
            || group == &format!("system:serviceaccounts:{}", namespaces::HUB)
    };
    if known_user && csr.spec.groups.iter().flatten().any(known_group) {
        Ok(())
    } else {
        Err(format!("its user {user} is not an identity that agents bootstrap with"))
    }
}

/// The agent's name, if the certificate is one that an agent of this cluster may have.
fn agent(csr: &CertificateSigningRequest, cluster: &str) -> Result<String, String> {
    let signer = csr.spec.signer_name.as_str();
    if signer != signers::KUBE_API_SERVER_CLIENT && signer != signers::GRPC {
        return Err(format!("it is for signer {signer}, which does not sign for agents"));
    }
    let subject = pki::parse_request(&csr.spec.request.0).map_err(|error| error.to_string())?;
    identities::agent_of(cluster, &subject.common_name, &subject.organizations).map_err(|error| error.to_string())?;
    Ok(subject.common_name)
}

#[cfg(test)]
#[path = "csr_tests.rs"]
pub(super) mod tests;
