//! Approves the certificate requests of add-ons' agents, by the rules of [`approval`], and issues the certificates of
//! signers that are the add-ons' own.
//!
//! A request → the cluster and the add-on it is labelled with → the identity that add-on is to have there → approval.
//! A request that does not pass is left untouched, for an administrator or another approver: none is ever denied here. It
//! is considered again when the add-on changes on that cluster, when the hub accepts the cluster, and every few minutes; if
//! the author's code failed, within a minute.

mod pending;

mod undecided;

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::{ByteString, api::certificates::v1::CertificateSigningRequest};
use kube::{Api, Client, ResourceExt as _};
use ocm_api::{
    addon::v1alpha1::ManagedClusterAddOn, cluster::v1::ManagedCluster, reasons::csr::AUTO_APPROVED, signers,
};
use ocm_runtime::{Cache, Change, Controller, ControllerBuilder, Error, ObjectKey, Requeue, write};
use serde_json::Value;
use tracing::{debug, info};

use self::pending::Pending;
pub(crate) use self::undecided::Undecided;
use super::{addon::is_acceptance_changed, served_addon::ServedAddon};
use crate::{
    CertificateRequest, DynAgentAddon, Installation,
    agent::{namespace_of, view_of},
    author,
    registration::approval,
};

const MESSAGE: &str = "The add-on's manager approved this request: it was made by an agent of the cluster, for the \
                       identity that the add-on has there.";

/// See the module.
pub(crate) struct RequestController {
    client: Client,
    served: Arc<ServedAddon>,
    clusters: Cache<ManagedCluster>,
    pending: Arc<Pending>,
}

/// A request of an agent of the add-on on a known cluster.
pub(crate) struct Observed {
    request: Arc<CertificateSigningRequest>,
    addon: ObjectKey,
    /// Or why the request is left alone.
    decision: Result<Decision, Undecided>,
}

/// What to do with a request.
#[derive(Clone, Debug, PartialEq)]
enum Decision {
    Approve,
    Issue(Vec<u8>),
}

impl RequestController {
    pub(crate) fn new(client: Client, served: Arc<ServedAddon>, clusters: Cache<ManagedCluster>) -> Self {
        Self { client, served, clusters, pending: Arc::default() }
    }

    async fn decide(
        &self,
        request: &CertificateSigningRequest,
        addon: &ManagedClusterAddOn,
        cluster: &ManagedCluster,
    ) -> Result<Decision, Undecided> {
        if !cluster.spec.hub_accepts_client {
            return Err(Undecided::unaccepted(&cluster.name_any()));
        }
        let view = view_of(addon).map_err(|error| Undecided::Failed(error.to_string()))?;
        let known = addon.status.as_ref().and_then(|status| status.namespace.clone());
        let namespace = known.unwrap_or_else(|| namespace_of(addon));
        let code = decide(&*self.served.agent, request, Installation::new(cluster, &view, &namespace));
        author::call(code).await.unwrap_or_else(|no_answer| Err(Undecided::Failed(no_answer.to_string())))
    }
}

/// Whether a request follows the rules and its author lets it pass; the certificate, if it is approved already.
async fn decide(
    agent: &dyn DynAgentAddon,
    request: &CertificateSigningRequest,
    on: Installation<'_>,
) -> Result<Decision, Undecided> {
    let signer = &request.spec.signer_name;
    let registrations = agent.dyn_registrations(&on).await;
    let registrations = registrations
        .map_err(|error| Undecided::failed("the add-on could not determine its agent's identities", &*error))?;
    let registration = registrations.iter().find(|one| one.signer_name() == signer);
    let registration = registration
        .ok_or_else(|| Undecided::Rejected(format!("the add-on has no registration with signer {signer}")))?;
    let requester = approval::requester(request);
    let checked = CertificateRequest { cluster: on.cluster, addon: on.addon, request, requester };
    // Also of an approved request: its labels, by which it was approved, are what its author chose.
    let identity = registration.identity_on(&on);
    let rejected = |refusal: approval::Refusal| Undecided::Rejected(refusal.to_string());
    approval::check(request, &on.cluster_name(), &identity).map_err(rejected)?;
    if !approval::is_unsigned(request) {
        return registration.check(&checked).await.map(|()| Decision::Approve);
    }
    let others = || Undecided::Rejected("somebody else issues its certificate".into());
    let issued = registration.csr_signer().ok_or_else(others)?.sign(&checked).await;
    issued
        .map(Decision::Issue)
        .map_err(|error| Undecided::failed("the add-on could not issue the certificate", &*error))
}

