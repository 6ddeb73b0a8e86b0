//! Agents with a client certificate of the API server, which they ask for themselves.

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use ocm_api::signers;

use super::Driver;
use crate::registration::requester::Requester;

/// See the module.
#[derive(Debug)]
pub(crate) struct CsrDriver;

impl Driver for CsrDriver {
    fn signer(&self) -> Option<&'static str> {
        Some(signers::KUBE_API_SERVER_CLIENT)
    }

    /// Whom the API server has authenticated.
    fn requester(&self, request: &CertificateSigningRequest) -> Requester {
        let spec = &request.spec;
        Requester {
            user: spec.username.clone().unwrap_or_default(),
            uid: spec.uid.clone(),
            groups: spec.groups.clone(),
            extra: spec.extra.clone(),
        }
    }
}
