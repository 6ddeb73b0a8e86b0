//! What the controllers of a hub share: client, informers, writers, configuration.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use kube::{Api, Client, api::ListParams};
use ocm_api::{cluster::v1::ManagedCluster, components, work::v1::ManifestWork};
use ocm_runtime::{Clock, Informers, ResultExt as _, events::EventRecorder};

use crate::{
    HubConfig,
    addon::{outstanding::Outstanding, store::AddOnStore},
    caches,
    cluster_writer::ClusterWriter,
    decisions::DecisionTracker,
    error::Result,
    registration::{driver::Drivers, maintained::Maintained},
    work::store::ReplicaSetStore,
};

/// What the controllers of a component share, for as long as it leads. Cheap to clone.
#[derive(Clone)]
pub(crate) struct HubContext {
    pub(crate) client: Client,
    pub(crate) informers: Informers,
    pub(crate) recorder: EventRecorder,
    pub(crate) config: Arc<HubConfig>,
    pub(crate) drivers: Drivers,
    writer: Arc<OnceLock<ClusterWriter>>,
    pub(crate) clock: Clock,
    addons: Arc<OnceLock<AddOnStore>>,
    decisions: Arc<OnceLock<DecisionTracker>>,
    replica_sets: Arc<OnceLock<ReplicaSetStore>>,
    /// Changes of clusters that have not reached their add-ons yet.
    pub(crate) outstanding: Outstanding,
}

impl fmt::Debug for HubContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HubContext").field("config", &self.config).finish_non_exhaustive()
    }
}

impl HubContext {
    pub(crate) fn new(client: Client, informers: Informers, clock: &Clock, config: HubConfig) -> Self {
        let host = config.host.clone();
        Self {
            recorder: EventRecorder::new(client.clone(), clock.clone(), components::REGISTRATION_CONTROLLER, &host),
            drivers: Drivers::new(&config),
            config: Arc::new(config),
            writer: Arc::default(),
            addons: Arc::default(),
            decisions: Arc::default(),
            replica_sets: Arc::default(),
            outstanding: Outstanding::default(),
            clock: clock.clone(),
            client,
            informers,
        }
    }

    /// Every write to a `ManagedCluster` goes through this writer, which all callers share.
    pub(crate) fn writer(&self) -> &ClusterWriter {
        self.writer.get_or_init(|| {
            let (clusters, maintained) = (caches::clusters(&self.informers), Maintained::by(&self.config));
            ClusterWriter::new(self.client.clone(), clusters, maintained, self.clock.clone())
        })
    }

    /// What is decided on add-ons. The first caller creates it, and all callers share it.
    pub(crate) fn addon_store(&self) -> AddOnStore {
        self.addons.get_or_init(|| AddOnStore::new(&self.informers, self.decisions())).clone()
    }

    /// What is decided on replica sets. The first caller creates it, and all callers share it.
    pub(crate) fn replica_sets(&self) -> ReplicaSetStore {
        self.replica_sets.get_or_init(|| ReplicaSetStore::new(&self.informers, self.decisions())).clone()
    }

    /// The decisions of placements, for everything that follows placements. The first caller creates it, and all callers
    /// share it.
    pub(crate) fn decisions(&self) -> DecisionTracker {
        self.decisions.get_or_init(|| DecisionTracker::new(&self.informers)).clone()
    }

    /// Whether the API server has a cluster that the cache does not show. The cache leaves out clusters that it cannot
    /// read, and nothing of such a cluster may be deleted.
    pub(crate) async fn cluster_exists(&self, cluster: &str) -> Result<bool> {
        let api: Api<ManagedCluster> = Api::all(self.client.clone());
        let found = api.get_metadata_opt(cluster).await;
        Ok(found.while_trying_to("get", || format!("ManagedCluster {cluster}"))?.is_some())
    }

    /// Whether a namespace has ManifestWorks. Asked of the API server when it matters, since an informer of all works would
    /// keep the works of the whole fleet in memory.
    pub(crate) async fn works_remain(&self, namespace: &str) -> Result<bool> {
        let api: Api<ManifestWork> = Api::namespaced(self.client.clone(), namespace);
        let works = api.list_metadata(&ListParams::default().limit(1)).await;
        let works = works.while_trying_to("list", || format!("ManifestWorks in namespace {namespace}"))?;
        Ok(!works.items.is_empty())
    }
}
