//! An add-on that a manager serves, with its informers.

use std::{fmt, sync::Arc};

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use ocm_api::{addon::v1alpha1::ManagedClusterAddOn, labels, work::v1::ManifestWork};
use ocm_runtime::{Cache, Informers, informer::WatchFilter};

use crate::{AgentAddonOptions, DynAgentAddon};

/// See the module. The informers watch only objects of this add-on.
pub(crate) struct ServedAddon {
    pub(crate) agent: Arc<dyn DynAgentAddon>,
    pub(crate) options: AgentAddonOptions,
    /// The add-on on each cluster.
    pub(crate) addons: Cache<ManagedClusterAddOn>,
    /// Its works on all clusters.
    pub(crate) works: Cache<ManifestWork>,
    /// Certificate requests of its agents.
    pub(crate) requests: Cache<CertificateSigningRequest>,
}

impl fmt::Debug for ServedAddon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServedAddon").field("options", &self.options).finish_non_exhaustive()
    }
}

impl ServedAddon {
    pub(crate) fn new(agent: Arc<dyn DynAgentAddon>, options: AgentAddonOptions, informers: &Informers) -> Self {
        let labelled = || WatchFilter::labelled(format!("{}={}", labels::ADDON_NAME, options.name));
        Self {
            addons: informers.all(WatchFilter::named(&options.name)),
            works: informers.all(labelled()),
            requests: informers.all(labelled()),
            agent,
            options,
        }
    }
}
