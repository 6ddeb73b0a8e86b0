//! [`AgentAddonOptions`]: name and settings of an add-on.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use ocm_api::{cluster::v1::ManagedCluster, work::v1::ManifestConfigOption};

use crate::PermissionConfig;

type ClusterFilter = Arc<dyn Fn(&ManagedCluster, &ManagedCluster) -> bool + Send + Sync>;

/// Name and settings of an add-on.
#[derive(Clone)]
pub struct AgentAddonOptions {
    pub(crate) name: String,
    pub(crate) permissions: Option<Arc<dyn PermissionConfig>>,
    pub(crate) health: HealthProber,
    pub(crate) manifest_configs: Vec<ManifestConfigOption>,
    cluster_filter: Option<ClusterFilter>,
}

impl fmt::Debug for AgentAddonOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentAddonOptions").field("name", &self.name).finish_non_exhaustive()
    }
}

impl AgentAddonOptions {
    /// An add-on of that name whose agent may do nothing on the hub, and whose health is read from its lease.
    ///
    /// The name is that of its ClusterManagementAddOn and ManagedClusterAddOns.
    #[doc(alias = "AddonName")]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            permissions: None,
            health: HealthProber::default(),
            manifest_configs: Vec::new(),
            cluster_filter: None,
        }
    }

    /// The add-on's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Sets what the agent may do on the hub.
    #[doc(alias("PermissionConfig", "WithAgentRegistrationOption"))]
    #[must_use]
    pub fn permissions(mut self, permissions: impl PermissionConfig) -> Self {
        self.permissions = Some(Arc::new(permissions));
        self
    }

    /// Sets how the hub finds out whether the add-on is available.
    #[doc(alias("HealthProber", "WithAgentHealthProber"))]
    #[must_use]
    pub fn health_prober(mut self, prober: HealthProber) -> Self {
        self.health = prober;
        self
    }

    /// Settings for single objects of the add-on's works, such as feedback rules and update strategies.
    #[doc(alias("ManifestConfigs", "Updaters"))]
    #[must_use]
    pub fn manifest_configs(mut self, configs: Vec<ManifestConfigOption>) -> Self {
        self.manifest_configs = configs;
        self
    }

    /// Requests the manifests again when a cluster changes in a way for which `filter`, given the cluster before and after,
    /// returns true. By default changes of a cluster have no effect.
    #[doc(alias("AgentDeployTriggerClusterFilter", "WithAgentDeployTriggerClusterFilter"))]
    #[must_use]
    pub fn deploy_trigger_cluster_filter(
        mut self,
        filter: impl Fn(&ManagedCluster, &ManagedCluster) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.cluster_filter = Some(Arc::new(filter));
        self
    }

    /// Whether a change of a cluster requests the manifests again. This runs inside the informer of clusters, which a
    /// panic of the author's code must not end.
    pub(crate) fn is_triggered_by(&self, old: &ManagedCluster, new: &ManagedCluster) -> bool {
        let Some(filter) = &self.cluster_filter else { return false };
        catch_unwind(AssertUnwindSafe(|| filter(old, new))).unwrap_or(true)
    }
}

/// How the hub finds out whether an add-on is available.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum HealthProber {
    /// The agent renews a lease on the managed cluster, see [`LeaseUpdater`](crate::LeaseUpdater). The cluster's own agent
    /// reads it every 30 s, and reports the add-on as unavailable if it was not renewed for five minutes.
    #[doc(alias = "HealthProberTypeLease")]
    #[default]
    Lease,
    /// The hub does not: condition `Available` is the add-on's own to write.
    #[doc(alias = "HealthProberTypeNone")]
    None,
}
