//! Approves the certificate requests of add-ons' agents, by the rules of [`approval`].
//!
//! A request → the cluster and the add-on it is labelled with → the identity that add-on is to have there → approval.
//! A request that does not pass is left untouched, for an administrator or another approver: none is ever denied here. It
//! is considered again whenever the add-on changes on that cluster, and with exponential back-off.

mod pending;

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestCondition};
use kube::{
    Api, Client, ResourceExt as _,
    api::{Patch, PatchParams},
};
use ocm_api::{
    addon::v1alpha1::ManagedClusterAddOn,
    cluster::v1::ManagedCluster,
    conditions::{csr::APPROVED, status},
    reasons::csr::AUTO_APPROVED,
};
use ocm_runtime::{Cache, Change, Controller, ControllerBuilder, Error, ObjectKey, Requeue, ResultExt as _, write};
use serde_json::{Value, json};
use tracing::{debug, info};

use self::pending::Pending;
use super::{author, served::Served};
use crate::{
    Installation,
    agent::namespace_of,
    registration::{Request, approval},
};

const MESSAGE: &str = "The add-on's manager approved this request: it was made by an agent of the cluster, for the \
                       identity that the add-on has there.";

/// How long at most until a request that was not approved is considered again.
const RECHECK: Duration = Duration::from_secs(10 * 60);

/// See the module.
pub(crate) struct RequestController {
    client: Client,
    served: Arc<Served>,
    clusters: Cache<ManagedCluster>,
    pending: Arc<Pending>,
}

/// A request of an agent of the add-on on a known cluster.
pub(crate) struct Observed {
    request: Arc<CertificateSigningRequest>,
    addon: ObjectKey,
    /// Why it is left to an administrator, if it is.
    verdict: Result<(), String>,
}

impl RequestController {
    pub(crate) fn new(client: Client, served: Arc<Served>, clusters: Cache<ManagedCluster>) -> Self {
        Self { client, served, clusters, pending: Arc::default() }
    }

    /// Whether a request follows the rules, and the author lets it pass.
    async fn judge(
        &self,
        request: &CertificateSigningRequest,
        addon: &ManagedClusterAddOn,
        cluster: &ManagedCluster,
    ) -> Result<(), String> {
        let Some(registration) = &self.served.options.registration else {
            return Err("the add-on has no registration".to_owned());
        };
        let known = addon.status.as_ref().and_then(|status| status.namespace.clone());
        let namespace = known.unwrap_or_else(|| namespace_of(addon));
        let code = async {
            let identity = registration.identity_of(&Installation::new(cluster, addon, &namespace));
            let requester =
                approval::check(request, &cluster.name_any(), &identity).map_err(|refusal| refusal.to_string())?;
            let checked = Request { cluster, addon, request, requester };
            if registration.approves(&checked) { Ok(()) } else { Err("the add-on does not approve it".to_owned()) }
        };
        author::call(code).await.unwrap_or_else(|no_answer| Err(no_answer.to_string()))
    }
}

impl Controller for RequestController {
    const NAME: &'static str = "addon-csr-approval";
    type Key = String;
    type Observed = Observed;
    type Plan = Option<Value>;
    type Applied = ();
    type Error = Error;

    fn setup(&self, builder: &mut ControllerBuilder<'_, String>) {
        let pending = self.pending.clone();
        builder.watches(&self.served.requests, move |change| {
            pending.record(change);
            let is_pending = !matches!(change, Change::Deleted(_)) && !approval::is_decided(change.object());
            is_pending.then(|| change.object().name_any())
        });
        let pending = self.pending.clone();
        builder.watches(&self.served.addons, move |change| match change {
            Change::Added(addon) | Change::Updated { new: addon, .. } => {
                pending.of(&addon.namespace().unwrap_or_default())
            }
            Change::Deleted(_) => Vec::new(),
        });
        let pending = self.pending.clone();
        builder.watches(&self.clusters, move |change| match change {
            Change::Added(cluster) => pending.of(&cluster.name_any()),
            Change::Updated { .. } | Change::Deleted(_) => Vec::new(),
        });
    }

    async fn observe(&self, name: &String) -> Result<Option<Observed>, Error> {
        let request = self.served.requests.named(name).filter(|request| !approval::is_decided(request));
        let Some(request) = request else { return Ok(None) };
        let Some((cluster, addon)) = approval::claimed(&request) else { return Ok(None) };
        let key = ObjectKey::new(cluster, addon);
        let (Some(addon), Some(cluster)) = (self.served.addons.get(&key), self.clusters.named(cluster)) else {
            // When they appear, the request is considered again.
            debug!(%key, "certificate request is left alone: there is no such add-on");
            return Ok(None);
        };
        let verdict = self.judge(&request, &addon, &cluster).await;
        Ok(Some(Observed { request, addon: key, verdict }))
    }

    fn plan(observed: &Observed, _: Timestamp) -> Option<Value> {
        observed.verdict.is_ok().then(|| approved(&observed.request))
    }

    async fn apply(&self, observed: &Observed, plan: Option<Value>) -> Result<(), Error> {
        let Some(patch) = plan else { return Ok(()) };
        let api: Api<CertificateSigningRequest> = Api::all(self.client.clone());
        let name = observed.request.name_any();
        let written = api.patch_approval(&name, &PatchParams::default(), &Patch::Merge(&patch)).await;
        let written = written.while_trying_to("approve", || write::describe(&*observed.request))?;
        self.served.requests.record_write(written);
        info!(addon = %observed.addon, "approved a certificate request of the add-on's agent");
        Ok(())
    }

    async fn report(&self, observed: &Observed, (): (), _: Timestamp) -> Result<Requeue, Error> {
        let Err(reason) = &observed.verdict else { return Ok(Requeue::OnChange) };
        if self.pending.is_new_reason(&observed.addon.namespace, &observed.request.name_any(), reason) {
            info!(%reason, "certificate request is left to an administrator");
        }
        Ok(Requeue::BackOffWithin(RECHECK))
    }
}

/// A merge patch that adds condition Approved to the request as it was read, and to no other.
fn approved(request: &CertificateSigningRequest) -> Value {
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
