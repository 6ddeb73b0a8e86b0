//! Whether those who made a certificate request may have the identity they ask for.
//!
//! This decides who gets a certificate without an administrator, so it is strict: every rule must hold, and what cannot be
//! read does not pass. The label names the cluster, and anybody may write a label, so the subject must agree with it. The
//! requester must be the user that the certificate is for, or one that may bootstrap agents. The
//! [driver](super::driver) knows who made the request, and who may bootstrap.

use k8s_openapi::api::{authorization::v1::ResourceAttributes, certificates::v1::CertificateSigningRequest};
use ocm_api::{
    authorization::{CLIENT_CERTIFICATES, MANAGED_CLUSTERS, REGISTER_GROUP, RENEW},
    conditions::csr::{APPROVED, DENIED},
    identities::{NotAnAgent, agent_of},
};
use ocm_runtime::pki::{RequestError, parse_request};

use crate::{caches::cluster_of, requester::Requester};

/// What a request is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// An agent renews its own certificate.
    Renewal,
    /// A user who may bootstrap agents asks for the certificate of an agent of this cluster.
    Bootstrap {
        /// The cluster's name.
        cluster: String,
    },
}

/// Why a request is not approved by the hub.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unapproved {
    #[error("it has no label with the name of a cluster")]
    NoCluster,
    #[error(transparent)]
    Unreadable(#[from] RequestError),
    #[error(transparent)]
    NotAnAgent(#[from] NotAnAgent),
    #[error(
        "{0:?} asks for a certificate of somebody else; the first certificate of an agent needs the approval of an \
         administrator"
    )]
    NotByItself(String),
}

/// Whether a request has been approved or denied.
pub(crate) fn is_decided(request: &CertificateSigningRequest) -> bool {
    let conditions = request.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.map(|condition| condition.type_.as_str()).any(|type_| type_ == APPROVED || type_ == DENIED)
}

impl Requester {
    /// What the request is for, if it asks for the identity of an agent of the cluster in its label, and for no more, and the
    /// requester has that identity or may bootstrap agents.
    pub(crate) fn purpose(
        &self,
        request: &CertificateSigningRequest,
        may_bootstrap: bool,
    ) -> Result<Purpose, Unapproved> {
        let cluster = cluster_of(request).ok_or(Unapproved::NoCluster)?;
        let subject = parse_request(&request.spec.request.0)?;
        agent_of(&cluster, &subject.common_name, &subject.organizations)?;
        if self.user == subject.common_name {
            return Ok(Purpose::Renewal);
        }
        may_bootstrap
            .then_some(Purpose::Bootstrap { cluster })
            .ok_or_else(|| Unapproved::NotByItself(self.user.clone()))
    }
}

/// The right to renew certificates.
pub(crate) fn renewal() -> ResourceAttributes {
    ResourceAttributes {
        group: Some(REGISTER_GROUP.into()),
        resource: Some(MANAGED_CLUSTERS.into()),
        subresource: Some(CLIENT_CERTIFICATES.into()),
        verb: Some(RENEW.into()),
        ..ResourceAttributes::default()
    }
}
