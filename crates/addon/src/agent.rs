//! What an add-on's author implements: [`AgentAddon`].

use std::{
    fmt,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use futures::future::BoxFuture;
use kube::ResourceExt as _;
use ocm_api::{
    addon::v1alpha1::ManagedClusterAddOn,
    cluster::v1::ManagedCluster,
    namespaces, secrets,
    work::v1::{Manifest, ManifestConfigOption},
};

use crate::{AddonError, Registration};

/// An add-on: what its manager deploys on a cluster, and how the agent there registers and reports its health.
///
/// ```
/// use ocm_addon::{AddonError, AgentAddon, AgentAddonOptions, Installation, Manifest};
/// use serde_json::json;
///
/// struct Busybox;
///
/// impl AgentAddon for Busybox {
///     fn options(&self) -> AgentAddonOptions {
///         AgentAddonOptions::new("busybox-addon")
///     }
///
///     async fn manifests(&self, on: &Installation<'_>) -> Result<Vec<Manifest>, AddonError> {
///         let metadata = json!({"name": "busybox", "namespace": on.namespace});
///         Ok(vec![json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}).into()])
///     }
/// }
/// ```
pub trait AgentAddon: Send + Sync + 'static {
    /// Its name and settings. Asked for once, when the add-on is [added](crate::AddonManager::add_agent).
    fn options(&self) -> AgentAddonOptions;

    /// The objects that make the add-on on one cluster. Each needs `apiVersion`, `kind` and `metadata.name`; the
    /// namespace they are in should be [`Installation::namespace`], since that is where the agent's credentials are.
    ///
    /// Called whenever something changes that may matter, every ten minutes, and when a [`Trigger`](crate::Trigger) asks
    /// for it, so it should be quick, and return the same for the same cluster. What it no longer returns is deleted from
    /// the cluster.
    ///
    /// An error becomes the add-on's condition `ManifestApplied` on that cluster, what is there stays as it is, and
    /// other clusters are not affected. It is tried again within a minute. So is a panic, where panics unwind, and no
    /// answer within 30 s.
    fn manifests(&self, on: &Installation<'_>) -> impl Future<Output = Result<Vec<Manifest>, AddonError>> + Send;
}

/// An add-on on one cluster.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Installation<'a> {
    /// The cluster.
    pub cluster: &'a ManagedCluster,
    /// The add-on on that cluster: an object on the hub, in the cluster's namespace.
    pub addon: &'a ManagedClusterAddOn,
    /// Namespace of the agent on the managed cluster.
    pub namespace: &'a str,
}

impl<'a> Installation<'a> {
    /// An add-on on a cluster, for tests of an add-on's own code.
    #[must_use]
    pub fn new(cluster: &'a ManagedCluster, addon: &'a ManagedClusterAddOn, namespace: &'a str) -> Self {
        Self { cluster, addon, namespace }
    }

    /// The cluster's name, which is also that of its namespace on the hub.
    #[must_use]
    pub fn cluster_name(&self) -> String {
        self.cluster.name_any()
    }

    /// The add-on's name.
    #[must_use]
    pub fn addon_name(&self) -> String {
        self.addon.name_any()
    }

    /// The secret in [`Installation::namespace`] from which the agent gets its kubeconfig for the hub, under key
    /// `kubeconfig`. The cluster's own agent writes it, when the add-on has a [`Registration`].
    #[must_use]
    pub fn hub_kubeconfig_secret(&self) -> String {
        secrets::addon_hub_kubeconfig(&self.addon_name())
    }

    /// Arguments of an agent that takes [`AgentArgs`](crate::command::AgentArgs), and of OCM's own examples:
    /// `hub_kubeconfig` is the path of the kubeconfig where the secret is mounted.
    #[must_use]
    pub fn agent_args(&self, hub_kubeconfig: &str) -> Vec<String> {
        vec![
            format!("--hub-kubeconfig={hub_kubeconfig}"),
            format!("--cluster-name={}", self.cluster_name()),
            format!("--addon-namespace={}", self.namespace),
        ]
    }
}

type ChosenNamespace = BoxFuture<'static, Result<Option<String>, AddonError>>;
type InstallNamespace = Arc<dyn Fn(Arc<ManagedClusterAddOn>) -> ChosenNamespace + Send + Sync>;
type ClusterFilter = Arc<dyn Fn(&ManagedCluster, &ManagedCluster) -> bool + Send + Sync>;

