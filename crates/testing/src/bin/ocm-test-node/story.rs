//! The steps, from an empty cluster to a work whose pod runs.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use ocm_image::Reference;
use ocm_testing::scenario::{AGENT, HUB, is_there, print_line, step};
use ocm_testing::{Seen, eventually};
use serde_json::json;

use crate::addon;
use crate::world::{CLUSTER, WEBHOOK, World};

const HUB_RIGHTS: &str = include_str!("../../../../../deploy/hub.yaml");
const HUB_PODS: &str = include_str!("../../../../../deploy/pods/hub.yaml");
const WEBHOOK_PODS: &str = include_str!("../../../../../deploy/pods/webhook.yaml");
const AGENT_RIGHTS: &str = include_str!("../../../../../deploy/agent.yaml");
const AGENT_PODS: &str = include_str!("../../../../../deploy/pods/agent.yaml");
const WORKS: &str = include_str!("../ocm-demo/works.yaml");
const WORK: [&str; 4] = ["manifestwork", "mw-01", "-n", CLUSTER];

const CONVERTED: &str = "\
apiVersion: addon.open-cluster-management.io/v1beta1
kind: ClusterManagementAddOn
metadata: {name: converted}
spec: {addOnMeta: {displayName: Converted}}
";

const UNLABELLED: &str = "\
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata: {name: unlabelled}
";

/// Runs all steps. If one fails, prints pods, events and logs.
pub(crate) async fn tell(programs: PathBuf, images: PathBuf) -> Result<()> {
    print_line("ocm-rs: hub, agent and an add-on as pods on a real node\n");
    let start = "start a control plane and a node";
    let world = step(start, Box::pin(World::start(programs))).await?;
    step("import the images", import(&world, &images)).await?;
    if let Err(error) = Box::pin(walk(&world)).await {
        print_line(&format!("\n{}", world.evidence().await));
        return Err(error);
    }
    print_line("\nEverything passed.");
    Ok(())
}

async fn walk(world: &World) -> Result<()> {
    step("install the CRDs (ocm crds)", install_crds(world)).await?;
    step("the hub's pod runs and is ready (deploy/pods/hub.yaml)", start_hub(world)).await?;
    step("the webhook's pod runs and is ready (deploy/pods/webhook.yaml)", start_webhook(world)).await?;
    step("and converts an add-on for the API server", convert(world)).await?;
    step("and decides on clusters (ocm webhooks)", admit(world)).await?;
    step("the agent's pod runs and is ready (deploy/pods/agent.yaml)", start_agent(world)).await?;
    step("clusteradm accept: approve the certificate, accept the cluster", accept(world)).await?;
    let cluster = ["managedcluster", CLUSTER];
    step("the cluster is available", world.condition(&cluster, "ManagedClusterConditionAvailable")).await?;
    step("ManifestWork mw-01 is applied and available", apply_work(world)).await?;
    step("its Pod hello is Running", hello_runs(world)).await?;
    step("its log contains hello", hello_is_logged(world)).await?;
    addon::walk(world).await?;
    show(world).await?;
    print_memory(world).await?;
    step("the add-on is deleted, and nothing of it is left", addon::leave(world)).await
}

/// The images of a folder, which must be those that the Deployments name: a pod would only wait for others.
async fn import(world: &World, images: &Path) -> Result<()> {
    let there = world.import(images).await?;
    let wanted = [HUB_PODS, WEBHOOK_PODS, AGENT_PODS, addon::MANAGER].into_iter().flat_map(str::lines);
    for image in wanted.filter_map(|line| line.trim().strip_prefix("image: ")) {
        let hint = "run `make image`, with no other REGISTRY, and without old archives there";
        ensure!(there.contains(&Reference::parse(image)?), "{image} is not in {}: {hint}", images.display());
    }
    Ok(())
}

async fn install_crds(world: &World) -> Result<()> {
    world.plane.apply_yaml(&world.ours.crds(&world.plane, &[]).await?).await
}

async fn start_hub(world: &World) -> Result<()> {
    world.plane.install(HUB_RIGHTS, HUB_PODS).await?;
    world.deployed("cluster-manager-hub", HUB.namespace).await
}

