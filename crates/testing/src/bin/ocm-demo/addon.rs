//! The add-on `helloworld` on both clusters, by a Placement.
//!
//! Its manager is a process, under its own service account. Its agents would be pods; without a node each is a process too,
//! with the credentials that the cluster's agent keeps for it in a secret, and under the service account of its Deployment.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use ocm_testing::{ControlPlane, Process, eventually};
use serde_json::Value;

use super::{
    clusters::Clusters,
    steps::{say, step},
    story::condition,
};

const RIGHTS: &str = include_str!("../../../../../examples/helloworld/deploy/hub.yaml");
const ADDON: &str = include_str!("addon.yaml");
const MANAGER: (&str, &str) = ("open-cluster-management", "helloworld-manager");
const AGENT: &str = "helloworld-agent";
const AGENT_ACCOUNT: &str = "helloworld-agent-sa";
const NAMESPACE: &str = "open-cluster-management-agent-addon";
const SECRET: &str = "helloworld-hub-kubeconfig";

/// Tells that part of the story; answers with the processes it has started.
pub(crate) async fn tell(clusters: &Clusters) -> Result<Vec<Process>> {
    let mut processes =
        vec![step("start the manager of add-on helloworld, under its own account", start_manager(clusters)).await?];
    step("apply a Placement, and the add-on that is installed where it chooses", apply(clusters)).await?;
    step("the Placement has chosen both clusters", chosen(clusters)).await?;
    step("the add-on's Deployment is on both clusters", deployed(clusters)).await?;
    step("and so are the credentials of its agents", registered(clusters)).await?;
    for (name, plane) in &clusters.managed {
        let what = format!("start its agent for {name}, as a process: there is no node");
        processes.push(step(&what, start_agent(clusters, name, plane)).await?);
    }
    step("the add-on is available on both clusters", available(clusters)).await?;
    step("a ConfigMap in the clusters' namespaces on the hub gets to the clusters", copied(clusters)).await?;
    Ok(processes)
}

pub(crate) async fn show(clusters: &Clusters) -> Result<()> {
    for args in [&["get", "placements,placementdecisions", "-n", "addons"][..], &["get", "managedclusteraddons", "-A"]]
    {
        say(&format!("\n$ kubectl {}", args.join(" ")));
        say(clusters.hub.kubectl(args).await?.trim_end());
    }
    Ok(())
}

async fn start_manager(clusters: &Clusters) -> Result<Process> {
    clusters.hub.apply_yaml(RIGHTS).await?;
    let kubeconfig = clusters.file("helloworld.kubeconfig");
    clusters.hub.write_login(MANAGER.0, MANAGER.1, &kubeconfig).await?;
    let log = clusters.file("helloworld.log");
    let process = Process::build("helloworld manager", clusters.program("helloworld"), log)
        .args(["manager", "--listen", "127.0.0.1:0", "--kubeconfig"])
        .arg(kubeconfig)
        .start()?;
    process.wait_for_log("add-on manager started").await?;
    Ok(process)
}

async fn apply(clusters: &Clusters) -> Result<()> {
    clusters.hub.kubectl_with_input(&["apply", "-f", "-"], ADDON).await.map(drop)
}

async fn chosen(clusters: &Clusters) -> Result<()> {
    eventually("the Placement has chosen both clusters", || async {
        let decisions = ["get", "placementdecisions", "-n", "addons", "-o", "json"];
        let decisions: Value = serde_json::from_str(&clusters.hub.kubectl(&decisions).await?)?;
        let decisions = decisions["items"].as_array().cloned().unwrap_or_default();
        let count = |decision: &Value| decision["status"]["decisions"].as_array().map_or(0, Vec::len);
        anyhow::Ok(decisions.iter().map(count).sum::<usize>() == clusters.managed.len())
    })
    .await
}

async fn deployed(clusters: &Clusters) -> Result<()> {
    on_both(clusters, &["get", "deployment", AGENT, "-n", NAMESPACE]).await
}

async fn registered(clusters: &Clusters) -> Result<()> {
    on_both(clusters, &["get", "secret", SECRET, "-n", NAMESPACE]).await
}

/// Waits until kubectl finds this on both clusters.
async fn on_both(clusters: &Clusters, get: &[&str]) -> Result<()> {
    for (name, plane) in &clusters.managed {
        let what = format!("kubectl {} finds it on {name}", get.join(" "));
        eventually(&what, || async { plane.kubectl(get).await.map(|_| true) }).await?;
    }
    Ok(())
}

async fn start_agent(clusters: &Clusters, name: &str, plane: &ControlPlane) -> Result<Process> {
    let hub = write_credentials(clusters, name, plane).await?;
    let own = clusters.file(&format!("{name}.helloworld.kubeconfig"));
    plane.write_login(NAMESPACE, AGENT_ACCOUNT, &own).await?;
    let log = clusters.file(&format!("{name}.helloworld.log"));
    Process::build(&format!("helloworld agent of {name}"), clusters.program("helloworld"), log)
        .args(["agent", "--cluster-name", name, "--addon-namespace", NAMESPACE])
        .arg("--hub-kubeconfig")
        .arg(hub)
        .arg("--managed-kubeconfig")
        .arg(own)
        .start()
}

/// Writes what is in the secret as files, as a pod would see it; where the kubeconfig is.
async fn write_credentials(clusters: &Clusters, name: &str, plane: &ControlPlane) -> Result<PathBuf> {
    let folder = clusters.file(&format!("{name}.helloworld"));
    std::fs::create_dir(&folder)?;
    let secret: k8s_openapi::api::core::v1::Secret =
        serde_json::from_str(&plane.kubectl(&["get", "secret", SECRET, "-n", NAMESPACE, "-o", "json"]).await?)?;
    for (key, value) in secret.data.unwrap_or_default() {
        std::fs::write(folder.join(&key), value.0).with_context(|| format!("failed to write {key}"))?;
    }
    Ok(folder.join("kubeconfig"))
}

async fn available(clusters: &Clusters) -> Result<()> {
    for (name, _) in &clusters.managed {
        condition(clusters, &["get", "managedclusteraddon", "helloworld", "-n", name], "Available").await?;
    }
    Ok(())
}

async fn copied(clusters: &Clusters) -> Result<()> {
    for (name, plane) in &clusters.managed {
        let create = ["create", "configmap", "greeting", "-n", name, &format!("--from-literal=cluster={name}")];
        clusters.hub.kubectl(&create).await?;
        let get = ["get", "configmap", "greeting", "-n", NAMESPACE, "-o", "jsonpath={.data.cluster}"];
        eventually(&format!("the ConfigMap is on {name}"), || async {
            anyhow::Ok(plane.kubectl(&get).await? == *name)
        })
        .await?;
    }
    Ok(())
}
