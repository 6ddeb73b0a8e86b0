//! What an author's code decides about certificate requests: [`CsrApprover`] and [`CsrSigner`].

use futures::future::BoxFuture;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use ocm_api::{addon::v1beta1::ManagedClusterAddOn, cluster::v1::ManagedCluster};

use crate::AddonError;

/// A request of a cluster's agent for one of the identities of an add-on's agent.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CertificateRequest<'a> {
    /// The cluster.
    pub cluster: &'a ManagedCluster,
    /// The add-on on that cluster.
    pub addon: &'a ManagedClusterAddOn,
    /// The request.
    pub request: &'a CertificateSigningRequest,
    /// The user who made it.
    pub requester: &'a str,
}

/// Decides whether a request is approved that asks for the right identity and comes from the right cluster. Closures from
/// a request to `bool` are approvers.
#[doc(alias = "CSRApproveCheckFunc")]
pub trait CsrApprover: Send + Sync + 'static {
    /// Whether the request is approved. If not, it is considered again later.
    fn approves<'a>(&'a self, request: &'a CertificateRequest<'a>) -> BoxFuture<'a, Result<bool, AddonError>>;
}

impl<F: Fn(&CertificateRequest<'_>) -> bool + Send + Sync + 'static> CsrApprover for F {
    fn approves<'a>(&'a self, request: &'a CertificateRequest<'a>) -> BoxFuture<'a, Result<bool, AddonError>> {
        Box::pin(async move { Ok(self(request)) })
    }
}

/// Issues certificates of a signer that is not Kubernetes' own.
#[doc(alias = "CSRSignerFunc")]
pub trait CsrSigner: Send + Sync + 'static {
    /// The certificate for an approved request, as PEM blocks, the agent's own first. Its subject should be that of the
    /// request, `spec.request`.
    fn sign<'a>(&'a self, request: &'a CertificateRequest<'a>) -> BoxFuture<'a, Result<Vec<u8>, AddonError>>;
}
