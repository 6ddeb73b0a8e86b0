//! ManifestWorks, each with one ConfigMap, from their creation to Available.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::{
    Api, Client, ResourceExt as _,
    api::PostParams,
    runtime::{WatchStreamExt as _, watcher},
};
use ocm_api::{conditions, work::v1::ManifestWork};
use ocm_runtime::conditions::is_true;
use serde_json::json;
use tokio::sync::mpsc;

use crate::figures::print_percentiles;

const PATIENCE: Duration = Duration::from_secs(300);

/// How long works took.
pub(crate) struct Load {
    /// From the first creation until the last is available.
    pub(crate) total: Duration,
    /// From creation to Available, each, sorted.
    latencies: Vec<Duration>,
}

impl Load {
    pub(crate) fn print_latencies(&self, figure: &str) {
        print_percentiles(figure, &self.latencies);
    }
}

/// A work with one ConfigMap.
pub(crate) fn work(namespace: &str, name: &str) -> Result<ManifestWork> {
    let config_map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"}, "data": {"key": "value"},
    });
    let work = json!({
        "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"workload": {"manifests": [config_map]}},
    });
    serde_json::from_value(work).context("the work is not one")
}

/// The works to create.
pub(crate) struct Plan<'a> {
    /// What their names begin with.
    pub(crate) prefix: &'a str,
    /// How many.
    pub(crate) count: usize,
    /// How many are created at a time; one means: the next when the one before is available.
    pub(crate) at_a_time: usize,
    /// The cluster that each is for.
    pub(crate) cluster: &'a (dyn Fn(usize) -> String + Sync),
}

/// Creates works and waits until each is available.
pub(crate) async fn run(client: &Client, plan: &Plan<'_>) -> Result<Load> {
    let (sender, mut available) = mpsc::unbounded_channel();
    let watching = tokio::spawn(watch(Api::all(client.clone()), sender));
    let Plan { count, at_a_time, .. } = *plan;
    let started = Instant::now();
    let mut created = HashMap::new();
    let mut latencies = Vec::new();
    if at_a_time == 1 {
        for index in 0..count {
            created.extend([create(client, plan, index).await?]);
            while latencies.len() <= index {
                take(&mut available, &created, &mut latencies).await?;
            }
        }
    } else {
        let creations = stream::iter(0..count).map(|index| create(client, plan, index));
        created = creations.buffer_unordered(at_a_time).try_collect().await?;
        while latencies.len() < count {
            take(&mut available, &created, &mut latencies).await?;
        }
    }
    let total = started.elapsed();
    watching.abort();
    latencies.sort();
    Ok(Load { total, latencies })
}

async fn create(client: &Client, plan: &Plan<'_>, index: usize) -> Result<(String, Instant)> {
    let (name, cluster) = (format!("{}-{index}", plan.prefix), (plan.cluster)(index));
    let api: Api<ManifestWork> = Api::namespaced(client.clone(), &cluster);
    let created = Instant::now();
    api.create(&PostParams::default(), &work(&cluster, &name)?).await.context("failed to create a work")?;
    Ok((name, created))
}

type Seen = (String, Instant);

async fn take(
    available: &mut mpsc::UnboundedReceiver<Seen>,
    created: &HashMap<String, Instant>,
    latencies: &mut Vec<Duration>,
) -> Result<()> {
    let next = tokio::time::timeout(PATIENCE, available.recv()).await;
    let (name, at) = next.with_context(|| format!("gave up after {PATIENCE:?}"))?.context("the watch ended")?;
    if let Some(created) = created.get(&name) {
        latencies.push(at - *created);
    }
    Ok(())
}

/// Tells of every work once, when it is first seen available.
async fn watch(api: Api<ManifestWork>, sender: mpsc::UnboundedSender<Seen>) -> Result<()> {
    let mut works = std::pin::pin!(watcher::watcher(api, watcher::Config::default()).applied_objects());
    let mut told = std::collections::HashSet::new();
    while let Some(work) = works.try_next().await? {
        let conditions = work.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        let done =
            [conditions::work::APPLIED, conditions::work::AVAILABLE].iter().all(|type_| is_true(conditions, type_));
        if done && told.insert(work.name_any()) && sender.send((work.name_any(), Instant::now())).is_err() {
            break;
        }
    }
    Ok(())
}
