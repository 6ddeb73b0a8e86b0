//! ManifestWorks, each with one ConfigMap, from their creation to Available.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::{
    Api, ResourceExt as _,
    api::PostParams,
    runtime::{WatchStreamExt as _, watcher},
};
use ocm_api::{conditions, work::v1::ManifestWork};
use ocm_runtime::conditions::is_true;
use serde_json::json;
use tokio::sync::mpsc;

use crate::{
    figures::print,
    product::{CLUSTER, Product},
};

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
        for (name, share) in [("p50", 50), ("p90", 90), ("p99", 99)] {
            let index = (self.latencies.len() * share / 100).min(self.latencies.len() - 1);
            print(&format!("{figure}, {name}"), self.latencies[index].as_secs_f64() * 1000.0, "ms");
        }
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

/// Creates so many works, so many at a time, and waits until each is available.
///
/// One at a time means: the next is created when the one before is available.
pub(crate) async fn run(product: &Product, prefix: &str, count: usize, at_a_time: usize) -> Result<Load> {
    let api: Api<ManifestWork> = Api::namespaced(product.hub_client().await?, CLUSTER);
    let (sender, mut available) = mpsc::unbounded_channel();
    let watching = tokio::spawn(watch(api.clone(), sender));
    let started = Instant::now();
    let mut created = HashMap::new();
    let mut latencies = Vec::new();
    if at_a_time == 1 {
        for index in 0..count {
            created.extend([create(&api, prefix, index).await?]);
            while latencies.len() <= index {
                take(&mut available, &created, &mut latencies).await?;
            }
        }
    } else {
        let creations = stream::iter(0..count).map(|index| create(&api, prefix, index));
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

async fn create(api: &Api<ManifestWork>, prefix: &str, index: usize) -> Result<(String, Instant)> {
    let name = format!("{prefix}-{index}");
    let created = Instant::now();
    api.create(&PostParams::default(), &work(CLUSTER, &name)?).await.context("failed to create a work")?;
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
