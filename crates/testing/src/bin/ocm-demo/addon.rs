//! The add-on `helloworld` on both clusters, by a Placement.
//!
//! Its manager is a process, under its own service account. Its agents would be pods; without a node each is a process too,
//! with the credentials that the cluster's agent keeps for it in a secret, and under the service account of its Deployment.

use anyhow::Result;
use ocm_testing::scenario::{condition, get, is_there, print_line, step, write_secret};
use ocm_testing::{ControlPlane, eventually};

use crate::clusters::Clusters;

const RIGHTS: &str = include_str!("../../../../../examples/helloworld/deploy/hub.yaml");
const ADDON: &str = include_str!("addon.yaml");
const MANAGER: (&str, &str) = ("open-cluster-management", "helloworld-manager");
const AGENT: &str = "helloworld-agent";
const AGENT_ACCOUNT: &str = "helloworld-agent-sa";
const NAMESPACE: &str = "open-cluster-management-agent-addon";
const SECRET: [&str; 4] = ["secret", "helloworld-hub-kubeconfig", "-n", NAMESPACE];

/// Runs this part of the scenario.
pub(crate) async fn tell(clusters: &Clusters) -> Result<()> {
    step("start the manager of add-on helloworld, under its own account", start_manager(clusters)).await?;
    step("apply a Placement, and the add-on that is installed where it chooses", apply(clusters)).await?;
    step("the Placement has chosen both clusters", chosen(clusters)).await?;
    step("the add-on's Deployment is on both clusters", deployed(clusters)).await?;
    step("and so are the credentials of its agents", registered(clusters)).await?;
    for (name, plane) in &clusters.managed {
        let what = format!("start its agent for {name}, as a process: there is no node");
        step(&what, start_agent(clusters, name, plane)).await?;
    }
    step("the add-on is available on both clusters", available(clusters)).await?;
    step("a ConfigMap in the clusters' namespaces on the hub gets to the clusters", copied(clusters)).await
}

pub(crate) async fn show(clusters: &Clusters) -> Result<()> {
    for args in [&["get", "placements,placementdecisions", "-n", "addons"][..], &["get", "managedclusteraddons", "-A"]]
    {
        print_line(&format!("\n$ kubectl {}", args.join(" ")));
        print_line(clusters.hub.kubectl(args).await?.trim_end());
    }
    Ok(())
}

async fn start_manager(clusters: &Clusters) -> Result<()> {
    clusters.hub.apply_yaml(RIGHTS).await?;
    let ours = &clusters.ours;
    let kubeconfig = ours.file("helloworld.kubeconfig");
    clusters.hub.write_login(MANAGER.0, MANAGER.1, &kubeconfig).await?;
    let process = ours.process(ours.program("helloworld"), "helloworld-manager");
    let process = process.args(["manager", "--listen", "127.0.0.1:0", "--kubeconfig"]).arg(kubeconfig).start()?;
    process.wait_for_log("add-on manager started").await?;
    clusters.running.add(process);
    Ok(())
}

async fn apply(clusters: &Clusters) -> Result<()> {
    clusters.hub.kubectl_with_input(&["apply", "-f", "-"], ADDON).await.map(drop)
}

async fn chosen(clusters: &Clusters) -> Result<()> {
    eventually("the Placement has chosen both clusters", || async {
        let decisions = get(&clusters.hub, &["placementdecisions", "-n", "addons"]).await?;
        let decisions = decisions["items"].as_array().cloned().unwrap_or_default();
        let count = |decision: &serde_json::Value| decision["status"]["decisions"].as_array().map_or(0, Vec::len);
        anyhow::Ok(decisions.iter().map(count).sum::<usize>() == clusters.managed.len())
    })
    .await
}

async fn deployed(clusters: &Clusters) -> Result<()> {
    on_both(clusters, &["deployment", AGENT, "-n", NAMESPACE]).await
}

async fn registered(clusters: &Clusters) -> Result<()> {
    on_both(clusters, &SECRET).await
}

/// Waits until kubectl finds this on both clusters.
async fn on_both(clusters: &Clusters, what: &[&str]) -> Result<()> {
    for (_, plane) in &clusters.managed {
        is_there(plane, what).await?;
    }
    Ok(())
}

async fn start_agent(clusters: &Clusters, name: &str, plane: &ControlPlane) -> Result<()> {
    let ours = &clusters.ours;
    let credentials = ours.file(&format!("{name}.helloworld"));
    write_secret(plane, &SECRET, &credentials).await?;
    let own = ours.file(&format!("{name}.helloworld.kubeconfig"));
    plane.write_login(NAMESPACE, AGENT_ACCOUNT, &own).await?;
    let process = ours.process(ours.program("helloworld"), &format!("helloworld-agent-{name}"));
    let process = process
        .args(["agent", "--cluster-name", name, "--addon-namespace", NAMESPACE, "--hub-kubeconfig"])
        .arg(credentials.join("kubeconfig"))
        .arg("--managed-kubeconfig")
        .arg(own);
    clusters.running.add(process.start()?);
    Ok(())
}

async fn available(clusters: &Clusters) -> Result<()> {
    for (name, _) in &clusters.managed {
        condition(&clusters.hub, &["managedclusteraddon", "helloworld", "-n", name], "Available").await?;
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
