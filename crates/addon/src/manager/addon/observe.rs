//! What the manager looks at to bring an add-on to a cluster.

use std::sync::Arc;

use kube::ResourceExt as _;
use ocm_api::{
    addon::v1alpha1::{ClusterManagementAddOn, ManagedClusterAddOn},
    annotations,
    cluster::v1::ManagedCluster,
    conditions::addon::REGISTRATION_APPLIED,
    finalizers,
    work::v1::{Manifest, ManifestWork},
};
use ocm_runtime::{ObjectKey, conditions, error::chain, write};

use super::AddonController;
use crate::{Installation, manager::served::Served};

/// An add-on on a cluster.
#[derive(Debug)]
pub(crate) struct Observed {
    pub(super) key: ObjectKey,
    pub(super) served: Arc<Served>,
    pub(super) addon: Arc<ManagedClusterAddOn>,
    pub(super) cluster: Arc<ManagedCluster>,
    /// Namespace of the agent on the managed cluster.
    pub(super) namespace: String,
    /// All works of the add-on in the cluster's namespace.
    pub(super) works: Vec<Arc<ManifestWork>>,
    pub(super) rendered: Rendered,
}

/// What the add-on's author wants on the cluster.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Rendered {
    /// He was not asked.
    NotAsked,
    /// These objects.
    Objects(Vec<Manifest>),
    /// He answered with this error.
    Failed(String),
}

impl AddonController {
    /// `None` when there is nothing to do.
    pub(super) async fn look(&self, key: &ObjectKey) -> Option<Observed> {
        let served = self.served.get(&key.name)?.clone();
        let Some(addon) = served.addons.get(key) else {
            self.memory.forget(key);
            return None;
        };
        let cluster = self.clusters.named(&key.namespace)?;
        let works = served.works.in_namespace(&key.namespace);
        let namespace = served.options.namespace_of(&addon);
        let mut observed =
            Observed { key: key.clone(), served, addon, cluster, namespace, works, rendered: Rendered::NotAsked };
        if observed.wants_manifests() {
            observed.rendered = observed.render().await;
        }
        Some(observed)
    }
}

impl Observed {
    /// What the author sees.
    pub(super) fn installation(&self) -> Installation<'_> {
        Installation { cluster: &self.cluster, addon: &self.addon, namespace: &self.namespace }
    }

    async fn render(&self) -> Rendered {
        match self.served.agent.render(&self.installation()).await {
            Ok(manifests) => Rendered::Objects(manifests),
            Err(error) => Rendered::Failed(chain(&*error)),
        }
    }

    /// On the way out, manifests matter only where a finalizer of the hooks among them is still there.
    fn wants_manifests(&self) -> bool {
        let stays = !write::is_deleting(&*self.addon) && !write::is_deleting(&*self.cluster);
        let stays = stays && self.hosting_cluster().is_none() && (self.is_adopted() || self.was_registered());
        stays || write::has_finalizer(&*self.addon, finalizers::ADDON_PRE_DELETE)
    }

    /// Whether the hub has taken the add-on on, by making its ClusterManagementAddOn the owner.
    pub(super) fn is_adopted(&self) -> bool {
        let kind = <ClusterManagementAddOn as k8s_openapi::Resource>::KIND;
        self.addon.owner_references().iter().any(|owner| owner.kind == kind && owner.name == self.key.name)
    }

    /// Whether the agent's registration was dealt with, now or earlier, well or not.
    pub(super) fn was_registered(&self) -> bool {
        let conditions = self.addon.status.as_ref().map(|status| &*status.conditions).unwrap_or_default();
        conditions::find(conditions, REGISTRATION_APPLIED).is_some()
    }

    /// The cluster that is to host the agent, if the add-on asks for one.
    pub(super) fn hosting_cluster(&self) -> Option<&str> {
        let asked = self.addon.annotations().get(annotations::ADDON_HOSTING_CLUSTER);
        asked.map(String::as_str).filter(|cluster| !cluster.is_empty())
    }
}
