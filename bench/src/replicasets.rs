//! One replica set for all clusters: until every cluster has its work, and until the set's status says that all are available.
//!
//! One real hub, and clusters without agents: what agents report is written here. The same writes are first made by a bare client
//! ([`floor`]).

mod floor;

use std::{
    collections::HashSet,
    pin::pin,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client, Config, ResourceExt as _,
    api::{Patch, PatchParams, PostParams},
    config::KubeConfigOptions,
    runtime::{WatchStreamExt as _, watcher},
};
use ocm_api::{
    cluster::v1beta1::{Placement, PlacementDecision},
    components, labels,
    work::{v1::ManifestWork, v1alpha1::ManifestWorkReplicaSet},
};
use ocm_testing::{ControlPlane, Process, TempDir, eventually_within};
use serde_json::{Value, json};

use crate::{AT_A_TIME, figures::print, megabytes, product};

/// Where the set and its placement are.
const NAMESPACE: &str = "bench";
const PLACEMENT: &str = "all";
const SET: &str = "settings";
/// OCM's limit.
const CLUSTERS_PER_DECISION: usize = 100;
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(300);

/// A control plane with everything installed, and the namespaces of clusters that a placement has chosen.
struct Bench {
    client: Client,
    plane: ControlPlane,
    folder: TempDir,
    clusters: Vec<String>,
}

/// Lets one set have a work on so many clusters, changes its template, and deletes it.
pub(crate) async fn measure(count: usize) -> Result<()> {
    let bench = Bench::prepare(count).await?;
    // The first writes of a kind wait until the API server has set itself up for it.
    floor::run(&bench.client, &bench.clusters[..AT_A_TIME.min(count)]).await?;
    let floor = floor::run(&bench.client, &bench.clusters).await?;
    let hub = bench.start_hub().await?;
    let figure = format!("1 replica set on {count} clusters");
    let before = hub.cpu_time()?;
    let created = bench.create().await?;
    print(&format!("{figure}, until every work exists"), created.exist.as_secs_f64(), "s");
    print(&format!("{figure}, the same writes by a bare client"), floor.as_secs_f64(), "s");
    print(&format!("{figure}, product / floor"), created.exist.as_secs_f64() / floor.as_secs_f64(), "ratio");
    print(&format!("{figure}, from the last report to a complete status"), created.complete.as_secs_f64(), "s");
    let updated = bench.update().await?;
    print(&format!("{figure}, until every work has a changed template"), updated.as_secs_f64(), "s");
    print(&format!("{figure}, CPU of ocm hub"), (hub.cpu_time()? - before).as_secs_f64(), "s");
    let memory = hub.memory()?;
    print(
        &format!("ocm hub, anonymous memory, with {count} works of a set"),
        megabytes(memory.anonymous_kb * 1024),
        "MB",
    );
    let deleted = bench.delete().await?;
    print(&format!("{figure}, until it is deleted in the foreground"), deleted.as_secs_f64(), "s");
    Ok(())
}

struct Created {
    exist: Duration,
    complete: Duration,
}

impl Bench {
    async fn prepare(count: usize) -> Result<Self> {
        let plane = ControlPlane::builder().name("replica-set-hub").start().await?;
        product::install_hub(&plane, &product::ocm_binary()?).await?;
        let config = Config::from_custom_kubeconfig(plane.admin_config(), &KubeConfigOptions::default()).await?;
        let client = ocm_runtime::client::connect(&config, "ocm-bench")?;
        let clusters: Vec<_> = (0..count).map(|index| format!("cluster-{index:05}")).collect();
        let names = clusters.iter().map(String::as_str).chain([NAMESPACE]);
        let creations = stream::iter(names).map(|name| create_namespace(&client, name));
        creations.buffer_unordered(AT_A_TIME).try_collect::<()>().await?;
        let bench = Self { client, plane, folder: TempDir::new("replicasets")?, clusters };
        bench.choose().await?;
        Ok(bench)
    }

    async fn start_hub(&self) -> Result<Process> {
        let gates = ["--feature-gates", "ManifestWorkReplicaSet=true"];
        let hub = product::start_hub_with(&self.plane, &product::ocm_binary()?, &self.folder, &gates).await?;
        // Until what just started has been digested.
        tokio::time::sleep(Duration::from_secs(5)).await;
        Ok(hub)
    }

    /// A placement that has chosen all clusters, and that the hub leaves alone.
    async fn choose(&self) -> Result<()> {
        let placements: Api<Placement> = Api::namespaced(self.client.clone(), NAMESPACE);
        let annotations = json!({"cluster.open-cluster-management.io/experimental-scheduling-disable": "true"});
        let placement = json!({"metadata": {"name": PLACEMENT, "annotations": annotations}, "spec": {}});
        placements.create(&PostParams::default(), &serde_json::from_value(placement)?).await?;
        for (index, clusters) in self.clusters.chunks(CLUSTERS_PER_DECISION).enumerate() {
            self.decide(index + 1, clusters).await?;
        }
        let group = json!({"decisionGroupIndex": 0, "decisionGroupName": "", "decisions": [], "clusterCount": 0});
        let status = json!({"status": {"numberOfSelectedClusters": self.clusters.len(), "decisionGroups": [group]}});
        placements.patch_status(PLACEMENT, &PatchParams::default(), &Patch::Merge(status)).await?;
        Ok(())
    }

