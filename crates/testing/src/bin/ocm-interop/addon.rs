//! The add-on `helloworld`: its manager on the hub, and its agent on the managed cluster.

use anyhow::Result;
use ocm_testing::{
    Seen, eventually,
    scenario::{condition, get, is_gone, is_there, write_secret},
};
use serde_json::json;

use crate::{
    parts::{Addon, Side},
    world::{CLUSTER, World},
};

/// The same for OCM's and ours: a Placement, and the add-on on the clusters that it selects.
const ADDON: &str = include_str!("../ocm-demo/addon.yaml");
const OUR_RIGHTS: &str = include_str!("../../../../../examples/helloworld/deploy/hub.yaml");
const MANAGER_NAMESPACE: &str = "open-cluster-management";
const NAMESPACE: &str = "open-cluster-management-agent-addon";
/// The name of its agent's process.
pub(crate) const AGENT: &str = "helloworld-agent";
const AGENT_ACCOUNT: &str = "helloworld-agent-sa";
const MANAGED_ADDON: [&str; 4] = ["managedclusteraddon", "helloworld", "-n", CLUSTER];
const WORK: [&str; 4] = ["manifestwork", "addon-helloworld-deploy-0", "-n", CLUSTER];
const DEPLOYMENT: [&str; 4] = ["deployment", "helloworld-agent", "-n", NAMESPACE];
const SECRET: [&str; 4] = ["secret", "helloworld-hub-kubeconfig", "-n", NAMESPACE];
const ORIGINAL: [&str; 4] = ["configmap", "greeting", "-n", CLUSTER];
const COPY: [&str; 4] = ["configmap", "greeting", "-n", NAMESPACE];

/// The manager's account and its rights, as they come with the example.
pub(crate) async fn install(world: &World) -> Result<()> {
    match world.cast.addon.side() {
        Side::Ours => world.hub.apply_yaml(OUR_RIGHTS).await,
        Side::Ocm => {
            let rights = world.manifests("helloworld")?.join("\n---\n");
            let apply = ["apply", "--server-side", "-n", MANAGER_NAMESPACE, "-f", "-"];
            world.hub.kubectl_with_input(&apply, &rights).await.map(drop)
        }
    }
}

pub(crate) async fn start_manager(world: &World) -> Result<()> {
    let (account, program, args) = match world.cast.addon {
        Addon::Rust => ("helloworld-manager", "helloworld", &["manager", "--listen=127.0.0.1:0"][..]),
        Addon::GoByLease => ("helloworld-addon-sa", "helloworld-by-lease", &["controller"][..]),
        // It serves on port 8443, and has no flag for another one.
        Addon::Go => ("helloworld-addon-sa", "helloworld", &["controller"][..]),
    };
    let kubeconfig = world.ours.file("helloworld.kubeconfig");
    world.hub.write_login(MANAGER_NAMESPACE, account, &kubeconfig).await?;
    let process = world.process(world.cast.addon.side(), program, "helloworld-manager");
    world.running.add(process.args(args).arg("--kubeconfig").arg(kubeconfig).start()?);
    Ok(())
}

pub(crate) async fn apply(world: &World) -> Result<()> {
    world.hub.apply_yaml(ADDON).await
}

pub(crate) async fn is_chosen(world: &World) -> Result<()> {
    is_there(&world.hub, &MANAGED_ADDON).await
}

pub(crate) async fn is_deployed(world: &World) -> Result<()> {
    condition(&world.hub, &WORK, "Applied").await?;
    condition(&world.hub, &WORK, "Available").await?;
    condition(&world.hub, &MANAGED_ADDON, "ManifestApplied").await
}

pub(crate) async fn is_registered(world: &World) -> Result<()> {
    is_there(&world.managed, &SECRET).await?;
    condition(&world.hub, &MANAGED_ADDON, "RegistrationApplied").await
}

/// Starts the agent with the files that its pod would have: the keys of the secret, and its account.
pub(crate) async fn start_agent(world: &World) -> Result<()> {
    let credentials = world.ours.file("helloworld-credentials");
    write_secret(&world.managed, &SECRET, &credentials).await?;
    let own = world.ours.file("helloworld-agent.kubeconfig");
    world.managed.write_login(NAMESPACE, AGENT_ACCOUNT, &own).await?;
    let (program, own_flag) = match world.cast.addon {
        Addon::Rust => ("helloworld", "--managed-kubeconfig"),
        // The agent of OCM's example must listen on no port: its manager uses the same one.
        Addon::Go | Addon::GoByLease => ("helloworld-by-lease", "--kubeconfig"),
    };
    let process = world.process(world.cast.addon.side(), program, AGENT);
    let process = process
        .args(["agent", "--cluster-name", CLUSTER, "--addon-namespace", NAMESPACE, "--hub-kubeconfig"])
        .arg(credentials.join("kubeconfig"))
        .arg(own_flag)
        .arg(own);
    world.running.add(process.start()?);
    Ok(())
}

/// Writes the status that the Deployment would have if its pod ran.
pub(crate) async fn report_running(world: &World) -> Result<()> {
    let generation = &get(&world.managed, &DEPLOYMENT).await?["metadata"]["generation"];
    let status = json!({"status": {"replicas": 1, "readyReplicas": 1, "availableReplicas": 1, "updatedReplicas": 1,
        "observedGeneration": generation}});
    let status = status.to_string();
    let patch = [&["patch"], &DEPLOYMENT[..], &["--subresource=status", "--type=merge", "-p", &status]].concat();
    world.managed.kubectl(&patch).await.map(drop)
}

pub(crate) async fn is_available(world: &World) -> Result<()> {
    condition(&world.hub, &MANAGED_ADDON, "Available").await
}

/// A ConfigMap on the hub is copied to the managed cluster, and so is an update of it.
pub(crate) async fn copies(world: &World) -> Result<()> {
    let create = [&["create"], &ORIGINAL[..], &["--from-literal=words=hello"]].concat();
    world.hub.kubectl(&create).await?;
    copy_has(world, "hello").await?;
    let update = [&["patch"], &ORIGINAL[..], &["--type=merge", "-p", r#"{"data":{"words":"hello again"}}"#]].concat();
    world.hub.kubectl(&update).await?;
    copy_has(world, "hello again").await
}

async fn copy_has(world: &World, words: &str) -> Result<()> {
    eventually(&format!("the copy contains {words:?}"), || async {
        let copy = get(&world.managed, &COPY).await?;
        anyhow::Ok(if copy["data"]["words"] == words { Seen::Settled(()) } else { Seen::NotYet(copy.to_string()) })
    })
    .await
}

pub(crate) async fn delete(world: &World) -> Result<()> {
    world.hub.kubectl(&["delete", "clustermanagementaddon", "helloworld"]).await.map(drop)
}

pub(crate) async fn is_gone_everywhere(world: &World) -> Result<()> {
    is_gone(&world.hub, &MANAGED_ADDON).await?;
    is_gone(&world.hub, &WORK).await?;
    is_gone(&world.managed, &DEPLOYMENT).await?;
    is_gone(&world.managed, &SECRET).await
}
