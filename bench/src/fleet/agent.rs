//! One agent of a fleet, with its cluster in memory.

use std::path::Path;

use anyhow::Result;
use http::Uri;
use k8s_openapi::api::core::v1::{Namespace, Node};
use kube::{Api, api::PostParams};
use ocm_agent::AgentConfig;
use ocm_api::namespaces;
use ocm_runtime::{Context, client::Endpoint, error::chain};
use ocm_testing::MemoryCluster;
use serde_json::json;

use crate::figures;

pub(super) struct Agent {
    config: AgentConfig,
    cluster: Endpoint,
}

/// The cluster's name.
pub(super) fn name(index: usize) -> String {
    format!("cluster-{index:05}")
}

impl Agent {
    /// Makes the cluster that it will manage, with one node.
    pub(super) async fn prepare(index: usize, folder: &Path, bootstrap: &Path) -> Result<Self> {
        let name = name(index);
        let cluster = MemoryCluster::new();
        furnish(&cluster).await?;
        let mut config = AgentConfig::new(folder.join(&name));
        config.cluster_name = name;
        config.bootstrap_kubeconfig = Some(bootstrap.into());
        config.host = "bench".into();
        let cluster = Endpoint::over(Uri::from_static("https://in-memory"), namespaces::AGENT, cluster);
        Ok(Self { config, cluster })
    }

    pub(super) fn name(&self) -> &str {
        &self.config.cluster_name
    }

    /// Runs it until the context ends.
    pub(super) fn start(&self, context: &Context) {
        let (own, cluster, config) = (context.child(), self.cluster.clone(), self.config.clone());
        context.spawn_to_completion(async move {
            let name = config.cluster_name.clone();
            if let Err(error) = Box::pin(ocm_agent::run(&own, &cluster, &cluster, config)).await {
                figures::complain(&format!("the agent of {name} ended: {}", chain(&error)));
            }
        });
    }
}

async fn furnish(cluster: &MemoryCluster) -> Result<()> {
    let client = cluster.client(namespaces::AGENT);
    let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": namespaces::AGENT}}))?;
    Api::all(client.clone()).create(&PostParams::default(), &namespace).await?;
    let resources = json!({"cpu": "4", "memory": "16Gi", "pods": "110"});
    let node: Node = serde_json::from_value(json!({
        "metadata": {"name": "node"},
        "status": {
            "capacity": resources, "allocatable": resources,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }))?;
    Api::all(client).create(&PostParams::default(), &node).await?;
    Ok(())
}
