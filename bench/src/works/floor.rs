//! The same writes by a bare client: what the control planes allow.
//!
//! For a work with one ConfigMap they are, on the hub and on the managed cluster:
//!
//! | | hub | managed cluster |
//! | --- | --- | --- |
//! | create | the work, its finalizer, its status | the AppliedManifestWork, the ConfigMap, the record's status |
//! | update | the work's spec, its status | the ConfigMap |
//! | delete | the work, its status, its finalizer | the AppliedManifestWork, the ConfigMap, the record's status and finalizer |

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{
    Api, Client, Config,
    api::{DeleteParams, Patch, PatchParams, PostParams},
    config::KubeConfigOptions,
};
use ocm_api::{
    finalizers,
    work::v1::{AppliedManifestWork, ManifestWork},
};
use ocm_testing::ControlPlane;
use serde_json::{Value, json};

use super::load::{Step, config_map, work};
use crate::product::Product;

const NAMESPACE: &str = "floor";

/// How long the writes of so many works took.
pub(super) struct Floor {
    create: Duration,
    update: Duration,
    delete: Duration,
}

impl Floor {
    pub(super) fn of(&self, step: Step) -> Duration {
        match step {
            Step::Create => self.create,
            Step::Update => self.update,
            Step::Delete => self.delete,
        }
    }
}

/// Makes the writes of so many works, so many works at a time. Nothing is left of them.
pub(super) async fn run(product: &Product, count: usize, at_a_time: usize) -> Result<Floor> {
    let bare = Bare::connect(product).await?;
    bare.prepare().await?;
    let step = async |step: Step| {
        let started = Instant::now();
        let writes = stream::iter(0..count).map(|index| bare.write(step, index));
        writes.buffer_unordered(at_a_time).try_collect::<()>().await?;
        anyhow::Ok(started.elapsed())
    };
    Ok(Floor {
        create: step(Step::Create).await?,
        update: step(Step::Update).await?,
        delete: step(Step::Delete).await?,
    })
}

/// A client over the connection that the product uses too: what is compared is what it is used for.
async fn bare_client(plane: &ControlPlane) -> Result<Client> {
    let config = Config::from_custom_kubeconfig(plane.admin_config(), &KubeConfigOptions::default()).await?;
    Ok(ocm_runtime::client::connect(&config, "ocm-bench")?)
}

/// The bare client.
struct Bare {
    clients: [Client; 2],
    works: Api<ManifestWork>,
    records: Api<AppliedManifestWork>,
    config_maps: Api<ConfigMap>,
}

impl Bare {
    async fn connect(product: &Product) -> Result<Self> {
        let (hub, managed) = (bare_client(&product.hub).await?, bare_client(&product.managed).await?);
        Ok(Self {
            works: Api::namespaced(hub.clone(), NAMESPACE),
            records: Api::all(managed.clone()),
            config_maps: Api::namespaced(managed.clone(), NAMESPACE),
            clients: [hub, managed],
        })
    }

    async fn prepare(&self) -> Result<()> {
        for client in &self.clients {
            let namespaces: Api<Namespace> = Api::all(client.clone());
            let namespace = serde_json::from_value(json!({"metadata": {"name": NAMESPACE}}))?;
            match namespaces.create(&PostParams::default(), &namespace).await {
                Err(kube::Error::Api(status)) if status.is_already_exists() => {}
                outcome => outcome.map(|_| ()).context("failed to create a namespace")?,
            }
        }
        Ok(())
    }

    async fn write(&self, step: Step, index: usize) -> Result<()> {
        let name = format!("floor-{index}");
        match step {
            Step::Create => self.create(&name).await,
            Step::Update => self.update(&name).await,
            Step::Delete => self.delete(&name).await,
        }
    }

    async fn create(&self, name: &str) -> Result<()> {
        let create = PostParams::default();
        self.works.create(&create, &work(NAMESPACE, name, &json!([config_map(name, "value")]))?).await?;
        self.works.patch(name, &PatchParams::default(), &finalizers_of(&json!([finalizers::MANIFEST_WORK]))).await?;
        self.records.create(&create, &serde_json::from_value(record(name))?).await?;
        self.config_maps.create(&create, &object(name, "value")?).await?;
        self.records.patch_status(name, &PatchParams::default(), &Patch::Merge(record_status(name))).await?;
        self.works.patch_status(name, &PatchParams::default(), &Patch::Merge(work_status(name, 1))).await?;
        Ok(())
    }

    async fn update(&self, name: &str) -> Result<()> {
        let spec = json!({"spec": {"workload": {"manifests": [config_map(name, "another")]}}});
        self.works.patch(name, &PatchParams::default(), &Patch::Merge(spec)).await?;
        self.config_maps.replace(name, &PostParams::default(), &object(name, "another")?).await?;
        self.works.patch_status(name, &PatchParams::default(), &Patch::Merge(work_status(name, 2))).await?;
        Ok(())
    }

    async fn delete(&self, name: &str) -> Result<()> {
        let (delete, patch) = (DeleteParams::default(), PatchParams::default());
        self.works.delete(name, &delete).await?;
        let deleting = json!({"status": {"conditions": [condition("Deleting", 2)]}});
        self.works.patch_status(name, &patch, &Patch::Merge(deleting)).await?;
        self.records.delete(name, &delete).await?;
        self.config_maps.delete(name, &delete).await?;
        self.records.patch_status(name, &patch, &Patch::Merge(json!({"status": {"appliedResources": []}}))).await?;
        self.records.patch(name, &patch, &finalizers_of(&Value::Null)).await?;
        self.works.patch(name, &patch, &finalizers_of(&Value::Null)).await?;
        Ok(())
    }
}

fn finalizers_of(finalizers: &Value) -> Patch<Value> {
    Patch::Merge(json!({"metadata": {"finalizers": finalizers}}))
}

fn object(name: &str, value: &str) -> Result<ConfigMap> {
    Ok(serde_json::from_value(json!({"metadata": {"name": name}, "data": {"key": value}}))?)
}

fn record(name: &str) -> Value {
    json!({
        "apiVersion": "work.open-cluster-management.io/v1", "kind": "AppliedManifestWork",
        "metadata": {"name": name, "finalizers": [finalizers::APPLIED_MANIFEST_WORK]},
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

fn condition(type_: &str, generation: u32) -> Value {
    json!({"type": type_, "status": "True", "reason": "AppliedManifestWorkComplete", "message": "All objects are applied",
        "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": generation})
}

fn work_status(name: &str, generation: u32) -> Value {
    let meta = json!({
        "ordinal": 0, "group": "", "version": "v1", "kind": "ConfigMap", "resource": "configmaps", "name": name,
        "namespace": NAMESPACE,
    });
    let of = |types: &[&str]| types.iter().map(|type_| condition(type_, generation)).collect::<Vec<_>>();
    let manifest = json!({
        "resourceMeta": meta, "statusFeedback": {},
        "conditions": of(&["Applied", "Available", "StatusFeedbackSynced"]),
    });
    json!({"status": {
        "conditions": of(&["Applied", "Available"]),
        "resourceStatus": {"manifests": [manifest]},
    }})
}
