//! Approves the renewal of agents' certificates, so that only the first one needs an admin.
//!
//! A certificate request → [`identity::renewal`] (is it a cluster's own, for the very identity that asks?) → a
//! SubjectAccessReview (may that identity renew?) → approval. Whatever does not pass is left untouched, for an admin or
//! another approver: a request is never denied here.

mod identity;

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::{
    authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
    certificates::v1::{CertificateSigningRequest, CertificateSigningRequestCondition},
};
use kube::{
    Api, ResourceExt as _,
    api::{Patch, PatchParams},
};
use ocm_api::{
    authorization::{CLIENT_CERTIFICATES, MANAGED_CLUSTERS, REGISTER_GROUP, RENEW},
    conditions::{csr::APPROVED, status},
    reasons::csr::AUTO_APPROVED,
    signers,
};
use ocm_runtime::{Cache, Change, Controller, ControllerBuilder, ResultExt as _, write};
use serde_json::{Value, json};
use tracing::{debug, info};

use crate::{
    caches,
    context::HubContext,
    error::{Error, Result},
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

    async fn may_renew(&self, request: &CertificateSigningRequest) -> Result<bool> {
        let review = write::create(&Api::all(self.hub.client.clone()), &review(request)).await?;
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
            let is_pending = !matches!(change, Change::Deleted(_)) && !identity::is_decided(change.object());
            is_pending.then(|| change.object().name_any())
        });
    }

    async fn observe(&self, key: &String) -> Result<Option<Observed>> {
        let Some(request) = self.requests.named(key) else { return Ok(None) };
        if let Err(reason) = identity::renewal(&request, signers::KUBE_API_SERVER_CLIENT) {
            debug!(%reason, "certificate request is left alone");
            return Ok(None);
        }
        let may_renew = self.may_renew(&request).await?;
        Ok(Some(Observed { request, may_renew }))
    }

    fn plan(observed: &Observed, _: Timestamp) -> Option<Value> {
        observed.may_renew.then(|| approval(&observed.request))
    }

    async fn apply(&self, observed: &Observed, plan: Option<Value>) -> Result<()> {
        let Some(patch) = plan else {
            debug!("certificate request is left alone: its cluster may not renew certificates");
            return Ok(());
        };
        let api: Api<CertificateSigningRequest> = Api::all(self.hub.client.clone());
        let name = observed.request.name_any();
        let approved = api.patch_approval(&name, &PatchParams::default(), &Patch::Merge(&patch)).await;
        let noun = || write::describe(observed.request.as_ref());
        self.requests.record_write(approved.while_trying_to("approve", noun)?);
        info!(user = observed.request.spec.username, "approved the renewal of a certificate");
        Ok(())
    }
}

/// Asks whether whoever made the request may renew certificates.
fn review(request: &CertificateSigningRequest) -> SubjectAccessReview {
    let spec = &request.spec;
    SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: spec.username.clone(),
            uid: spec.uid.clone(),
            groups: spec.groups.clone(),
            extra: spec.extra.clone(),
            resource_attributes: Some(ResourceAttributes {
                group: Some(REGISTER_GROUP.into()),
                resource: Some(MANAGED_CLUSTERS.into()),
                subresource: Some(CLIENT_CERTIFICATES.into()),
                verb: Some(RENEW.into()),
                ..ResourceAttributes::default()
            }),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    }
}

/// A merge patch that adds condition Approved to the request as it was read, and to no other.
fn approval(request: &CertificateSigningRequest) -> Value {
    let mut conditions = request.status.clone().and_then(|status| status.conditions).unwrap_or_default();
    conditions.push(CertificateSigningRequestCondition {
        type_: APPROVED.into(),
        status: status::TRUE.into(),
        reason: Some(AUTO_APPROVED.into()),
        message: Some(MESSAGE.into()),
        ..CertificateSigningRequestCondition::default()
    });
    let meta = &request.metadata;
    json!({
        "metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version},
        "status": {"conditions": conditions},
    })
}

#[cfg(test)]
mod tests;
