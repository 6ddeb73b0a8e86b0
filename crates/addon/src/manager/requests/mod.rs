//! Approves the certificate requests of add-ons' agents, by the rules of [`approval`].
//!
//! A request → the cluster and the add-on it is labelled with → the identity that add-on is to have there → approval.
//! Whatever does not pass is left untouched, for an admin or another approver: a request is never denied here.

use std::{collections::BTreeMap, sync::Arc};

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

use super::served::Served;
use crate::{
    Installation,
    agent::namespace_of,
    registration::{Request, approval},
};

const MESSAGE: &str = "The add-on's manager approved this request: it was made by an agent of the cluster, for the \
                       identity that the add-on has there.";

/// See the module.
pub(crate) struct RequestController {
    client: Client,
    served: Arc<BTreeMap<String, Arc<Served>>>,
    clusters: Cache<ManagedCluster>,
}

/// A request of an agent of a known add-on on a known cluster.
pub(crate) struct Observed {
    request: Arc<CertificateSigningRequest>,
    addon: Arc<ManagedClusterAddOn>,
    cluster: Arc<ManagedCluster>,
    served: Arc<Served>,
}

impl RequestController {
    pub(crate) fn new(
        client: Client,
        served: Arc<BTreeMap<String, Arc<Served>>>,
        clusters: Cache<ManagedCluster>,
    ) -> Self {
        Self { client, served, clusters }
    }

    fn request(&self, name: &str) -> Option<(Arc<Served>, Arc<CertificateSigningRequest>)> {
        self.served.values().find_map(|served| Some((served.clone(), served.requests.named(name)?)))
    }

    /// What a watch has not brought yet is asked for: nothing else would bring the request back here.
    async fn addon(&self, served: &Served, key: &ObjectKey) -> Result<Option<Arc<ManagedClusterAddOn>>, Error> {
        if let Some(addon) = served.addons.get(key) {
            return Ok(Some(addon));
        }
        let api = Api::namespaced(self.client.clone(), &key.namespace);
        Ok(write::get(&api, &key.name).await?.map(Arc::new))
    }

    async fn cluster(&self, name: &str) -> Result<Option<Arc<ManagedCluster>>, Error> {
        if let Some(cluster) = self.clusters.named(name) {
            return Ok(Some(cluster));
        }
        Ok(write::get(&Api::all(self.client.clone()), name).await?.map(Arc::new))
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
        builder.waits_for(&self.clusters);
        for served in self.served.values() {
            builder.waits_for(&served.addons);
            builder.watches(&served.requests, |change| {
                let is_pending = !matches!(change, Change::Deleted(_)) && !approval::is_decided(change.object());
                is_pending.then(|| change.object().name_any())
            });
        }
    }

    async fn observe(&self, name: &String) -> Result<Option<Observed>, Error> {
        let Some((served, request)) = self.request(name) else { return Ok(None) };
        if approval::is_decided(&request) {
            return Ok(None);
        }
        let Some((cluster, addon)) = approval::claimed(&request) else { return Ok(None) };
        let key = ObjectKey::new(cluster, addon);
        let (Some(addon), Some(cluster)) = (self.addon(&served, &key).await?, self.cluster(cluster).await?) else {
            debug!(%key, "certificate request is left alone: there is no such add-on");
            return Ok(None);
        };
        Ok(Some(Observed { request, addon, cluster, served }))
    }

    fn plan(observed: &Observed, _: Timestamp) -> Option<Value> {
        let Observed { request, addon, cluster, served } = observed;
        let registration = served.options.registration.as_ref()?;
        let known = addon.status.as_ref().and_then(|status| status.namespace.clone());
        let namespace = known.unwrap_or_else(|| namespace_of(addon));
        let identity = registration.identity_of(&Installation::new(cluster, addon, &namespace));
        match approval::check(request, &cluster.name_any(), &identity) {
            Ok(requester) => {
                let checked = Request { cluster, addon, request, requester };
                registration.approves(&checked).then(|| approved(request))
            }
            Err(reason) => {
                info!(%reason, "certificate request is left for an admin");
                None
            }
        }
    }

    async fn apply(&self, observed: &Observed, plan: Option<Value>) -> Result<(), Error> {
        let Some(patch) = plan else { return Ok(()) };
        let api: Api<CertificateSigningRequest> = Api::all(self.client.clone());
        let name = observed.request.name_any();
        let written = api.patch_approval(&name, &PatchParams::default(), &Patch::Merge(&patch)).await;
        observed
            .served
            .requests
            .record_write(written.while_trying_to("approve", || write::describe(&*observed.request))?);
        info!(addon = %ObjectKey::of(&*observed.addon), "approved a certificate request of the add-on's agent");
        Ok(())
    }

    async fn report(&self, _: &Observed, (): (), _: Timestamp) -> Result<Requeue, Error> {
        Ok(Requeue::OnChange)
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