impl Controller for RequestController {
    const NAME: &'static str = "addon-csr-approval";
    type Key = String;
    type Observed = Observed;
    type Plan = Option<Plan>;
    type Applied = ();
    type Error = Error;

    fn setup(&self, builder: &mut ControllerBuilder<'_, String>) {
        let pending = self.pending.clone();
        builder.watches(&self.served.requests, move |change| {
            pending.record(change);
            let is_open = !matches!(change, Change::Deleted(_)) && is_open(change.object());
            is_open.then(|| change.object().name_any())
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
            Change::Updated { old, new } if is_acceptance_changed(old, new) => pending.of(&new.name_any()),
            Change::Updated { .. } | Change::Deleted(_) => Vec::new(),
        });
    }

    async fn observe(&self, name: &String) -> Result<Option<Observed>, Error> {
        let request = self.served.requests.named(name).filter(|request| is_open(request));
        let Some(request) = request else { return Ok(None) };
        let Some((cluster, addon)) = approval::claimed(&request) else { return Ok(None) };
        let key = ObjectKey::new(cluster, addon);
        let (Some(addon), Some(cluster)) = (self.served.addons.get(&key), self.clusters.named(cluster)) else {
            // When they appear, the request is considered again.
            debug!(%key, "certificate request is left alone: there is no such add-on");
            return Ok(None);
        };
        let decision = self.decide(&request, &addon, &cluster).await;
        Ok(Some(Observed { request, addon: key, decision }))
    }

    fn plan(observed: &Observed, _: Timestamp) -> Option<Plan> {
        match observed.decision.as_ref().ok()? {
            Decision::Approve => Some(Plan::Approve(write::approval(&observed.request, AUTO_APPROVED, MESSAGE))),
            Decision::Issue(certificate) => {
                let mut new = CertificateSigningRequest::clone(&observed.request);
                new.status.get_or_insert_default().certificate = Some(ByteString(certificate.clone()));
                Some(Plan::Issue(Box::new(new)))
            }
        }
    }

    async fn apply(&self, observed: &Observed, plan: Option<Plan>) -> Result<(), Error> {
        let api: Api<CertificateSigningRequest> = Api::all(self.client.clone());
        let (written, what) = match plan {
            None => return Ok(()),
            Some(Plan::Approve(patch)) => (Some(write::approve(&api, &observed.request, &patch).await?), "approved"),
            Some(Plan::Issue(new)) => (write::patch_status(&api, &*observed.request, &*new).await?, "issued"),
        };
        written.into_iter().for_each(|written| self.served.requests.record_write(written));
        info!(addon = %observed.addon, "{what} a certificate of the add-on's agent");
        Ok(())
    }

    async fn report(&self, observed: &Observed, (): (), _: Timestamp) -> Result<Requeue, Error> {
        let Err(undecided) = &observed.decision else { return Ok(Requeue::OnChange) };
        let reason = undecided.to_string();
        if self.pending.is_new_reason(&observed.addon.namespace, &observed.request.name_any(), &reason) {
            info!(reason, "certificate request is left alone");
        }
        Ok(undecided.next())
    }
}

/// What to write.
pub(crate) enum Plan {
    /// This patch of the approval.
    Approve(Value),
    /// The request with its certificate.
    Issue(Box<CertificateSigningRequest>),
}

/// Whether a manager may have something to do: approve the request, or issue its certificate.
fn is_open(request: &CertificateSigningRequest) -> bool {
    let is_custom = request.spec.signer_name != signers::KUBE_API_SERVER_CLIENT;
    !approval::is_decided(request) || (is_custom && approval::is_unsigned(request))
}
