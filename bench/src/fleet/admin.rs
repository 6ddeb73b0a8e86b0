//! An administrator of the hub who accepts every cluster and approves its first request at once.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use futures::TryStreamExt as _;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::{
    Api, Client, ResourceExt as _,
    api::{Patch, PatchParams},
    runtime::{WatchStreamExt as _, watcher},
};
use ocm_api::{cluster::v1::ManagedCluster, conditions, labels};
use ocm_runtime::conditions::is_true;
use serde_json::json;
use tokio::{sync::oneshot, task::JoinHandle};

use crate::figures;

/// How long a cluster may take to become available.
const PATIENCE: Duration = Duration::from_secs(300);

/// Ends when it is dropped.
pub(super) struct Admin {
    waiting: Arc<Mutex<Waiting>>,
    tasks: [JoinHandle<()>; 2],
}

type Waiting = HashMap<String, oneshot::Sender<Instant>>;

impl Admin {
    pub(super) fn start(client: Client) -> Self {
        let waiting: Arc<Mutex<Waiting>> = Arc::default();
        let clusters = accept_all(client.clone(), waiting.clone());
        let tasks = [tokio::spawn(telling(clusters)), tokio::spawn(telling(approve_all(client)))];
        Self { waiting, tasks }
    }

    /// When the cluster was first seen available; ask before it can be.
    pub(super) fn available(&self, cluster: &str) -> impl Future<Output = Result<Instant>> + use<> {
        let (sender, receiver) = oneshot::channel();
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(cluster.to_owned(), sender);
        async move {
            let seen = tokio::time::timeout(PATIENCE, receiver).await;
            seen.with_context(|| format!("gave up after {PATIENCE:?}"))?.context("the administrator is gone")
        }
    }
}

impl Drop for Admin {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

async fn telling(work: impl Future<Output = Result<()>>) {
    if let Err(error) = work.await {
        figures::complain(&format!("the administrator stopped working: {error:#}"));
    }
}

async fn accept_all(client: Client, waiting: Arc<Mutex<Waiting>>) -> Result<()> {
    let api: Api<ManagedCluster> = Api::all(client);
    let mut clusters = std::pin::pin!(watcher::watcher(api.clone(), watcher::Config::default()).applied_objects());
    let mut accepted = HashSet::new();
    while let Some(cluster) = clusters.try_next().await? {
        let name = cluster.name_any();
        if accepted.insert(name.clone()) {
            tokio::spawn(telling(accept(api.clone(), name.clone())));
        }
        let status = cluster.status.unwrap_or_default();
        if is_true(&status.conditions, conditions::cluster::AVAILABLE)
            && let Some(sender) = waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&name)
        {
            // The receiver that gave up waiting has reported that.
            let _ = sender.send(Instant::now());
        }
    }
    Ok(())
}

async fn accept(api: Api<ManagedCluster>, name: String) -> Result<()> {
    let patch = json!({"spec": {"hubAcceptsClient": true}});
    let accepted = api.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await;
    accepted.map(|_| ()).with_context(|| format!("failed to accept {name}"))
}

async fn approve_all(client: Client) -> Result<()> {
    let api: Api<CertificateSigningRequest> = Api::all(client);
    let config = watcher::Config::default().labels(labels::CLUSTER_NAME);
    let mut requests = std::pin::pin!(watcher::watcher(api.clone(), config).applied_objects());
    let mut approved = HashSet::new();
    while let Some(request) = requests.try_next().await? {
        let name = request.name_any();
        if approved.insert(name.clone()) {
            tokio::spawn(telling(approve(api.clone(), name)));
        }
    }
    Ok(())
}

async fn approve(api: Api<CertificateSigningRequest>, name: String) -> Result<()> {
    let condition = json!({"type": "Approved", "status": "True", "reason": "Bench", "message": "approved at once"});
    let patch = json!({"status": {"conditions": [condition]}});
    let approved = api.patch_approval(&name, &PatchParams::default(), &Patch::Merge(patch)).await;
    approved.map(|_| ()).with_context(|| format!("failed to approve {name}"))
}
