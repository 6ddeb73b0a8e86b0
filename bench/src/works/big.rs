//! One work with many objects.

use std::time::Instant;

use anyhow::Result;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, PostParams},
};
use serde_json::Value;

use super::load::{config_map, until_available, work};
use crate::{
    AT_A_TIME,
    figures::print,
    product::{CLUSTER, Product},
};

const OBJECTS: usize = 500;

pub(super) async fn measure(product: &Product, hub: &Client) -> Result<()> {
    let manifests: Vec<Value> = (0..OBJECTS).map(|index| config_map(&format!("big-{index}"), "value")).collect();
    let floor = bare(&product.managed.client().await?, &manifests).await?;
    let took = until_available(hub, &work(CLUSTER, "big", &Value::from(manifests))?).await?.as_secs_f64();
    print(&format!("1 ManifestWork of {OBJECTS} objects, create to Available"), took, "s");
    print(&format!("{OBJECTS} objects, created by a bare client"), floor, "s");
    print(&format!("1 ManifestWork of {OBJECTS} objects, product / floor"), took / floor, "ratio");
    Ok(())
}

/// How many seconds a bare client needs to create the objects. They are deleted again.
async fn bare(managed: &Client, manifests: &[Value]) -> Result<f64> {
    let api: Api<ConfigMap> = Api::namespaced(managed.clone(), "default");
    let started = Instant::now();
    let creations = stream::iter(manifests).map(async |manifest: &Value| {
        api.create(&PostParams::default(), &serde_json::from_value(manifest.clone())?).await?;
        anyhow::Ok(())
    });
    creations.buffer_unordered(AT_A_TIME).try_collect::<()>().await?;
    let took = started.elapsed();
    let ours = ListParams::default().fields("metadata.name!=kube-root-ca.crt");
    api.delete_collection(&DeleteParams::default(), &ours).await?;
    Ok(took.as_secs_f64())
}
