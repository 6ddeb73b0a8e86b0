//! [`SetupContext`]: what an add-on is given before it starts.

use std::fmt;

use kube::{Client, api::ApiResource};
use ocm_runtime::{Context, Informers, informer::WatchFilter};

use crate::{DynamicInformer, Trigger};

/// What an add-on is given before it starts, in [`AgentAddon::setup`](crate::AgentAddon::setup). It can be kept.
#[derive(Clone)]
#[non_exhaustive]
pub struct SetupContext {
    pub(crate) client: Client,
    pub(crate) informers: Informers,
    pub(crate) context: Context,
    pub(crate) trigger: Trigger,
}

impl fmt::Debug for SetupContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SetupContext").finish_non_exhaustive()
    }
}

impl SetupContext {
    /// The manager's client of the hub.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Informers of the manager: of objects of a type that is known when the add-on is compiled.
    #[must_use]
    pub fn informers(&self) -> &Informers {
        &self.informers
    }

    /// Runs tasks, and ends when the manager or its term as leader does.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Requests manifests and registrations again, after changes that the manager does not watch.
    #[must_use]
    pub fn trigger(&self) -> &Trigger {
        &self.trigger
    }

    /// Starts an informer of objects whose type is only known at run time, such as configurations. `on_change` is called
    /// with each object that is added, changed or deleted, and usually calls the [trigger](SetupContext::trigger). It must
    /// not block.
    ///
    /// The manager must be allowed to list and watch these objects.
    #[doc(alias("SupportedConfigGVRs", "WithConfigGVRs"))]
    #[must_use]
    pub fn watch(
        &self,
        resource: &ApiResource,
        filter: WatchFilter,
        on_change: impl Fn(&kube::api::DynamicObject) + Send + Sync + 'static,
    ) -> DynamicInformer {
        DynamicInformer::start(self.client.clone(), &self.context, resource, filter, on_change)
    }
}
