//! The add-on helloworld from its installation to its deletion: its manager and its agent are pods.

use anyhow::{Result, ensure};
use ocm_testing::scenario::{is_gone, is_there, step};
use ocm_testing::{Seen, eventually};

use crate::world::{CLUSTER, World};

const RIGHTS: &str = include_str!("../../../../../examples/helloworld/deploy/hub.yaml");
const ADDON: &str = include_str!("../../../../../examples/helloworld/deploy/addon.yaml");
pub(crate) const MANAGER: &str = include_str!("../../../../../examples/helloworld/deploy/manager.yaml");
const ENABLE: &str = include_str!("../../../../../examples/helloworld/deploy/enable.yaml");

const ON_CLUSTER: [&str; 4] = ["managedclusteraddon", "helloworld", "-n", CLUSTER];
/// What the add-on deploys into namespace `default` of the managed cluster, and what it creates there.
const BROUGHT: &str = "deployment/helloworld-agent,serviceaccount/helloworld-agent-sa,role/helloworld-agent-sa,\
    rolebinding/helloworld-agent-sa";
const MADE: &str = "secret/helloworld-hub-kubeconfig,lease/helloworld,configmap/greeting";
/// What it has in the cluster's namespace on the hub.
const ON_HUB: &str = "managedclusteraddon/helloworld,manifestwork/addon-helloworld-deploy-0,\
    role/open-cluster-management:helloworld:agent,rolebinding/open-cluster-management:helloworld:agent";

pub(crate) async fn walk(world: &World) -> Result<()> {
    step("the pod of helloworld's manager runs and is ready", start_manager(world)).await?;
    step("the add-on is enabled on the cluster: its objects are there", enable(world)).await?;
    step("its agent's certificate is issued, and kept in a secret", registered(world)).await?;
    step("its agent's pod runs", world.deployed("helloworld-agent", "default")).await?;
    step("its lease reports it as available", world.condition(&ON_CLUSTER, "Available")).await?;
    step("a ConfigMap on the hub gets to the cluster", copied(world)).await?;
    step("follows its changes", followed(world)).await?;
    step("and goes when it goes", gone(world)).await
}

/// Deletes the add-on, which must leave nothing behind.
pub(crate) async fn leave(world: &World) -> Result<()> {
    world.plane.kubectl(&["create", "configmap", "greeting", "-n", CLUSTER, "--from-literal=text=last"]).await?;
    copy_has(world, "last").await?;
    world.plane.kubectl(&["delete", "managedclusteraddon", "helloworld", "-n", CLUSTER]).await?;
    for (namespace, objects) in [("default", BROUGHT), ("default", MADE), (CLUSTER, ON_HUB)] {
        for object in objects.split(',') {
            is_gone(&world.plane, &[object, "-n", namespace]).await?;
        }
    }
    Ok(())
}

async fn start_manager(world: &World) -> Result<()> {
    world.plane.install(RIGHTS, ADDON).await?;
    world.plane.apply_yaml(MANAGER).await?;
    world.deployed("helloworld-manager", "open-cluster-management").await
}

async fn enable(world: &World) -> Result<()> {
    world.plane.apply_yaml(ENABLE).await?;
    for object in BROUGHT.split(',') {
        is_there(&world.plane, &[object, "-n", "default"]).await?;
    }
    let work = ["manifestwork", "addon-helloworld-deploy-0", "-n", CLUSTER];
    world.condition(&work, "Applied").await?;
    world.condition(&work, "Available").await
}

async fn registered(world: &World) -> Result<()> {
    let labelled = "open-cluster-management.io/addon-name=helloworld";
    is_there(&world.plane, &["secret/helloworld-hub-kubeconfig", "-n", "default"]).await?;
    let data = world.get(&["secret", "helloworld-hub-kubeconfig", "-n", "default"]).await?["data"].take();
    for key in ["tls.crt", "tls.key", "kubeconfig", "cluster-name"] {
        ensure!(data[key].is_string(), "the secret has no {key}");
    }
    let requests = world.get(&["csr", "-l", labelled]).await?["items"].take();
    let requests = requests.as_array().map(Vec::as_slice).unwrap_or_default();
    ensure!(requests.len() == 1, "there are {} requests for a certificate", requests.len());
    ensure!(requests[0]["status"]["conditions"][0]["type"] == "Approved", "{}", requests[0]["status"]);
    Ok(())
}

async fn copied(world: &World) -> Result<()> {
    world.plane.kubectl(&["create", "configmap", "greeting", "-n", CLUSTER, "--from-literal=text=hello"]).await?;
    copy_has(world, "hello").await
}

async fn followed(world: &World) -> Result<()> {
    let patch = r#"{"data": {"text": "hello again"}}"#;
    world.plane.kubectl(&["patch", "configmap", "greeting", "-n", CLUSTER, "--type=merge", "-p", patch]).await?;
    copy_has(world, "hello again").await
}

async fn gone(world: &World) -> Result<()> {
    world.plane.kubectl(&["delete", "configmap", "greeting", "-n", CLUSTER]).await?;
    is_gone(&world.plane, &["configmap/greeting", "-n", "default"]).await
}

/// Waits until the copy of the ConfigMap has this text.
async fn copy_has(world: &World, text: &str) -> Result<()> {
    eventually(&format!("the copy contains {text:?}"), || async {
        let copy = world.get(&["configmap", "greeting", "-n", "default"]).await?;
        let found = copy["data"]["text"].as_str().unwrap_or_default();
        anyhow::Ok(if found == text { Seen::Settled(()) } else { Seen::NotYet(found.to_owned()) })
    })
    .await
}
