//! The same writes by a bare client: what the control plane allows. For each cluster that is one work.

use std::time::{Duration, Instant};

use anyhow::Result;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, PostParams},
};
use ocm_api::{labels, work::v1::ManifestWork};
use serde_json::json;

use super::template;
use crate::AT_A_TIME;

/// Creates a work on each cluster, and deletes them again; how long the creation took.
pub(super) async fn run(client: &Client, clusters: &[String]) -> Result<Duration> {
    let started = Instant::now();
    let creations = stream::iter(clusters).map(|cluster| create(client, cluster));
    creations.buffer_unordered(AT_A_TIME).try_collect::<()>().await?;
    let took = started.elapsed();
    let deletions = stream::iter(clusters).map(|cluster| clean(client, cluster));
    deletions.buffer_unordered(AT_A_TIME).try_collect::<()>().await?;
    Ok(took)
}

async fn create(client: &Client, cluster: &str) -> Result<()> {
    // The hub runs later, and has no set of that name.
    let labels = json!({labels::MANIFEST_WORK_REPLICA_SET: "floor.floor", labels::PLACEMENT_NAME: "floor"});
    let work = json!({"metadata": {"generateName": "floor", "labels": labels}, "spec": template("1")});
    let api: Api<ManifestWork> = Api::namespaced(client.clone(), cluster);
    api.create(&PostParams::default(), &serde_json::from_value(work)?).await?;
    Ok(())
}

async fn clean(client: &Client, cluster: &str) -> Result<()> {
    let api: Api<ManifestWork> = Api::namespaced(client.clone(), cluster);
    api.delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
    Ok(())
}
