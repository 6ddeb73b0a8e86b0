//! What an add-on's author implements: [`AgentAddon`].

mod boxed;
mod installation;
mod options;

use std::future::Future;

use ocm_api::{addon::v1beta1::ManagedClusterAddOn, work::v1::Manifest};

pub(crate) use self::installation::{namespace_of, view_of};
pub use self::{
    boxed::DynAgentAddon,
    installation::Installation,
    options::{AgentAddonOptions, HealthProber},
};
use crate::{AddonError, Registration, SetupContext};

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
///
/// Each call has 30 s. A call that takes longer or panics (where panics unwind) counts as an error, and is repeated within
/// a minute. Errors are reported in the conditions of the add-on on that cluster; other clusters and other add-ons are not
/// affected. A call must wait asynchronously: one that blocks its thread cannot be ended.
pub trait AgentAddon: Send + Sync + 'static {
    /// Its name and settings. Called once, when the add-on is [added](crate::AddonManager::add_agent).
    #[doc(alias = "GetAgentAddonOptions")]
    fn options(&self) -> AgentAddonOptions;

    /// The objects that make the add-on on one cluster. Each needs `apiVersion`, `kind` and `metadata.name`; the
    /// namespace they are in should be [`Installation::namespace`], which has the agent's credentials.
    ///
    /// Called after changes that may matter, every ten minutes, and after [`Trigger::reconcile`](crate::Trigger::reconcile),
    /// so it should be quick, and return the same for the same cluster. An object that it no longer returns is deleted from
    /// the cluster.
    ///
    /// # Errors
    /// Any error. It is reported in condition `ManifestApplied`, and the objects on the cluster stay as they are.
    #[doc(alias = "Manifests")]
    fn manifests(&self, on: &Installation<'_>) -> impl Future<Output = Result<Vec<Manifest>, AddonError>> + Send;

    /// The identities of the agent on one cluster, at most one for each signer. Without any, which is the default, the
    /// agent gets no credentials.
    ///
    /// # Errors
    /// Any error. It is reported in condition `RegistrationApplied`, and the identities stay as they are.
    #[doc(alias("Configurations", "RegistrationOption"))]
    fn registrations(
        &self,
        on: &Installation<'_>,
    ) -> impl Future<Output = Result<Vec<Registration>, AddonError>> + Send {
        _ = on;
        async { Ok(Vec::new()) }
    }

    /// The namespace of the agent on the managed cluster. `None`, which is the default, and an empty name leave it to the
    /// ManagedClusterAddOn's annotation `addon.open-cluster-management.io/v1alpha1-install-namespace`, and that to
    /// `open-cluster-management-agent-addon`.
    ///
    /// # Errors
    /// Any error. It is reported like one of [`AgentAddon::manifests`].
    #[doc(alias = "AgentInstallNamespace")]
    fn install_namespace(
        &self,
        addon: &ManagedClusterAddOn,
    ) -> impl Future<Output = Result<Option<String>, AddonError>> + Send {
        _ = addon;
        async { Ok(None) }
    }

    /// Prepares the add-on before anything else is called: starts informers for its configurations, and tasks of its own.
    /// With leader election it is called at the start of each term, and what it starts in
    /// [`SetupContext::context`] ends with the term.
    ///
    /// # Errors
    /// Any error. It is logged, and the call is repeated with exponential back-off; the manager is not ready until then.
    fn setup(&self, setup: &SetupContext) -> impl Future<Output = Result<(), AddonError>> + Send {
        _ = setup;
        async { Ok(()) }
    }
}

#[cfg(test)]
mod tests;
