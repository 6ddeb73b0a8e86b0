//! Something happens to all clusters at once: their leases expire, their agents come back, they are deleted.
//!
//! The clusters are objects without agents, in a set that is bound to a namespace whose placement selects all of them.

use std::{
    collections::BTreeSet,
    pin::pin,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use futures::TryStreamExt as _;
use kube::{
    Api, Client, ResourceExt as _,
    api::PostParams,
    runtime::watcher::{self, Event},
};
use ocm_api::cluster::{v1::ManagedCluster, v1beta1::Placement, v1beta2::ManagedClusterSetBinding};
use ocm_runtime::Clock;
use ocm_testing::{JoinedClusters, eventually_within};
use serde_json::json;

use super::{
    DIGESTION,
    hub::{Hub, Installed},
    usage::Usage,
    writes::Writes,
};
use crate::figures::print;

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(600);
/// The lease duration while nothing is lost, and while everything is.
const LEASE_SECONDS: [u32; 2] = [60, 1];

struct Storm {
    clusters: JoinedClusters,
    client: Client,
    hub: Hub,
}

/// What a cluster looks like when the hub has followed.
type IsDone = fn(&ManagedCluster) -> bool;

/// Measures the three storms with so many clusters.
pub(crate) async fn measure(count: usize) -> Result<()> {
    ocm_testing::allow_open_files(1000)?;
    let storm = Storm::prepare(count).await?;
    let [long, short] = LEASE_SECONDS;
    storm.measure("leases lost at once", storm.clusters.set_lease_duration(short), is_tainted).await?;
    storm.clusters.set_lease_duration(long).await?;
    storm.measure("leases regained at once", storm.regain(), |cluster| !is_tainted(cluster)).await?;
    storm.measure("deleted at once", storm.clusters.delete(), |_| false).await
}

fn is_tainted(cluster: &ManagedCluster) -> bool {
    !cluster.spec.taints.is_empty()
}

impl Storm {
    async fn prepare(count: usize) -> Result<Self> {
        let installed = Installed::new().await?;
        let client = installed.client().await?;
        let clusters = JoinedClusters::create(&client, count, Clock::System.now()).await?;
        let hub = installed.start().await?;
        let storm = Self { clusters, client, hub };
        storm.place().await?;
        tokio::time::sleep(DIGESTION).await;
        Ok(storm)
    }

    /// Has a placement select every cluster.
    async fn place(&self) -> Result<()> {
        let bindings: Api<ManagedClusterSetBinding> = Api::namespaced(self.client.clone(), "default");
        let binding = json!({"metadata": {"name": "global"}, "spec": {"clusterSet": "global"}});
        bindings.create(&PostParams::default(), &serde_json::from_value(binding)?).await?;
        let placements: Api<Placement> = Api::namespaced(self.client.clone(), "default");
        let placement = json!({"metadata": {"name": "all"}, "spec": {}});
        placements.create(&PostParams::default(), &serde_json::from_value(placement)?).await?;
        eventually_within(PATIENCE, "the placement has selected every cluster", || async {
            let status = placements.get("all").await?.status.unwrap_or_default();
            let selected = usize::try_from(status.number_of_selected_clusters)?;
            anyhow::Ok(selected == self.clusters.names().len())
        })
        .await
    }

    async fn regain(&self) -> Result<()> {
        self.clusters.renew(Clock::System.now()).await?;
        self.clusters.report_available(Clock::System.now()).await
    }

    /// From the beginning of what happens until every cluster is done or gone.
    async fn measure(&self, what: &str, happens: impl Future<Output = Result<()>>, is_done: IsDone) -> Result<()> {
        let (before, start) = (Usage::now(&self.hub)?, self.hub.audit()?.position()?);
        let count = self.clusters.names().len();
        let figure = format!("{count} clusters, {what}");
        let started = Instant::now();
        tokio::try_join!(happens, self.until_all(is_done))?;
        print(&format!("{figure}: until the hub has followed"), started.elapsed().as_secs_f64(), "s");
        tokio::time::sleep(DIGESTION).await;
        before.print_server_cpu_since(&self.hub, &figure)?;
        Usage::now(&self.hub)?.print_servers(&figure);
        Writes::of(&self.hub.audit()?.since(start)?).print_kinds_each(&format!("{figure}: per cluster"), count);
        Ok(())
    }

    async fn until_all(&self, is_done: IsDone) -> Result<()> {
        let waiting = tokio::time::timeout(PATIENCE, self.watch_until_all(is_done)).await;
        waiting.with_context(|| format!("gave up after {PATIENCE:?}"))?
    }

    async fn watch_until_all(&self, is_done: IsDone) -> Result<()> {
        let clusters: Api<ManagedCluster> = Api::all(self.client.clone());
        let mut events = pin!(watcher::watcher(clusters, watcher::Config::default()));
        let mut left = BTreeSet::new();
        let mut is_complete = false;
        while !is_complete || !left.is_empty() {
            match events.try_next().await?.context("the watch ended")? {
                Event::Init => left.clear(),
                // What the list lacks is gone already.
                Event::InitApply(cluster) if !is_done(&cluster) => _ = left.insert(cluster.name_any()),
                Event::InitDone => is_complete = true,
                Event::Apply(cluster) if is_done(&cluster) => _ = left.remove(&cluster.name_any()),
                Event::Delete(cluster) => _ = left.remove(&cluster.name_any()),
                Event::Apply(_) | Event::InitApply(_) => {}
            }
        }
        Ok(())
    }
}
