//! Whether an add-on uses tokens, and what the hub keeps for that.

use std::sync::Arc;

use k8s_openapi::{
    api::{
        core::v1::ServiceAccount,
        rbac::v1::{Role, RoleBinding},
    },
    apimachinery::pkg::apis::meta::v1::Condition,
};
use kube::{Resource, ResourceExt as _};
use ocm_api::{
    addon::v1alpha1::{KubeClientDriver, ManagedClusterAddOn},
    cluster::v1::ManagedCluster,
    conditions::addon::TOKEN_INFRASTRUCTURE_READY,
    rbac, signers,
};
use ocm_apimachinery::labels::is_value;
use ocm_runtime::{Cache, ObjectKey, ResultExt as _, conditions, informer::Watchable, write};

use super::{TokenController, objects};
use crate::{error::Result, registration::names};

/// An add-on on one cluster, and what the hub keeps for its tokens.
#[derive(Debug)]
pub(crate) struct Observed {
    pub(super) key: ObjectKey,
    pub(super) addon: Option<Arc<ManagedClusterAddOn>>,
    pub(super) need: Need,
    pub(super) existing: Existing,
}

/// What an add-on needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// Its agent authenticates with a token.
    Tokens,
    /// It does, and its cluster is being deleted: what exists stays until the add-on is deleted too.
    Unchanged,
    /// It does, and gets none for this reason.
    Refused(String),
    /// Its agent does not authenticate with a token.
    Nothing,
    /// It is deleted, or being deleted.
    Gone,
}

/// The objects of the add-on that exist. Those of somebody else are left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Existing {
    pub(super) account: Option<Arc<ServiceAccount>>,
    pub(super) role: Option<Arc<Role>>,
    pub(super) binding: Option<Arc<RoleBinding>>,
}

impl Existing {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What decides whether an add-on is reconciled again.
pub(super) fn relevant(addon: &ManagedClusterAddOn) -> (bool, bool, Option<&Condition>, Option<String>) {
    (uses_tokens(addon), write::is_deleting(addon), condition(addon), addon.uid())
}

/// Whether an add-on uses tokens, or did and still has the condition.
pub(super) fn needs_look(addon: &ManagedClusterAddOn) -> bool {
    uses_tokens(addon) || condition(addon).is_some()
}

/// Whether the add-on's agent logs in to the hub's API server, and does so with a token.
pub(super) fn uses_tokens(addon: &ManagedClusterAddOn) -> bool {
    let Some(status) = &addon.status else { return false };
    let is_kube_client = |signer: &str| signer == signers::KUBE_API_SERVER_CLIENT;
    status.kube_client_driver == Some(KubeClientDriver::Token)
        && status.registrations.iter().any(|registration| is_kube_client(&registration.signer_name))
}

fn condition(addon: &ManagedClusterAddOn) -> Option<&Condition> {
    conditions::find(&addon.status.as_ref()?.conditions, TOKEN_INFRASTRUCTURE_READY)
}

/// What the add-on needs. `hub_namespace` is that of the hub itself.
pub(super) fn need(
    key: &ObjectKey,
    addon: Option<&ManagedClusterAddOn>,
    cluster: Option<&ManagedCluster>,
    hub_namespace: &str,
) -> Need {
    let Some(addon) = addon.filter(|addon| !write::is_deleting(*addon)) else { return Need::Gone };
    if !uses_tokens(addon) {
        return Need::Nothing;
    }
    match refusal(key, cluster, hub_namespace) {
        Some(cause) => Need::Refused(cause),
        None if cluster.is_some_and(write::is_deleting) => Need::Unchanged,
        None => Need::Tokens,
    }
}

/// Why an add-on gets no tokens.
fn refusal(key: &ObjectKey, cluster: Option<&ManagedCluster>, hub_namespace: &str) -> Option<String> {
    let name = &key.namespace;
    if let Some(cause) = names::refusal(name, hub_namespace) {
        return Some(format!("namespace {name} is not that of a managed cluster: {cause}"));
    }
    if !is_value(&key.name) {
        return Some(
            "the add-on's name is the value of a label of its service account, and is too long for a label; install it under \
             a name of at most 63 characters"
                .into(),
        );
    }
    match cluster {
        None => Some(format!("there is no ManagedCluster {name}")),
        Some(cluster) if !cluster.spec.hub_accepts_client => Some(format!(
            "the hub does not accept cluster {name}, since spec.hubAcceptsClient of its ManagedCluster is false; accept it, \
             for example with `clusteradm accept --clusters {name}`"
        )),
        Some(_) => None,
    }
}

impl TokenController {
    /// `None` if there is nothing to do.
    pub(super) async fn gather(&self, key: &ObjectKey) -> Result<Option<Observed>> {
        let (addon, existing) = (self.addons.get(key), self.existing(key));
        if existing.is_empty() && !addon.as_deref().is_some_and(needs_look) {
            return Ok(None);
        }
        let cluster = self.clusters.named(&key.namespace);
        if self.is_unreadable(key, addon.is_some(), cluster.is_some()).await? {
            return Ok(None);
        }
        let need = need(key, addon.as_deref(), cluster.as_deref(), &self.hub.config.namespace);
        Ok(Some(Observed { key: key.clone(), addon, need, existing }))
    }

    /// Whether the API server has an add-on or a cluster that the caches leave out because they cannot read it: nothing of
    /// such an object is deleted.
    async fn is_unreadable(&self, key: &ObjectKey, has_addon: bool, has_cluster: bool) -> Result<bool> {
        match (has_addon, has_cluster) {
            (true, true) => Ok(false),
            (true, false) => self.hub.cluster_exists(&key.namespace).await,
            (false, _) => {
                let found = self.addons_of(&key.namespace).get_metadata_opt(&key.name).await;
                Ok(found.while_trying_to("get", || format!("ManagedClusterAddOn {key}"))?.is_some())
            }
        }
    }

    fn existing(&self, key: &ObjectKey) -> Existing {
        let role = rbac::addon_token_role(&key.name);
        Existing {
            account: own(&self.accounts, key, rbac::addon_token_service_account(&key.name)),
            role: own(&self.roles, key, role.clone()),
            binding: own(&self.bindings, key, role),
        }
    }
}

fn own<K: Watchable + Resource>(cache: &Cache<K>, addon: &ObjectKey, name: String) -> Option<Arc<K>> {
    let found = cache.get(&ObjectKey::new(addon.namespace.clone(), name));
    found.filter(|object| objects::is_own(object.as_ref(), &addon.name))
}
