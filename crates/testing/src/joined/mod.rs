//! Clusters that have joined a hub, as objects: what hub and agents leave behind, without either of them running.
//!
//! For tests and benchmarks of a hub with many clusters. Making them takes a few milliseconds each, and no agent has to run:
//! what an agent writes, renewals of its lease and reports of its health, is written here for all of them at once.

use std::fmt;

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;
use k8s_openapi::{api::coordination::v1::Lease, apimachinery::pkg::apis::meta::v1::MicroTime};
use kube::{
    Api, Client,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
    core::{ApiResource, GroupVersionKind},
};
use ocm_apimachinery::yaml;
use serde_json::{Value, json};

/// Namespaces before what is in them, and the cluster last.
const OBJECTS: &str = include_str!("cluster.yaml");
const LEASE: &str = "managed-cluster-lease";
/// How many requests are in progress at a time.
const AT_A_TIME: usize = 32;

/// Clusters that have joined a hub.
#[derive(Clone)]
pub struct JoinedClusters {
    client: Client,
    names: Vec<String>,
}

impl fmt::Debug for JoinedClusters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinedClusters").field("names", &self.names.len()).finish_non_exhaustive()
    }
}

impl JoinedClusters {
    /// Creates so many clusters, whose leases are renewed `now`, each with all objects that a hub keeps for it.
    ///
    /// # Errors
    /// When the API server refuses an object.
    pub async fn create(client: &Client, count: usize, now: Timestamp) -> Result<Self> {
        let names = (0..count).map(|index| format!("cluster-{index:05}")).collect();
        let clusters = Self { client: client.clone(), names };
        clusters.for_each(|name| clusters.create_one(name, now)).await?;
        Ok(clusters)
    }

    /// Their names.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Sets the renewal of every lease to this time.
    ///
    /// # Errors
    /// When a lease cannot be written.
    pub async fn renew(&self, at: Timestamp) -> Result<()> {
        self.for_each(|name| self.renew_one(name, at)).await
    }

    /// Sets the renewal of one cluster's lease to this time.
    ///
    /// # Errors
    /// When the lease cannot be written.
    pub async fn renew_one(&self, cluster: &str, at: Timestamp) -> Result<()> {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), cluster);
        let patch = Patch::Merge(json!({"spec": {"renewTime": MicroTime(at)}}));
        Ok(leases.patch(LEASE, &PatchParams::default(), &patch).await.map(|_| ())?)
    }

    /// Reports every cluster as available, as its agent does when it reaches the hub again.
    ///
    /// # Errors
    /// When a status cannot be written.
    pub async fn report_available(&self, now: Timestamp) -> Result<()> {
        self.for_each(|name| self.report_one(name, now)).await
    }

    /// Sets the lease duration of every cluster. Leases that are not renewed expire after five of them.
    ///
    /// # Errors
    /// When a cluster cannot be written.
    pub async fn set_lease_duration(&self, seconds: u32) -> Result<()> {
        let patch = Patch::Merge(json!({"spec": {"leaseDurationSeconds": seconds}}));
        self.for_each(|name| {
            let patch = &patch;
            async move { anyhow::Ok(self.clusters().patch(name, &PatchParams::default(), patch).await.map(|_| ())?) }
        })
        .await
    }

    /// Deletes all clusters. Returns when the API server has recorded that, not when they are gone.
    ///
    /// # Errors
    /// When a cluster cannot be deleted.
    pub async fn delete(&self) -> Result<()> {
        self.for_each(|name| async move {
            let deleted = self.clusters().delete(name, &DeleteParams::default()).await;
            anyhow::Ok(deleted.map(|_| ())?)
        })
        .await
    }

    async fn create_one(&self, name: &str, now: Timestamp) -> Result<()> {
        let objects = OBJECTS.replace("CLUSTER", name).replace("RENEWED", &format!("{now:.6}"));
        for object in yaml::from_str_multi::<DynamicObject>(&objects)? {
            let what = || format!("failed to create an object of {name}");
            self.api_of(&object)?.create(&PostParams::default(), &object).await.with_context(what)?;
        }
        self.report_one(name, now).await
    }

    async fn report_one(&self, name: &str, now: Timestamp) -> Result<()> {
        let patch = Patch::Merge(json!({"status": {"conditions": conditions(now)}}));
        Ok(self.clusters().patch_status(name, &PatchParams::default(), &patch).await.map(|_| ())?)
    }

    fn clusters(&self) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("cluster.open-cluster-management.io", "v1", "ManagedCluster");
        Api::all_with(self.client.clone(), &ApiResource::from_gvk(&kind))
    }

    fn api_of(&self, object: &DynamicObject) -> Result<Api<DynamicObject>> {
        let types = object.types.as_ref().context("an object without a kind")?;
        let resource = ApiResource::from_gvk(&GroupVersionKind::try_from(types)?);
        Ok(match &object.metadata.namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        })
    }

    async fn for_each<'a, F>(&'a self, act: impl Fn(&'a str) -> F) -> Result<()>
    where
        F: Future<Output = Result<()>>,
    {
        stream::iter(&self.names).map(|name| act(name)).buffer_unordered(AT_A_TIME).try_collect().await
    }
}

/// Those of a cluster that is accepted, joined and available, with a good clock.
fn conditions(now: Timestamp) -> Vec<Value> {
    let conditions = [
        ("HubAcceptedManagedCluster", "HubClusterAdminAccepted"),
        ("ManagedClusterJoined", "ManagedClusterJoined"),
        ("ManagedClusterConditionAvailable", "ManagedClusterAvailable"),
        ("ManagedClusterConditionClockSynced", "ManagedClusterClockSynced"),
    ];
    let condition = |(type_, reason): (&str, &str)| {
        json!({
            "type": type_, "status": "True", "reason": reason, "message": "",
            "lastTransitionTime": format!("{now:.0}"),
        })
    };
    conditions.into_iter().map(condition).collect()
}
