//! Creating what add-ons need.

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client, api::PostParams};
use ocm_api::cluster::v1::ManagedCluster;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// An accepted cluster without an agent, and its namespace.
pub(super) async fn create_cluster(client: &Client, name: &str) -> Result<()> {
    create_namespace(client, name).await?;
    create(&Api::<ManagedCluster>::all(client.clone()), name, json!({"hubAcceptsClient": true})).await
}

pub(super) async fn create_namespace(client: &Client, name: &str) -> Result<()> {
    create(&Api::<Namespace>::all(client.clone()), name, json!({})).await
}

pub(super) async fn create<K>(api: &Api<K>, name: &str, spec: Value) -> Result<()>
where
    K: Clone + std::fmt::Debug + DeserializeOwned + serde::Serialize,
{
    let object = json!({"metadata": {"name": name}, "spec": spec});
    let created = api.create(&PostParams::default(), &serde_json::from_value(object)?).await;
    created.map(|_| ()).with_context(|| format!("failed to create {name}"))
}
