//! An administrator who approves and accepts at once.

use std::time::Duration;

use anyhow::{Context as _, Result};
use futures::TryStreamExt as _;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::{
    Api, Client, Resource,
    api::{Patch, PatchParams},
    runtime::{WatchStreamExt as _, watcher},
};
use ocm_api::{cluster::v1::ManagedCluster, conditions, labels};
use ocm_runtime::conditions::is_true;
use serde::de::DeserializeOwned;
use serde_json::json;

const PATIENCE: Duration = Duration::from_secs(120);

/// Accepts the cluster and approves its first request, each as soon as it appears.
pub(crate) async fn accept(client: Client, cluster: &'static str) -> Result<()> {
    let accepting = accept_cluster(client.clone(), cluster);
    tokio::try_join!(accepting, approve_request(client, cluster)).map(|_| ())
}

async fn accept_cluster(client: Client, cluster: &str) -> Result<()> {
    let api: Api<ManagedCluster> = Api::all(client);
    first(&api, watcher::Config::default().fields(&format!("metadata.name={cluster}")), |_| true).await?;
    let patch = json!({"spec": {"hubAcceptsClient": true}});
    api.patch(cluster, &PatchParams::default(), &Patch::Merge(patch)).await.context("failed to accept the cluster")?;
    Ok(())
}

async fn approve_request(client: Client, cluster: &str) -> Result<()> {
    let api: Api<CertificateSigningRequest> = Api::all(client);
    let config = watcher::Config::default().labels(&format!("{}={cluster}", labels::CLUSTER_NAME));
    let request = first(&api, config, |_| true).await?;
    let approved = json!({"type": "Approved", "status": "True", "reason": "Bench", "message": "approved at once"});
    let patch = json!({"status": {"conditions": [approved]}});
    let name = request.metadata.name.context("the request has no name")?;
    api.patch_approval(&name, &PatchParams::default(), &Patch::Merge(patch)).await.context("failed to approve")?;
    Ok(())
}

/// Waits until the cluster is available.
pub(crate) async fn until_available(client: &Client, cluster: &str) -> Result<()> {
    let api: Api<ManagedCluster> = Api::all(client.clone());
    let config = watcher::Config::default().fields(&format!("metadata.name={cluster}"));
    let available = |cluster: &ManagedCluster| {
        cluster.status.as_ref().is_some_and(|status| is_true(&status.conditions, conditions::cluster::AVAILABLE))
    };
    first(&api, config, available).await.map(|_| ())
}

/// The first object of a watch that is as wanted.
async fn first<K>(api: &Api<K>, config: watcher::Config, wanted: impl Fn(&K) -> bool) -> Result<K>
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned + Send + 'static,
{
    let mut objects = std::pin::pin!(watcher::watcher(api.clone(), config).applied_objects());
    let search = async {
        while let Some(object) = objects.try_next().await? {
            if wanted(&object) {
                return Ok(object);
            }
        }
        anyhow::bail!("the watch ended")
    };
    tokio::time::timeout(PATIENCE, search).await.with_context(|| format!("gave up after {PATIENCE:?}"))?
}
