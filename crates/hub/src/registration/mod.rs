//! Registration: letting clusters in, watching over them, and cleaning up after them.
//!
//! How the data flows: agents create `ManagedCluster`s and certificate requests; an admin accepts them;
//! [`cluster`] gives an accepted cluster its namespace and rights, which agents use to renew the lease that [`lease`]
//! made and to report their health; [`lease`], [`clock`] and [`taints`] turn silence and ill health into conditions
//! and taints; [`cluster_set`] counts the members of sets, [`set_bindings`] looks whether bound sets exist, and
//! [`managed_namespaces`] tells clusters what their sets want; [`gc`] and [`cluster`] take everything back in the end.
//!
//! All of them read from one watch per kind ([`sources`]). All writes to a `ManagedCluster` go through
//! [`writer::ClusterWriter`], so that the hub never conflicts with itself.

pub(crate) mod addon_features;
pub(crate) mod addon_health;
pub(crate) mod clock;
pub(crate) mod cluster;
pub(crate) mod cluster_set;
pub(crate) mod csr;
pub(crate) mod default_sets;
pub(crate) mod gc;
pub(crate) mod lease;
pub(crate) mod managed_namespaces;
pub(crate) mod membership;
pub(crate) mod names;
pub(crate) mod rbac;
pub(crate) mod set_bindings;
pub(crate) mod shared_roles;
pub(crate) mod sources;
pub(crate) mod status;
pub(crate) mod taints;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod writer;

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use kube::Client;
use ocm_api::components;
use ocm_runtime::{Clock, Informers, events::EventRecorder};

use self::writer::ClusterWriter;
use crate::{
    HubConfig,
    addon::{index::Index, outstanding::Outstanding},
};

/// How many clusters a controller works on at once. The API server is the limit, not this process.
pub(crate) const WORKERS: usize = 8;

/// What the controllers share. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) client: Client,
    pub(crate) watches: Informers,
    pub(crate) writer: ClusterWriter,
    pub(crate) recorder: EventRecorder,
    pub(crate) config: Arc<HubConfig>,
    clock: Clock,
    addons: Arc<OnceLock<Index>>,
    /// What has changed on clusters and has not reached their add-ons yet.
    pub(crate) outstanding: Outstanding,
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts").field("config", &self.config).finish_non_exhaustive()
    }
}

impl Parts {
    pub(crate) fn new(client: Client, watches: Informers, clock: &Clock, config: HubConfig) -> Self {
        let host = config.host.clone();
        Self {
            writer: ClusterWriter::new(client.clone(), sources::clusters(&watches)),
            recorder: EventRecorder::new(client.clone(), clock.clone(), components::REGISTRATION_CONTROLLER, &host),
            config: Arc::new(config),
            clock: clock.clone(),
            addons: Arc::default(),
            outstanding: Outstanding::default(),
            client,
            watches,
        }
    }

    /// Where add-ons belong and where they are; made for the first who asks, and shared by all.
    pub(crate) fn addon_index(&self) -> Index {
        self.addons.get_or_init(|| Index::new(&self.watches, self.clock.clone())).clone()
    }
}
