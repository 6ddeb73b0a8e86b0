//! [`DynAgentAddon`]: an [`AgentAddon`] of a type that is chosen at run time.

use std::sync::Arc;

use futures::future::BoxFuture;
use ocm_api::{addon::v1beta1::ManagedClusterAddOn, work::v1::Manifest};

use super::{AgentAddon, AgentAddonOptions, Installation};
use crate::{AddonError, Registration, SetupContext};

mod sealed {
    pub trait Sealed {}
    impl<A: super::AgentAddon> Sealed for A {}
}

type Answer<'a, T> = BoxFuture<'a, Result<T, AddonError>>;

/// An [`AgentAddon`] behind a pointer. Every [`AgentAddon`] is one, and a box or [`Arc`] of one is an [`AgentAddon`] again,
/// so that a function can return add-ons of different types:
///
/// ```
/// # use ocm_addon::{AddonError, AgentAddon, AgentAddonOptions, DynAgentAddon, Installation, Manifest};
/// # struct Nothing(&'static str);
/// # impl AgentAddon for Nothing {
/// #     fn options(&self) -> AgentAddonOptions { AgentAddonOptions::new(self.0) }
/// #     async fn manifests(&self, _: &Installation<'_>) -> Result<Vec<Manifest>, AddonError> { Ok(vec![]) }
/// # }
/// fn addons() -> Vec<Box<dyn DynAgentAddon>> {
///     vec![Box::new(Nothing("one")), Box::new(Nothing("other"))]
/// }
///
/// # fn example(mut manager: ocm_addon::AddonManager) -> Result<(), ocm_addon::AddAgentError> {
/// for addon in addons() {
///     manager = manager.add_agent(addon)?;
/// }
/// # Ok(())
/// # }
/// ```
pub trait DynAgentAddon: sealed::Sealed + Send + Sync + 'static {
    #[doc(hidden)]
    fn dyn_options(&self) -> AgentAddonOptions;
    #[doc(hidden)]
    fn dyn_manifests<'a>(&'a self, on: &'a Installation<'_>) -> Answer<'a, Vec<Manifest>>;
    #[doc(hidden)]
    fn dyn_registrations<'a>(&'a self, on: &'a Installation<'_>) -> Answer<'a, Vec<Registration>>;
    #[doc(hidden)]
    fn dyn_install_namespace<'a>(&'a self, addon: &'a ManagedClusterAddOn) -> Answer<'a, Option<String>>;
    #[doc(hidden)]
    fn dyn_setup<'a>(&'a self, setup: &'a SetupContext) -> Answer<'a, ()>;
}

impl<A: AgentAddon> DynAgentAddon for A {
    fn dyn_options(&self) -> AgentAddonOptions {
        self.options()
    }

    fn dyn_manifests<'a>(&'a self, on: &'a Installation<'_>) -> Answer<'a, Vec<Manifest>> {
        Box::pin(self.manifests(on))
    }

    fn dyn_registrations<'a>(&'a self, on: &'a Installation<'_>) -> Answer<'a, Vec<Registration>> {
        Box::pin(self.registrations(on))
    }

    fn dyn_install_namespace<'a>(&'a self, addon: &'a ManagedClusterAddOn) -> Answer<'a, Option<String>> {
        Box::pin(self.install_namespace(addon))
    }

    fn dyn_setup<'a>(&'a self, setup: &'a SetupContext) -> Answer<'a, ()> {
        Box::pin(self.setup(setup))
    }
}

macro_rules! agent_addon_for_pointer {
    ($pointer:ty) => {
        impl AgentAddon for $pointer {
            fn options(&self) -> AgentAddonOptions {
                (**self).dyn_options()
            }

            async fn manifests(&self, on: &Installation<'_>) -> Result<Vec<Manifest>, AddonError> {
                (**self).dyn_manifests(on).await
            }

            async fn registrations(&self, on: &Installation<'_>) -> Result<Vec<Registration>, AddonError> {
                (**self).dyn_registrations(on).await
            }

            async fn install_namespace(&self, addon: &ManagedClusterAddOn) -> Result<Option<String>, AddonError> {
                (**self).dyn_install_namespace(addon).await
            }

            async fn setup(&self, setup: &SetupContext) -> Result<(), AddonError> {
                (**self).dyn_setup(setup).await
            }
        }
    };
}

agent_addon_for_pointer!(Box<dyn DynAgentAddon>);
agent_addon_for_pointer!(Arc<dyn DynAgentAddon>);