    async fn decide(&self, number: usize, clusters: &[String]) -> Result<()> {
        let decisions: Api<PlacementDecision> = Api::namespaced(self.client.clone(), NAMESPACE);
        let name = components::placement_decision_name(PLACEMENT, number);
        let labels = json!({
            labels::PLACEMENT: PLACEMENT, labels::DECISION_GROUP_NAME: "", labels::DECISION_GROUP_INDEX: "0",
        });
        let decision = json!({"metadata": {"name": name, "labels": labels}});
        decisions.create(&PostParams::default(), &serde_json::from_value(decision)?).await?;
        let chosen: Vec<_> = clusters.iter().map(|name| json!({"clusterName": name, "reason": ""})).collect();
        let status = Patch::Merge(json!({"status": {"decisions": chosen}}));
        decisions.patch_status(&name, &PatchParams::default(), &status).await?;
        Ok(())
    }

    fn sets(&self) -> Api<ManifestWorkReplicaSet> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    async fn create(&self) -> Result<Created> {
        let watching = tokio::spawn(works_of_generation(self.client.clone(), 1, self.clusters.len()));
        let started = Instant::now();
        self.sets().create(&PostParams::default(), &serde_json::from_value(set("1"))?).await?;
        let works = patiently(watching).await?;
        let exist = started.elapsed();
        let reports = stream::iter(&works).map(|work| report(&self.client, work));
        reports.buffer_unordered(AT_A_TIME).try_collect::<()>().await?;
        let reported = Instant::now();
        let count = i64::try_from(self.clusters.len())?;
        eventually_within(PATIENCE, "every work is counted as available", || async {
            let status = self.sets().get(SET).await?.status.unwrap_or_default();
            Ok::<_, kube::Error>(status.summary.available == count)
        })
        .await?;
        Ok(Created { exist, complete: reported.elapsed() })
    }

    async fn update(&self) -> Result<Duration> {
        let watching = tokio::spawn(works_of_generation(self.client.clone(), 2, self.clusters.len()));
        let started = Instant::now();
        let patch = Patch::Merge(json!({"spec": set("2")["spec"]}));
        self.sets().patch(SET, &PatchParams::default(), &patch).await?;
        patiently(watching).await?;
        Ok(started.elapsed())
    }

    async fn delete(&self) -> Result<Duration> {
        let started = Instant::now();
        self.sets().delete(SET, &<_>::default()).await?;
        eventually_within(PATIENCE, "the set is gone", || async {
            Ok::<_, kube::Error>(self.sets().get_opt(SET).await?.is_none())
        })
        .await?;
        Ok(started.elapsed())
    }
}

async fn patiently<T>(task: tokio::task::JoinHandle<Result<T>>) -> Result<T> {
    tokio::time::timeout(PATIENCE, task).await.with_context(|| format!("gave up after {PATIENCE:?}"))??
}

async fn create_namespace(client: &Client, name: &str) -> Result<()> {
    let namespace = serde_json::from_value(json!({"metadata": {"name": name}}))?;
    Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &namespace).await?;
    Ok(())
}

fn template(value: &str) -> Value {
    let manifest = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"value": value},
        "metadata": {"name": "settings", "namespace": "default"}});
    json!({"workload": {"manifests": [manifest]}})
}

fn set(value: &str) -> Value {
    let refs = json!([{"name": PLACEMENT, "rolloutStrategy": {"type": "All"}}]);
    let spec =
        json!({"manifestWorkTemplate": template(value), "placementRefs": refs, "cascadeDeletionPolicy": "Foreground"});
    json!({"metadata": {"name": SET}, "spec": spec})
}

/// What an agent reports on a work that is applied.
async fn report(client: &Client, work: &ManifestWork) -> Result<()> {
    let condition = |type_: &str| {
        json!({"type": type_, "status": "True", "reason": "Bench", "message": "", "observedGeneration": 1,
            "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    let status = Patch::Merge(json!({"status": {"conditions": [condition("Applied"), condition("Available")]}}));
    let api: Api<ManifestWork> = Api::namespaced(client.clone(), &work.namespace().unwrap_or_default());
    api.patch_status(&work.name_any(), &PatchParams::default(), &status).await?;
    Ok(())
}

/// Waits until there are works of so many clusters in that generation.
async fn works_of_generation(client: Client, generation: i64, count: usize) -> Result<Vec<ManifestWork>> {
    let label = format!("{}={NAMESPACE}.{SET}", labels::MANIFEST_WORK_REPLICA_SET);
    let config = watcher::Config::default().labels(&label);
    let mut works = pin!(watcher::watcher(Api::<ManifestWork>::all(client), config).applied_objects());
    let (mut found, mut clusters) = (Vec::with_capacity(count), HashSet::new());
    while found.len() < count {
        let work = works.try_next().await?.context("the watch ended")?;
        if work.metadata.generation == Some(generation) && clusters.insert(work.namespace()) {
            found.push(work);
        }
    }
    Ok(found)
}