/// Name and settings of an add-on.
#[derive(Clone)]
pub struct AgentAddonOptions {
    pub(crate) name: String,
    pub(crate) registration: Option<Registration>,
    pub(crate) health: HealthProber,
    pub(crate) install_namespace: Option<InstallNamespace>,
    pub(crate) manifest_configs: Vec<ManifestConfigOption>,
    pub(crate) cluster_filter: Option<ClusterFilter>,
}

impl fmt::Debug for AgentAddonOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentAddonOptions").field("name", &self.name).finish_non_exhaustive()
    }
}

impl AgentAddonOptions {
    /// An add-on of that name whose agent has no identity on the hub, and whose health is told by its lease.
    ///
    /// The name is that of its ClusterManagementAddOn and ManagedClusterAddOns.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            registration: None,
            health: HealthProber::default(),
            install_namespace: None,
            manifest_configs: Vec::new(),
            cluster_filter: None,
        }
    }

    /// The add-on's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Gives the agent an identity on the hub.
    #[must_use]
    pub fn registration(mut self, registration: Registration) -> Self {
        self.registration = Some(registration);
        self
    }

    /// How the hub finds out whether the add-on is available.
    #[must_use]
    pub fn health_prober(mut self, prober: HealthProber) -> Self {
        self.health = prober;
        self
    }

    /// Chooses the namespace of the agent on the managed cluster. Where `choose` answers `None` or an empty name it is
    /// that of the ManagedClusterAddOn, or `open-cluster-management-agent-addon`. An error is told of as one of
    /// [`AgentAddon::manifests`].
    #[must_use]
    pub fn install_namespace<F, W>(mut self, choose: F) -> Self
    where
        F: Fn(Arc<ManagedClusterAddOn>) -> W + Send + Sync + 'static,
        W: Future<Output = Result<Option<String>, AddonError>> + Send + 'static,
    {
        self.install_namespace = Some(Arc::new(move |addon| Box::pin(choose(addon))));
        self
    }

    /// Settings for single objects of the add-on's works, such as feedback rules and update strategies.
    #[must_use]
    pub fn manifest_configs(mut self, configs: Vec<ManifestConfigOption>) -> Self {
        self.manifest_configs = configs;
        self
    }

    /// Asks for the manifests again when a cluster changes in a way that `matters`, given the cluster before and after.
    /// Otherwise changes of a cluster lead to nothing.
    #[must_use]
    pub fn render_again_when(
        mut self,
        matters: impl Fn(&ManagedCluster, &ManagedCluster) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.cluster_filter = Some(Arc::new(matters));
        self
    }

    /// Whether a change of a cluster asks for the manifests again. This runs inside the watch of clusters, which a panic
    /// of the author's code must not end.
    pub(crate) fn matters(&self, old: &ManagedCluster, new: &ManagedCluster) -> bool {
        let Some(matters) = &self.cluster_filter else { return false };
        catch_unwind(AssertUnwindSafe(|| matters(old, new))).unwrap_or(true)
    }
}

/// Namespace of the agent on the managed cluster, where its author does not choose another.
pub(crate) fn namespace_of(addon: &ManagedClusterAddOn) -> String {
    let name = addon.spec.install_namespace.clone().filter(|name| !name.is_empty());
    name.unwrap_or_else(|| namespaces::AGENT_ADDON.into())
}

/// How the hub finds out whether an add-on is available.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum HealthProber {
    /// The agent renews a lease on the managed cluster, see [`LeaseUpdater`](crate::LeaseUpdater). The cluster's own agent
    /// looks at it every 30 s, and calls the add-on unavailable when it was not renewed for five minutes.
    #[default]
    Lease,
    /// Nobody does: condition `Available` is the add-on's own to write.
    None,
}

/// [`AgentAddon`] behind a pointer.
pub(crate) trait Render: Send + Sync {
    fn render<'a>(&'a self, on: &'a Installation<'a>) -> BoxFuture<'a, Result<Vec<Manifest>, AddonError>>;
}

impl<A: AgentAddon> Render for A {
    fn render<'a>(&'a self, on: &'a Installation<'a>) -> BoxFuture<'a, Result<Vec<Manifest>, AddonError>> {
        Box::pin(self.manifests(on))
    }
}

#[cfg(test)]
mod tests;
