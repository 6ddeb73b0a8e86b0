//! Placements that each choose some of many clusters, by three prioritizers, until all have chosen.
//!
//! One real hub, and clusters without agents. The same writes are first made by a bare client ([`floor`]).

mod floor;

use std::{
    collections::HashSet,
    pin::pin,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::{core::v1::Namespace, events::v1::Event};
use kube::{
    Api, Client, Config, ResourceExt as _,
    api::{ListParams, Patch, PatchParams, PostParams},
    config::KubeConfigOptions,
    runtime::{WatchStreamExt as _, watcher},
};
use ocm_api::{
    cluster::{
        v1::ManagedCluster,
        v1beta1::{Placement, PlacementDecision},
        v1beta2::ManagedClusterSetBinding,
    },
    conditions::placement::SATISFIED,
    taints,
};
use ocm_runtime::conditions::is_true;
use ocm_testing::{ControlPlane, Process, TempDir, eventually_within};
use serde_json::{Value, json};

use crate::{
    AT_A_TIME,
    figures::{print, print_percentiles},
    megabytes, product,
};

/// Where the placements are.
const NAMESPACE: &str = "bench";
/// How many clusters each of them wants.
const WANTED: usize = 10;
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(300);

/// A control plane with everything installed, and clusters that are registered.
struct Bench {
    client: Client,
    plane: ControlPlane,
    folder: TempDir,
    clusters: usize,
}

/// Lets so many placements choose from as many clusters.
pub(crate) async fn measure(count: usize) -> Result<()> {
    let bench = Bench::prepare(count).await?;
    // The first writes of a kind wait until the API server has set itself up for it.
    floor::run(&bench.client, AT_A_TIME).await?;
    let floor = floor::run(&bench.client, count).await?;
    let hub = bench.start_hub().await?;
    let figure = format!("{count} placements of {WANTED} out of {count} clusters");
    print_memory(&hub, &format!("with {count} clusters"))?;
    let before = hub.cpu_time()?;
    let mut took = Vec::new();
    let started = Instant::now();
    let watching = tokio::spawn(satisfied(bench.client.clone(), count));
    let creations = stream::iter(0..count).map(|index| bench.place(index));
    let created: Vec<Instant> = creations.buffered(AT_A_TIME).try_collect().await?;
    let seen =
        tokio::time::timeout(PATIENCE, watching).await.with_context(|| format!("gave up after {PATIENCE:?}"))??;
    for (index, at) in seen? {
        took.push(at - created.get(index).copied().unwrap_or(at));
    }
    took.sort();
    let total = started.elapsed();
    print(&format!("{figure}, until all are satisfied"), total.as_secs_f64(), "s");
    print(&format!("{figure}, the same writes by a bare client"), floor.as_secs_f64(), "s");
    bench.wait_for_events().await?;
    let told = started.elapsed();
    print(&format!("{figure}, until their events are written too"), told.as_secs_f64(), "s");
    print(&format!("{figure}, product / floor"), told.as_secs_f64() / floor.as_secs_f64(), "ratio");
    print_percentiles(&format!("{figure}, create to satisfied"), &took);
    settle().await;
    print(&format!("{figure}, CPU of ocm hub"), (hub.cpu_time()? - before).as_secs_f64(), "s");
    print_memory(&hub, &format!("with {count} placements"))?;
    bench.print_spread(&figure).await
}

/// Waits until what just happened has been digested.
async fn settle() {
    tokio::time::sleep(Duration::from_secs(5)).await;
}

fn print_memory(hub: &Process, when: &str) -> Result<()> {
    let memory = hub.memory()?;
    print(&format!("ocm hub, resident memory, {when}"), megabytes(memory.resident_kb * 1024), "MB");
    print(&format!("ocm hub, anonymous memory, {when}"), megabytes(memory.anonymous_kb * 1024), "MB");
    Ok(())
}

impl Bench {
    /// So many clusters, each with another amount of memory, a namespace that all are bound to, and nothing of ours
    /// running.
    async fn prepare(clusters: usize) -> Result<Self> {
        let plane = ControlPlane::builder().name("placement-hub").start().await?;
        product::install_hub(&plane, &product::ocm_binary()?).await?;
        let config = Config::from_custom_kubeconfig(plane.admin_config(), &KubeConfigOptions::default()).await?;
        let client = ocm_runtime::client::connect(&config, "ocm-bench")?;
        let creations = stream::iter(0..clusters).map(|index| create_cluster(&client, index));
        creations.buffer_unordered(AT_A_TIME).try_collect::<()>().await?;
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let namespace = serde_json::from_value(json!({"metadata": {"name": NAMESPACE}}))?;
        namespaces.create(&PostParams::default(), &namespace).await?;
        let bindings: Api<ManagedClusterSetBinding> = Api::namespaced(client.clone(), NAMESPACE);
        let spec = serde_json::from_value(json!({"clusterSet": "global"}))?;
        bindings.create(&PostParams::default(), &ManagedClusterSetBinding::new(NAMESPACE, "global", spec)).await?;
        Ok(Self { client, plane, folder: TempDir::new("placements")?, clusters })
    }

    /// Starts the hub, and waits until it has written that each cluster's availability is unknown.
    async fn start_hub(&self) -> Result<Process> {
        let hub = product::start_hub(&self.plane, &product::ocm_binary()?, &self.folder).await?;
        let clusters: Api<ManagedCluster> = Api::all(self.client.clone());
        let is_tainted = |cluster: &ManagedCluster| !cluster.spec.taints.is_empty() && !cluster.finalizers().is_empty();
        eventually_within(PATIENCE, "the hub has processed every cluster", || async {
            let all = clusters.list(&ListParams::default()).await?.items;
            Ok::<_, kube::Error>(all.iter().filter(|cluster| is_tainted(cluster)).count() == self.clusters)
        })
        .await?;
        settle().await;
        Ok(hub)
    }

    /// Creates a placement; when.
    async fn place(&self, index: usize) -> Result<Instant> {
        let api: Api<Placement> = Api::namespaced(self.client.clone(), NAMESPACE);
        let at = Instant::now();
        api.create(&PostParams::default(), &placement(&name(index))?).await.context("failed to create a placement")?;
        Ok(at)
    }

    /// Waits until each placement has its three events.
    async fn wait_for_events(&self) -> Result<()> {
        let events: Api<Event> = Api::namespaced(self.client.clone(), NAMESPACE);
        let one = ListParams::default().limit(1);
        eventually_within(PATIENCE, "all events are written", || async {
            let remaining = events.list_metadata(&one).await?.metadata.remaining_item_count.unwrap_or_default();
            Ok::<_, kube::Error>(usize::try_from(remaining).is_ok_and(|remaining| remaining + 1 >= 3 * self.clusters))
        })
        .await
    }

    /// How evenly the clusters are chosen.
    async fn print_spread(&self, figure: &str) -> Result<()> {
        let decisions: Api<PlacementDecision> = Api::namespaced(self.client.clone(), NAMESPACE);
        let mut times = std::collections::HashMap::<String, u32>::new();
        for decision in decisions.list(&ListParams::default()).await?.items {
            for chosen in decision.status.unwrap_or_default().decisions {
                *times.entry(chosen.cluster_name).or_default() += 1;
            }
        }
        let most = times.values().max().copied().unwrap_or_default();
        print(&format!("{figure}, placements on the cluster chosen most"), f64::from(most), "placements");
        Ok(())
    }
}

fn name(index: usize) -> String {
    format!("placement-{index}")
}

/// One that prefers clusters that others choose less, that are chosen already, and that have more memory. No agent says
/// that the clusters are well.
fn placement(name: &str) -> Result<Placement> {
    let memory = json!({"scoreCoordinate": {"type": "BuiltIn", "builtIn": "ResourceAllocatableMemory"}, "weight": 1});
    let spec: Value = json!({
        "numberOfClusters": WANTED,
        "prioritizerPolicy": {"configurations": [memory]},
        "tolerations": [{"key": taints::UNREACHABLE, "operator": "Exists"}],
    });
    Ok(Placement::new(NAMESPACE, name, serde_json::from_value(spec)?))
}

async fn create_cluster(client: &Client, index: usize) -> Result<()> {
    let name = format!("cluster-{index:04}");
    let clusters: Api<ManagedCluster> = Api::all(client.clone());
    clusters.create(&PostParams::default(), &ManagedCluster::new(&name, <_>::default())).await?;
    let memory = json!({"memory": format!("{}Gi", 16 + index % 64)});
    let status = Patch::Merge(json!({"status": {"capacity": memory, "allocatable": memory}}));
    clusters.patch_status(&name, &PatchParams::default(), &status).await?;
    Ok(())
}

/// When each of so many placements was first seen satisfied, by its number.
async fn satisfied(client: Client, count: usize) -> Result<Vec<(usize, Instant)>> {
    let api: Api<Placement> = Api::namespaced(client, NAMESPACE);
    let mut placements = pin!(watcher::watcher(api, watcher::Config::default()).applied_objects());
    let (mut done, mut seen) = (Vec::with_capacity(count), HashSet::new());
    while done.len() < count {
        let placement = placements.try_next().await?.context("the watch ended")?;
        let conditions = placement.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        let number = placement.name_any().rsplit('-').next().and_then(|number| number.parse().ok());
        if let Some(number) = number.filter(|number| is_true(conditions, SATISFIED) && seen.insert(*number)) {
            done.push((number, Instant::now()));
        }
    }
    Ok(done)
}
