//! Admission: what may be changed of clusters, set bindings and works, and by whom.
//!
//! Each webhook is pure in what it decides: a request becomes a refusal, a changed object, or the rights that its requester
//! must have. Whether they have them is asked of the hub (`access`). A question that cannot be asked is a refusal.

mod access;
mod cluster;
mod manifests;
mod refusal;
mod review;
mod set_binding;
mod taints;
mod work;

use jiff::Timestamp;
use kube::{
    Client,
    core::{
        DynamicObject,
        admission::{AdmissionRequest, Operation},
    },
};
use ocm_api::{
    cluster::{v1::ManagedCluster, v1beta2::ManagedClusterSetBinding},
    feature_gates::{DEFAULT_CLUSTER_SET, MANIFEST_WORK_REPLICA_SET, NIL_EXECUTOR_VALIDATING},
    limits::MAX_MANIFEST_BYTES,
    webhooks,
};
use ocm_runtime::feature_gates::FeatureGates;
use serde::de::DeserializeOwned;
use serde_json::Value;

use self::refusal::{Refusal, Verdict};
use super::review::{Answer, ReviewError};
use crate::requester::Requester;

/// A webhook for admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Webhook {
    /// Sets times of taints and the default cluster set.
    MutateCluster,
    /// Checks ManagedClusters.
    ValidateCluster,
    /// Checks ManagedClusterSetBindings.
    ValidateSetBinding,
    /// Checks ManifestWorks.
    ValidateWork,
    /// Checks ManifestWorkReplicaSets.
    ValidateReplicaSet,
}

impl Webhook {
    /// Every webhook there is.
    pub const ALL: [Self; 5] = [
        Self::MutateCluster,
        Self::ValidateCluster,
        Self::ValidateSetBinding,
        Self::ValidateWork,
        Self::ValidateReplicaSet,
    ];

    /// The path that API servers call.
    #[must_use]
    pub fn path(self) -> &'static str {
        match self {
            Self::MutateCluster => webhooks::MUTATE_CLUSTER_PATH,
            Self::ValidateCluster => webhooks::VALIDATE_CLUSTER_PATH,
            Self::ValidateSetBinding => webhooks::VALIDATE_SET_BINDING_PATH,
            Self::ValidateWork => webhooks::VALIDATE_WORK_PATH,
            Self::ValidateReplicaSet => webhooks::VALIDATE_REPLICA_SET_PATH,
        }
    }

    /// The feature gate without which it is not served.
    fn gate(self) -> Option<&'static str> {
        (self == Self::ValidateReplicaSet).then_some(MANIFEST_WORK_REPLICA_SET)
    }
}

/// Answers the AdmissionReviews of a hub's API server.
#[derive(Clone)]
pub struct Admission {
    hub: access::Hub,
    gates: FeatureGates,
    manifest_limit: usize,
}

impl std::fmt::Debug for Admission {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Admission").field("gates", &self.gates).finish_non_exhaustive()
    }
}

impl Admission {
    /// Admission that asks `client` for rights and namespaces: it may create SubjectAccessReviews and get namespaces. Without
    /// a client, what depends on rights is refused.
    #[must_use]
    pub fn new(client: Option<Client>, gates: FeatureGates) -> Self {
        Self { hub: access::Hub::new(client), gates, manifest_limit: MAX_MANIFEST_BYTES }
    }

    /// The same with another limit to the size of the manifests of a work, in bytes.
    #[must_use]
    pub fn with_manifest_limit(self, bytes: usize) -> Self {
        Self { manifest_limit: bytes, ..self }
    }

    /// The webhooks that are served: those whose feature gate is on.
    pub fn webhooks(&self) -> impl Iterator<Item = Webhook> {
        Webhook::ALL.into_iter().filter(|webhook| webhook.gate().is_none_or(|gate| self.gates.enabled(gate)))
    }

    /// Answers a review.
    ///
    /// # Errors
    /// [`ReviewError`] if the request is no AdmissionReview.
    pub async fn answer(&self, webhook: Webhook, body: &[u8], now: Timestamp) -> Result<Answer, ReviewError> {
        let request = review::read(body)?;
        let verdict = match webhook {
            // API servers ask about deletions only if somebody has extended the configuration.
            _ if request.operation == Operation::Delete => Ok(json_patch::Patch::default()),
            Webhook::MutateCluster => self.mutate_cluster(&request, now),
            Webhook::ValidateCluster => self.validate_cluster(&request).await,
            Webhook::ValidateSetBinding => self.validate_set_binding(&request).await,
            Webhook::ValidateWork => self.validate_work(&request).await,
            Webhook::ValidateReplicaSet => self.validate_replica_set(&request).await,
        };
        review::write(&request, verdict)
    }

