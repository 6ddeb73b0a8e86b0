//! Approves the renewal of agents' certificates, so that only the first one needs an admin.
//!
//! A certificate request → its [`Requester`] (an agent that asks for the very identity it has?) → a
//! SubjectAccessReview (may that identity renew?) → approval. A request that does not pass is left untouched, for an admin or
//! another approver: a request is never denied here.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::{Api, ResourceExt as _};
use ocm_api::reasons::csr::AUTO_APPROVED;
use ocm_runtime::{Cache, Change, Controller, ControllerBuilder, write};
use serde_json::Value;
use tracing::{debug, info};

use crate::{
    caches,
    context::HubContext,
    error::{Error, Result},
    registration::requester::{Requester, is_decided},
};

const MESSAGE: &str = "The hub approved this renewal: the agent asked for the identity it already has, and its cluster \
                       may renew certificates.";

/// See the module.
#[derive(Debug)]
pub(crate) struct CsrController {
    hub: HubContext,
    requests: Cache<CertificateSigningRequest>,
}

/// A request that is a renewal by its own identity, and whether that identity may renew.
#[derive(Debug)]
pub(crate) struct Observed {
    request: Arc<CertificateSigningRequest>,
    may_renew: bool,
}

impl CsrController {
    pub(crate) fn new(hub: &HubContext) -> Self {
        Self { requests: caches::requests(&hub.informers), hub: hub.clone() }
    }

    /// The requester, if the request is a renewal of their own certificate.
    fn renewal(&self, request: &CertificateSigningRequest) -> Option<Requester> {
        let requester = self.hub.drivers.of_signer(&request.spec.signer_name)?.requester(request);
        match requester.renews(request) {
            Ok(()) => Some(requester),
            Err(reason) => {
                debug!(%reason, "certificate request is left alone");
                None
            }
        }
    }

    async fn may_renew(&self, requester: &Requester) -> Result<bool> {
        let review = write::create(&Api::all(self.hub.client.clone()), &requester.review()).await?;
        Ok(review.status.is_some_and(|status| status.allowed && !status.denied.unwrap_or(false)))
    }
}

impl Controller for CsrController {
    const NAME: &'static str = "csr-approval";
    type Key = String;
    type Observed = Observed;
    type Plan = Option<Value>;
    type Applied = ();
    type Error = Error;

    fn setup(&self, builder: &mut ControllerBuilder<'_, String>) {
        builder.watches(&self.requests, |change| {
            let is_pending = !matches!(change, Change::Deleted(_)) && !is_decided(change.object());
            is_pending.then(|| change.object().name_any())
        });
    }

    async fn observe(&self, key: &String) -> Result<Option<Observed>> {
        let request = self.requests.named(key).filter(|request| !is_decided(request));
        let renewal = request.and_then(|request| Some((self.renewal(&request)?, request)));
        let Some((requester, request)) = renewal else { return Ok(None) };
        let may_renew = self.may_renew(&requester).await?;
        Ok(Some(Observed { request, may_renew }))
    }

    fn plan(observed: &Observed, _: Timestamp) -> Option<Value> {
        observed.may_renew.then(|| write::approval(&observed.request, AUTO_APPROVED, MESSAGE))
    }

    async fn apply(&self, observed: &Observed, plan: Option<Value>) -> Result<()> {
        let Some(patch) = plan else {
            debug!("certificate request is left alone: its cluster may not renew certificates");
            return Ok(());
        };
        let api: Api<CertificateSigningRequest> = Api::all(self.hub.client.clone());
        self.requests.record_write(write::approve(&api, &observed.request, &patch).await?);
        info!(user = observed.request.spec.username, "approved the renewal of a certificate");
        Ok(())
    }
}

#[cfg(test)]
mod tests;
