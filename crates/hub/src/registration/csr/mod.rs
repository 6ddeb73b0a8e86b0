//! Approves certificates of agents: renewals always, and the first one of an agent if that was delegated to the hub.
//!
//! A certificate request → its [`Requester`] and [`Purpose`] → for a renewal, a SubjectAccessReview (may that identity renew?);
//! for the first certificate, asked for by a user who may bootstrap agents, has the hub accepted the cluster? → approval. A
//! request that does not pass is left untouched, for an administrator or another approver: a request is never denied here.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::{Api, ResourceExt as _};
use ocm_api::{
    cluster::v1::ManagedCluster,
    conditions::{cluster::CERTIFICATE_ROTATED, status},
    reasons::csr::AUTO_APPROVED,
};
use ocm_runtime::{Cache, Change, Context, Controller, ControllerBuilder, conditions::find, informer::View, write};
use serde_json::Value;
use tracing::{debug, info};

use crate::{
    caches::{self, cluster_of},
    context::HubContext,
    error::{Error, Result},
    registration::{
        accepted::{accepted_now, requests_to_reconsider},
        requester::{Purpose, is_decided, renewal},
    },
    requester::Requester,
};

const RENEWAL: &str = "The hub approved this renewal: the agent asked for the identity it already has, and its cluster \
                       may renew certificates.";
const BOOTSTRAP: &str = "The hub approved this request: its requester is one of --auto-approved-csr-users, and asked for the \
                         identity of an agent of a cluster that the hub accepts.";

/// See the module.
#[derive(Debug)]
pub(crate) struct CsrController {
    hub: HubContext,
    requests: Cache<CertificateSigningRequest>,
    /// The cluster of each request that is not decided on.
    pending: View<String>,
    clusters: Cache<ManagedCluster>,
    /// Clusters whose agents could not renew their certificate, for the metric.
    _unrenewed: View<()>,
}

/// A request that the hub may approve.
#[derive(Debug)]
pub(crate) struct Observed {
    request: Arc<CertificateSigningRequest>,
    grounds: Grounds,
}

/// What the approval depends on.
#[derive(Clone, Copy, Debug)]
enum Grounds {
    Renewal { may_renew: bool },
    Bootstrap { is_cluster_accepted: bool },
}

impl CsrController {
    pub(crate) fn new(context: &Context, hub: &HubContext) -> Self {
        let (requests, clusters) = (caches::requests(&hub.informers), caches::clusters(&hub.informers));
        let pending = requests.view(|request| cluster_of(request).filter(|_| !is_decided(request)));
        let unrenewed = clusters.view(|cluster| is_unrenewed(cluster).then_some(()));
        context.metrics().count_false("ManagedCluster", CERTIFICATE_ROTATED, unrenewed.counter());
        Self { requests, pending, clusters, _unrenewed: unrenewed, hub: hub.clone() }
    }

    /// Who asks, and for what; `None` if the hub does not approve such requests.
    fn purpose(&self, request: &CertificateSigningRequest) -> Option<(Requester, Purpose)> {
        let driver = self.hub.drivers.of_signer(&request.spec.signer_name)?;
        let requester = driver.requester(request);
        match requester.purpose(request, driver.may_bootstrap(&requester.user)) {
            Ok(purpose) => Some((requester, purpose)),
            Err(reason) => {
                debug!(%reason, "certificate request is left alone");
                None
            }
        }
    }

    async fn may_renew(&self, requester: &Requester) -> Result<bool> {
        Ok(requester.may(&self.hub.client, renewal()).await?)
    }
}

fn is_unrenewed(cluster: &ManagedCluster) -> bool {
    let conditions = cluster.status.as_ref().map(|status| &status.conditions);
    let rotated = conditions.and_then(|conditions| find(conditions, CERTIFICATE_ROTATED));
    rotated.is_some_and(|condition| condition.status == status::FALSE)
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
        let pending = self.pending.clone();
        builder.watches(&self.clusters, move |change| requests_to_reconsider(&pending, change));
    }

    async fn observe(&self, key: &String) -> Result<Option<Observed>> {
        let request = self.requests.named(key).filter(|request| !is_decided(request));
        let approvable = request.and_then(|request| Some((self.purpose(&request)?, request)));
        let Some(((requester, purpose), request)) = approvable else { return Ok(None) };
        let grounds = match purpose {
            Purpose::Renewal => Grounds::Renewal { may_renew: self.may_renew(&requester).await? },
            Purpose::Bootstrap { cluster } => {
                let cluster = accepted_now(&self.hub, &self.clusters, &cluster).await?;
                Grounds::Bootstrap { is_cluster_accepted: cluster.is_some() }
            }
        };
        Ok(Some(Observed { request, grounds }))
    }

    fn plan(observed: &Observed, _: Timestamp) -> Option<Value> {
        let message = match observed.grounds {
            Grounds::Renewal { may_renew } => may_renew.then_some(RENEWAL),
            Grounds::Bootstrap { is_cluster_accepted } => is_cluster_accepted.then_some(BOOTSTRAP),
        };
        message.map(|message| write::approval(&observed.request, AUTO_APPROVED, message))
    }

    async fn apply(&self, observed: &Observed, plan: Option<Value>) -> Result<()> {
        let Observed { request, grounds } = observed;
        let Some(patch) = plan else {
            debug!(?grounds, "certificate request is left alone");
            return Ok(());
        };
        let api: Api<CertificateSigningRequest> = Api::all(self.hub.client.clone());
        self.requests.record_write(write::approve(&api, request, &patch).await?);
        info!(user = request.spec.username, ?grounds, "approved a certificate request");
        Ok(())
    }
}

#[cfg(test)]
mod tests;