async fn start_webhook(world: &World) -> Result<()> {
    world.write_webhook_secret().await?;
    world.plane.apply_yaml(WEBHOOK_PODS).await?;
    world.deployed(WEBHOOK, HUB.namespace).await
}

/// The API server stores add-ons as v1alpha1, and reaches the pod through its service.
async fn convert(world: &World) -> Result<()> {
    eventually("the API server gets an answer from the webhook", || async {
        world.plane.kubectl_with_input(&["apply", "-f", "-"], CONVERTED).await.map(|_| true)
    })
    .await?;
    let stored = world.get(&["clustermanagementaddons.v1alpha1.addon.open-cluster-management.io", "converted"]).await?;
    ensure!(stored["spec"]["addOnMeta"]["displayName"] == "Converted", "this is what is stored: {stored}");
    world.plane.kubectl(&["delete", "clustermanagementaddon", "converted"]).await.map(drop)
}

/// From here on the API server asks it about every cluster.
async fn admit(world: &World) -> Result<()> {
    let authority = world.ours.write("ca.crt", world.plane.certificate_authority())?;
    let print = ["webhooks", "--ca-file", &authority.to_string_lossy()];
    world.plane.apply_yaml(&world.ours.run(&world.plane, "ocm", &print).await?).await?;
    eventually("the webhook sets what a cluster lacks", || async {
        let dry_run = ["create", "--dry-run=server", "-o", "json", "-f", "-"];
        let completed = world.plane.kubectl_with_input(&dry_run, UNLABELLED).await?;
        anyhow::Ok(completed.contains("cluster.open-cluster-management.io/clusterset"))
    })
    .await
}

async fn start_agent(world: &World) -> Result<()> {
    world.plane.apply_yaml(AGENT_RIGHTS).await?;
    world.write_bootstrap_secret().await?;
    world.plane.apply_yaml(AGENT_PODS).await?;
    world.deployed("klusterlet-agent", AGENT.namespace).await
}

async fn accept(world: &World) -> Result<()> {
    is_there(&world.plane, &["managedcluster", CLUSTER]).await?;
    world.ours.run(&world.plane, "clusteradm", &["accept", "--clusters", CLUSTER, "--wait"]).await.map(drop)
}

async fn apply_work(world: &World) -> Result<()> {
    world.plane.kubectl_with_input(&["apply", "-n", CLUSTER, "-f", "-"], WORKS).await?;
    world.condition(&WORK, "Applied").await?;
    world.condition(&WORK, "Available").await
}

async fn hello_runs(world: &World) -> Result<()> {
    eventually("pod hello is Running", || async {
        let status = world.get(&["pod", "hello", "-n", "default"]).await?["status"].take();
        anyhow::Ok(match status["phase"].as_str() {
            Some("Running") => Seen::Settled(()),
            _ => Seen::NotYet(status.to_string()),
        })
    })
    .await
}

/// Read through the API server and kubelet from the logs of containerd.
async fn hello_is_logged(world: &World) -> Result<()> {
    eventually("the log of pod hello holds its words", || async {
        let log = world.plane.kubectl(&["logs", "hello", "-n", "default"]).await?;
        anyhow::Ok(if log.contains("Hello, Kubernetes!") { Seen::Settled(()) } else { Seen::NotYet(log) })
    })
    .await
}

async fn show(world: &World) -> Result<()> {
    let all = [&["get", "managedclusters"][..], &["get", "managedclusteraddons", "-A"], &["get", "pods", "-A"]];
    for args in all {
        print_line(&format!("\n$ kubectl {}", args.join(" ")));
        print_line(world.plane.kubectl(args).await?.trim_end());
    }
    Ok(())
}

/// One JSON line per figure, as the benchmarks print them.
async fn print_memory(world: &World) -> Result<()> {
    print_line("");
    for used in world.node.memory(&world.plane).await? {
        for (kind, kilobytes) in [("resident", used.memory.resident_kb), ("anonymous", used.memory.anonymous_kb)] {
            // Not by the pod's name, which is random.
            let figure = format!("{kind} memory of a pod's container, {}/{}", used.namespace, used.container);
            print_line(&json!({"figure": figure, "value": kilobytes as f64 / 1000.0, "unit": "MB"}).to_string());
        }
    }
    Ok(())
}
