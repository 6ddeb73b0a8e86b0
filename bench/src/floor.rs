//! The same writes by a bare client: what the control planes allow.
//!
//! For a work with one ConfigMap they are: on the hub the work, its finalizer and its status, on the
//! managed cluster the AppliedManifestWork, the ConfigMap and the record's status.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{
    Api, Client, Config,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    config::KubeConfigOptions,
};
use ocm_api::{
    finalizers,
    work::v1::{AppliedManifestWork, ManifestWork},
};
use ocm_testing::ControlPlane;
use serde_json::{Value, json};

use crate::{product::Product, works};

const NAMESPACE: &str = "floor";

/// Makes the writes of so many works, so many works at a time; how long it took.
pub(crate) async fn run(product: &Product, count: usize, at_a_time: usize) -> Result<Duration> {
    let floor = Floor { hub: bare_client(&product.hub).await?, managed: bare_client(&product.managed).await? };
    floor.prepare().await?;
    let started = Instant::now();
    let writes = stream::iter(0..count).map(|index| floor.write(index));
    writes.buffer_unordered(at_a_time).try_collect::<()>().await?;
    let took = started.elapsed();
    floor.clean().await?;
    Ok(took)
}

/// A client over the connection that the product uses too: what is compared is what it is used for.
async fn bare_client(plane: &ControlPlane) -> Result<Client> {
    let config = Config::from_custom_kubeconfig(plane.admin_config(), &KubeConfigOptions::default()).await?;
    Ok(ocm_runtime::client::connect(&config, "ocm-bench")?)
}

struct Floor {
    hub: Client,
    managed: Client,
}

impl Floor {
    async fn prepare(&self) -> Result<()> {
        for client in [&self.hub, &self.managed] {
            let namespaces: Api<Namespace> = Api::all(client.clone());
            let namespace = serde_json::from_value(json!({"metadata": {"name": NAMESPACE}}))?;
            match namespaces.create(&PostParams::default(), &namespace).await {
                Err(kube::Error::Api(status)) if status.is_already_exists() => {}
                outcome => outcome.map(|_| ()).context("failed to create a namespace")?,
            }
        }
        Ok(())
    }

    async fn write(&self, index: usize) -> Result<()> {
        let name = format!("floor-{index}");
        let works: Api<ManifestWork> = Api::namespaced(self.hub.clone(), NAMESPACE);
        let records: Api<AppliedManifestWork> = Api::all(self.managed.clone());
        let config_maps: Api<ConfigMap> = Api::namespaced(self.managed.clone(), NAMESPACE);
        works.create(&PostParams::default(), &works::work(NAMESPACE, &name)?).await?;
        let finalizer = json!({"metadata": {"finalizers": [finalizers::MANIFEST_WORK]}});
        works.patch(&name, &PatchParams::default(), &Patch::Merge(finalizer)).await?;
        records.create(&PostParams::default(), &serde_json::from_value(record(&name))?).await?;
        let config_map = json!({"metadata": {"name": name}, "data": {"key": "value"}});
        config_maps.create(&PostParams::default(), &serde_json::from_value(config_map)?).await?;
        records.patch_status(&name, &PatchParams::default(), &Patch::Merge(record_status(&name))).await?;
        works.patch_status(&name, &PatchParams::default(), &Patch::Merge(work_status(&name))).await?;
        Ok(())
    }

    async fn clean(&self) -> Result<()> {
        let works: Api<ManifestWork> = Api::namespaced(self.hub.clone(), NAMESPACE);
        let release = json!({"metadata": {"finalizers": null}});
        let listed = works.list_metadata(&ListParams::default()).await?.items;
        let names: Vec<_> = listed.into_iter().filter_map(|work| work.metadata.name).collect();
        let releases = stream::iter(names).map(|name| {
            let (works, release) = (&works, &release);
            async move { works.patch(&name, &PatchParams::default(), &Patch::Merge(release)).await.map(|_| ()) }
        });
        releases.buffer_unordered(crate::AT_A_TIME).try_collect::<()>().await?;
        let everything = (DeleteParams::default(), ListParams::default());
        works.delete_collection(&everything.0, &everything.1).await?;
        let records: Api<AppliedManifestWork> = Api::all(self.managed.clone());
        records.delete_collection(&everything.0, &everything.1).await?;
        let config_maps: Api<ConfigMap> = Api::namespaced(self.managed.clone(), NAMESPACE);
        config_maps.delete_collection(&everything.0, &everything.1).await?;
        Ok(())
    }
}

fn record(name: &str) -> Value {
    json!({
        "apiVersion": "work.open-cluster-management.io/v1", "kind": "AppliedManifestWork", "metadata": {"name": name},
        "spec": {"hubHash": "0".repeat(64), "agentID": "floor", "manifestWorkName": name},
    })
}

fn record_status(name: &str) -> Value {
    let resource = json!({
        "group": "", "version": "v1", "resource": "configmaps", "name": name, "namespace": NAMESPACE,
        "uid": "00000000-0000-0000-0000-000000000000",
    });
    json!({"status": {"appliedResources": [resource]}})
}

fn work_status(name: &str) -> Value {
    let condition = |type_: &str| {
        json!({"type": type_, "status": "True", "reason": "AppliedManifestWorkComplete", "message": "All objects are applied",
            "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1})
    };
    let meta = json!({
        "ordinal": 0, "group": "", "version": "v1", "kind": "ConfigMap", "resource": "configmaps", "name": name,
        "namespace": NAMESPACE,
    });
    let manifest = json!({
        "resourceMeta": meta, "statusFeedback": {},
        "conditions": [condition("Applied"), condition("Available"), condition("StatusFeedbackSynced")],
    });
    json!({"status": {
        "conditions": [condition("Applied"), condition("Available")],
        "resourceStatus": {"manifests": [manifest]},
    }})
}
