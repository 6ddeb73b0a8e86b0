//! How long a change of an applied object by somebody else lasts.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use futures::TryStreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api,
    api::{Patch, PatchParams},
    runtime::{WatchStreamExt as _, watcher},
};
use serde_json::json;
use tokio::time::timeout;

use super::{Step, plan, run};
use crate::{AT_A_TIME, figures::print_percentiles, product::Product};

/// How long one repair may take.
const PATIENCE: Duration = Duration::from_secs(600);
/// How many objects are changed, one after the other.
const CHANGES: usize = 100;

/// Changes ConfigMaps of works and measures the time until each is as its manifest says.
pub(crate) async fn measure(works: usize) -> Result<()> {
    let mut product = Product::start().await?;
    product.join().await?;
    run(&product.hub_client().await?, Step::Create, &plan("drift", works, AT_A_TIME)).await?;
    product.settle().await?;
    let maps: Api<ConfigMap> = Api::namespaced(product.managed.client().await?, "default");
    let mut repaired = Vec::new();
    for index in 0..CHANGES.min(works) {
        repaired.push(repair(&maps, &format!("drift-{index}")).await?);
    }
    repaired.sort();
    print_percentiles(&format!("with {works} works, an object changed by somebody, until it is repaired"), &repaired);
    Ok(())
}

async fn repair(maps: &Api<ConfigMap>, name: &str) -> Result<Duration> {
    let only = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let mut states = std::pin::pin!(watcher::watcher(maps.clone(), only).applied_objects());
    states.try_next().await?.with_context(|| format!("{name} does not exist"))?;
    let changed = Instant::now();
    let patch = Patch::Merge(json!({"data": {"key": "theirs"}}));
    maps.patch(name, &PatchParams::default(), &patch).await?;
    let is_theirs =
        |map: &ConfigMap| map.data.as_ref().is_some_and(|data| data.values().any(|value| value == "theirs"));
    timeout(PATIENCE, async {
        while let Some(map) = states.try_next().await? {
            if !is_theirs(&map) {
                return Ok(changed.elapsed());
            }
        }
        anyhow::bail!("the watch of {name} ended")
    })
    .await
    .with_context(|| format!("{name} was not repaired within {PATIENCE:?}"))?
}