    fn mutate_cluster(&self, request: &AdmissionRequest<DynamicObject>, now: Timestamp) -> Verdict {
        let change = Change::<ManagedCluster>::read(request)?;
        let joins_default = self.gates.enabled(DEFAULT_CLUSTER_SET);
        let desired = cluster::complete(&change, joins_default, now)?;
        Ok(json_patch::diff(&json(&change.new)?, &json(&desired)?))
    }

    async fn validate_cluster(&self, request: &AdmissionRequest<DynamicObject>) -> Verdict {
        let change = Change::<ManagedCluster>::read(request)?;
        cluster::check(&change)?;
        if cluster::accepts(&change) {
            self.hub.check_namespace(&request.name).await?;
        }
        self.check_rights(request, cluster::rights(&change)).await
    }

    async fn validate_set_binding(&self, request: &AdmissionRequest<DynamicObject>) -> Verdict {
        let change = Change::<ManagedClusterSetBinding>::read(request)?;
        set_binding::check(&change)?;
        self.check_rights(request, set_binding::rights(&change)).await
    }

    async fn validate_work(&self, request: &AdmissionRequest<DynamicObject>) -> Verdict {
        let change = Change::of(request)?;
        if work::only_ends(&change) {
            return Ok(json_patch::Patch::default());
        }
        manifests::check(&change.new.data, work::MANIFESTS, self.manifest_limit)?;
        let right = work::right(&change, self.gates.enabled(NIL_EXECUTOR_VALIDATING))?;
        self.check_rights(request, right).await.map_err(Refusal::into_bad_request)
    }

    async fn validate_replica_set(&self, request: &AdmissionRequest<DynamicObject>) -> Verdict {
        let change = Change::of(request)?;
        if work::only_ends(&change) {
            return Ok(json_patch::Patch::default());
        }
        manifests::check(&change.new.data, work::MANIFESTS_OF_TEMPLATE, self.manifest_limit)?;
        let right = work::right_of_set(&change, self.gates.enabled(NIL_EXECUTOR_VALIDATING))?;
        self.check_rights(request, right).await.map_err(Refusal::into_bad_request)
    }

    async fn check_rights(
        &self,
        request: &AdmissionRequest<DynamicObject>,
        rights: impl IntoIterator<Item = access::Right>,
    ) -> Verdict {
        let requester = Requester::from(&request.user_info);
        for right in rights {
            self.hub.check(&requester, &right).await?;
        }
        Ok(json_patch::Patch::default())
    }
}

/// An object before and after a request.
#[derive(Clone, Debug)]
struct Change<K> {
    /// `None` when it is created.
    old: Option<K>,
    new: K,
}

impl<K: DeserializeOwned> Change<K> {
    fn read(request: &AdmissionRequest<DynamicObject>) -> Result<Self, Refusal> {
        let change = Change::of(request)?;
        Ok(Self { old: change.old.map(typed).transpose()?, new: typed(change.new)? })
    }
}

impl<'a> Change<&'a DynamicObject> {
    /// As the API server sends it.
    fn of(request: &'a AdmissionRequest<DynamicObject>) -> Result<Self, Refusal> {
        let new = request.object.as_ref().ok_or_else(|| Refusal::invalid("the request contains no object"))?;
        let old = request.old_object.as_ref().filter(|_| request.operation != Operation::Create);
        Ok(Self { old, new })
    }
}

fn typed<K: DeserializeOwned>(object: &DynamicObject) -> Result<K, Refusal> {
    let read = |object| serde_json::to_value(object).and_then(serde_json::from_value);
    read(object).map_err(|error| Refusal::invalid(format!("the object cannot be read: {error}")))
}

fn json<K: serde::Serialize>(object: &K) -> Result<Value, Refusal> {
    serde_json::to_value(object).map_err(|error| Refusal::invalid(format!("the object cannot be written: {error}")))
}

#[cfg(test)]
mod tests;
