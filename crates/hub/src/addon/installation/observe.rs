//! What the decision on one installation depends on.

use std::sync::Arc;

use kube::ResourceExt as _;
use ocm_api::{addon::v1alpha1::ManagedClusterAddOn, annotations::ADDON_HOSTING_CLUSTER};
use ocm_runtime::ObjectKey;

use super::InstallationController;
use crate::addon::{decision::Desired, facts};

/// An add-on on one cluster that the hub manages.
#[derive(Debug)]
pub(crate) struct Observed {
    pub(super) key: ObjectKey,
    pub(super) desired: Desired,
    /// `None` when it is not installed.
    pub(super) addon: Option<Arc<ManagedClusterAddOn>>,
    /// `None` when there is no such cluster.
    pub(super) cluster: Option<facts::Cluster>,
    pub(super) works: Vec<facts::Work>,
}

impl InstallationController {
    pub(super) fn gather(&self, key: &ObjectKey) -> Option<Observed> {
        let desired = self.store.desired(key)?;
        let addon = self.addons.get(key);
        let host = addon.as_ref().and_then(|addon| host(addon));
        let own = &*key.namespace;
        let works = self.work_index.of_addon(key, &[own, host.as_deref().unwrap_or(own)]);
        let cluster = self.cluster_facts.get(&ObjectKey::new("", key.namespace.clone()));
        Some(Observed { key: key.clone(), desired, addon, cluster, works })
    }
}

/// The cluster that hosts the add-on's agent, if another one does.
pub(super) fn host(addon: &ManagedClusterAddOn) -> Option<String> {
    addon.annotations().get(ADDON_HOSTING_CLUSTER).filter(|host| !host.is_empty()).cloned()
}
