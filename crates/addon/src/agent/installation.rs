//! [`Installation`]: an add-on on one cluster, as its author sees it.

use kube::ResourceExt as _;
use ocm_api::{
    addon::{convert::convert, v1alpha1, v1beta1::ManagedClusterAddOn},
    cluster::v1::ManagedCluster,
    namespaces, secrets,
};

use crate::AddonError;

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
    /// `kubeconfig`. The cluster's own agent writes it if the add-on has a
    /// [`Registration::kube_client`](crate::Registration::kube_client).
    #[doc(alias = "HubKubeConfigSecret")]
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

/// Namespace of the agent on the managed cluster, unless its author chooses another.
pub(crate) fn namespace_of(addon: &v1alpha1::ManagedClusterAddOn) -> String {
    let name = addon.spec.install_namespace.clone().filter(|name| !name.is_empty());
    name.unwrap_or_else(|| namespaces::AGENT_ADDON.into())
}

/// The add-on in the version that authors see. The hub stores v1alpha1, which needs no webhook to be read.
pub(crate) fn view_of(addon: &v1alpha1::ManagedClusterAddOn) -> Result<ManagedClusterAddOn, AddonError> {
    let version = <ManagedClusterAddOn as k8s_openapi::Resource>::API_VERSION;
    Ok(serde_json::from_value(convert(serde_json::to_value(addon)?, version)?)?)
}
