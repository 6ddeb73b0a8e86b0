//! Creating, updating or deleting works, each with one object, and waiting until the agent has done the same.

use std::{
    collections::HashMap,
    fmt,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{
    Api, Client, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams, PostParams},
    runtime::watcher::{self, Event},
};
use ocm_api::{conditions, work::v1::ManifestWork};
use ocm_runtime::conditions::{find, is_true};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::figures::print_percentiles;

const PATIENCE: Duration = Duration::from_secs(300);

/// What is done to each work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Until it is Available.
    Create,
    /// Its object gets another value, until that is Applied.
    Update,
    /// Until it is gone.
    Delete,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Create => "create to Available",
            Self::Update => "update to Applied",
            Self::Delete => "delete to gone",
        })
    }
}

/// How long works took.
pub(crate) struct Load {
    /// From the first request until the last is done.
    pub(crate) total: Duration,
    /// From request to done, each, sorted.
    latencies: Vec<Duration>,
}

impl Load {
    pub(crate) fn print_latencies(&self, figure: &str) {
        print_percentiles(figure, &self.latencies);
    }
}

/// The works.
pub(crate) struct Plan<'a> {
    /// What their names begin with.
    pub(crate) prefix: &'a str,
    /// How many.
    pub(crate) count: usize,
    /// How many requests are sent at a time; one means: the next when the work before is done.
    pub(crate) at_a_time: usize,
    /// The cluster that each is for.
    pub(crate) cluster: &'a (dyn Fn(usize) -> String + Sync),
    /// Its object, by the number and the name of the work and a value that an update changes.
    pub(crate) manifest: fn(usize, &str, &str) -> Value,
}

/// A work with these objects.
pub(crate) fn work(namespace: &str, name: &str, manifests: &Value) -> Result<ManifestWork> {
    let work = json!({
        "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"workload": {"manifests": manifests}},
    });
    serde_json::from_value(work).context("the work is not one")
}

/// A ConfigMap with one value.
pub(crate) fn config_map(name: &str, value: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"}, "data": {"key": value},
    })
}

/// Takes a step with all works of a plan, and waits until each is done.
pub(crate) async fn run(client: &Client, step: Step, plan: &Plan<'_>) -> Result<Load> {
    let (sender, done) = mpsc::unbounded_channel();
    let watching = tokio::spawn(watch(Api::all(client.clone()), step, sender));
    let mut run = Run { done, requested: HashMap::new(), latencies: Vec::new() };
    run.next().await?;
    let started = Instant::now();
    if plan.at_a_time == 1 {
        for index in 0..plan.count {
            run.requested.extend([request(client, step, plan, index).await?]);
            run.until(index + 1).await?;
        }
    } else {
        let requests = stream::iter(0..plan.count).map(|index| request(client, step, plan, index));
        run.requested = requests.buffer_unordered(plan.at_a_time).try_collect().await?;
        run.until(plan.count).await?;
    }
    let total = started.elapsed();
    watching.abort();
    run.latencies.sort();
    Ok(Load { total, latencies: run.latencies })
}

/// What is known while works are waited for.
struct Run {
    done: mpsc::UnboundedReceiver<Seen>,
    requested: HashMap<String, Instant>,
    latencies: Vec<Duration>,
}

/// The name of a work that is done; empty when the watch has begun.
type Seen = (String, Instant);

impl Run {
    async fn next(&mut self) -> Result<Seen> {
        let next = tokio::time::timeout(PATIENCE, self.done.recv()).await;
        next.with_context(|| format!("gave up after {PATIENCE:?}"))?.context("the watch ended")
    }

    async fn until(&mut self, count: usize) -> Result<()> {
        while self.latencies.len() < count {
            let (name, at) = self.next().await?;
            self.latencies.extend(self.requested.get(&name).map(|requested| at - *requested));
        }
        Ok(())
    }
}

async fn request(client: &Client, step: Step, plan: &Plan<'_>, index: usize) -> Result<(String, Instant)> {
    let (name, cluster) = (format!("{}-{index}", plan.prefix), (plan.cluster)(index));
    let api: Api<ManifestWork> = Api::namespaced(client.clone(), &cluster);
    let manifests = |value: &str| json!([(plan.manifest)(index, &name, value)]);
    let requested = Instant::now();
    match step {
        Step::Create => {
            let work = work(&cluster, &name, &manifests("value"))?;
            api.create(&PostParams::default(), &work).await.map(|_| ())
        }
        Step::Update => {
            let patch = json!({"spec": {"workload": {"manifests": manifests("another")}}});
            api.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await.map(|_| ())
        }
        Step::Delete => api.delete(&name, &DeleteParams::default()).await.map(|_| ()),
    }
    .with_context(|| format!("failed to write work {name}"))?;
    Ok((name, requested))
}

/// Creates a work; how long it took until it was available.
pub(super) async fn until_available(client: &Client, work: &ManifestWork) -> Result<Duration> {
    let api: Api<ManifestWork> = Api::namespaced(client.clone(), &work.namespace().unwrap_or_default());
    let (sender, done) = mpsc::unbounded_channel();
    let watching = tokio::spawn(watch(api.clone(), Step::Create, sender));
    let mut run = Run { done, requested: HashMap::new(), latencies: Vec::new() };
    run.next().await?;
    run.requested.insert(work.name_any(), Instant::now());
    api.create(&PostParams::default(), work).await.context("failed to create the work")?;
    run.until(1).await?;
    watching.abort();
    Ok(run.latencies.into_iter().sum())
}

/// Sends that the watch has begun, then each work once, when it is first seen done.
async fn watch(api: Api<ManifestWork>, step: Step, sender: mpsc::UnboundedSender<Seen>) -> Result<()> {
    let mut events = std::pin::pin!(watcher::watcher(api, watcher::Config::default()));
    let mut sent = std::collections::HashSet::new();
    while let Some(event) = events.try_next().await? {
        let name = match &event {
            Event::InitDone => Some(String::new()),
            Event::InitApply(work) | Event::Apply(work) => is_done(step, work).then(|| work.name_any()),
            Event::Delete(work) => (step == Step::Delete).then(|| work.name_any()),
            Event::Init => None,
        };
        let unsent = name.filter(|name| sent.insert(name.clone()));
        if unsent.is_some_and(|name| sender.send((name, Instant::now())).is_err()) {
            break;
        }
    }
    Ok(())
}

fn is_done(step: Step, work: &ManifestWork) -> bool {
    let conditions = work.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let is_current = |condition: &Condition| condition.observed_generation == work.metadata.generation;
    let is_applied = is_true(conditions, conditions::work::APPLIED)
        && find(conditions, conditions::work::APPLIED).is_some_and(is_current);
    match step {
        Step::Create => is_applied && is_true(conditions, conditions::work::AVAILABLE),
        Step::Update => is_applied && work.metadata.generation > Some(1),
        Step::Delete => false,
    }
}
