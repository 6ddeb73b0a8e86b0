//! The walk-through: manager and agent as processes, on a real hub and a real managed cluster, with the rights that are
//! shipped. The parts of the hub and of the cluster's agent are played by the test.

mod world;

use anyhow::{Context as _, Result};
use ocm_runtime::pki::{PrivateKey, Subject};
use ocm_testing::{Seen, Signal, eventually};
use serde_json::Value;

use crate::world::{ADDONS, World};

#[tokio::test]
async fn config_maps_of_the_hub_are_copied_to_the_managed_cluster_updated_and_deleted_and_nothing_is_left() -> Result<()>
{
    let world = World::start().await?;
    let manager = world.start_manager().await?;
    world.enable().await?;
    world.apply_work().await?;
    world.write_credentials().await?;
    let agent = world.start_agent().await?;

    eventually("the agent renews its lease", || world.managed_has("lease", "helloworld")).await?;
    copies_follow(&world).await?;

    world.hub.kubectl(&["delete", ADDONS, "helloworld", "-n", "cluster1"]).await?;
    for (resource, name) in [
        ("manifestwork", "addon-helloworld-deploy-0"),
        ("role", "open-cluster-management:helloworld:agent"),
        ("rolebinding", "open-cluster-management:helloworld:agent"),
    ] {
        eventually(&format!("{resource} {name} is gone from the hub"), || async {
            world.hub_has(resource, name).await.map(|has| !has)
        })
        .await?;
    }
    world.delete_work().await?;
    for (resource, name) in [("configmap", "left"), ("lease", "helloworld")] {
        let what = format!("{resource} {name} is gone from the managed cluster");
        eventually(&what, || async { world.managed_has(resource, name).await.map(|has| !has) }).await?;
    }
    for process in [agent, manager] {
        process.signal(Signal::TERM)?;
        let ended = eventually(&format!("{} has ended", process.name()), || async { process.try_wait() }).await?;
        assert!(ended.success(), "{}", process.log_tail());
    }
    Ok(())
}

/// A ConfigMap of the hub and its copy, from the first to the last.
async fn copies_follow(world: &World) -> Result<()> {
    world
        .managed
        .kubectl(&["create", "configmap", "foreign", "--from-literal=of=somebody-else", "-n", "default"])
        .await?;
    let root = world.managed_data("kube-root-ca.crt").await?;
    for name in ["foreign", "greeting", "left"] {
        world.hub.kubectl(&["create", "configmap", name, "--from-literal=say=hello", "-n", "cluster1"]).await?;
    }
    is_copied(world, "greeting", "hello").await?;
    is_copied(world, "left", "hello").await?;
    // A copy without our label is no longer watched, and still ours.
    let taken = r#"{"metadata":{"labels":null},"data":{"say":"nonsense"}}"#;
    world.managed.kubectl(&["patch", "configmap", "greeting", "-n", "default", "--type=merge", "-p", taken]).await?;
    is_copied(world, "greeting", "hello").await?;
    let patch = r#"{"data":{"say":"good night"}}"#;
    world.hub.kubectl(&["patch", "configmap", "greeting", "-n", "cluster1", "--type=merge", "-p", patch]).await?;
    is_copied(world, "greeting", "good night").await?;
    // What somebody does to a copy does not last.
    let edit = r#"{"data":{"say":"nonsense"}}"#;
    world.managed.kubectl(&["patch", "configmap", "greeting", "-n", "default", "--type=merge", "-p", edit]).await?;
    is_copied(world, "greeting", "good night").await?;
    world.hub.kubectl(&["delete", "configmap", "greeting", "-n", "cluster1"]).await?;
    eventually("the copy is gone", || async { world.managed_has("configmap", "greeting").await.map(|has| !has) })
        .await?;
    assert_eq!(world.managed_data("foreign").await?["of"], "somebody-else");
    assert_eq!(world.managed_data("kube-root-ca.crt").await?, root);
    Ok(())
}

async fn is_copied(world: &World, name: &str, text: &str) -> Result<()> {
    eventually(&format!("the copy of {name} contains {text}"), || async {
        let data = world.managed_data(name).await?;
        anyhow::Ok(if data["say"] == text { Seen::Settled(()) } else { Seen::NotYet(data.to_string()) })
    })
    .await
}

impl World {
    /// What the cluster's agent does: asks for the identity that the add-on's status names, and keeps it in a folder.
    async fn write_credentials(&self) -> Result<()> {
        let addon = eventually("the add-on says whom its agent is", || async {
            let addon = self.hub_object(ADDONS, "helloworld").await?;
            anyhow::Ok(addon["status"]["registrations"][0]["subject"].as_object().cloned())
        })
        .await?;
        let groups = addon["groups"].as_array().into_iter().flatten();
        let groups = groups.filter_map(|group| group.as_str().map(str::to_owned)).collect();
        let key = PrivateKey::generate();
        let request = key.request(&Subject::new(addon["user"].as_str().unwrap_or_default(), groups))?;
        let certificate = self.certificate(&request).await?;
        self.write_secret(&certificate, &key.to_pem()?)
    }

    /// The content of a ConfigMap on the managed cluster.
    async fn managed_data(&self, name: &str) -> Result<Value> {
        let text = self.managed.kubectl(&["get", "configmap", name, "-n", "default", "-o", "json"]).await?;
        let object: Value = serde_json::from_str(&text)?;
        object.get("data").cloned().context("a ConfigMap without data")
    }
}
