//! The hub is away, while the agent runs or is started.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, ListParams, Patch, PatchParams},
    core::ObjectMeta,
};
use ocm_agent::work::{OfflineSettings, Settings};
use ocm_api::labels::OFFLINE_COPY;
use ocm_testing::{ControlPlane, Part, Seen, eventually};
use serde_json::{Value, json};

use crate::{registration_world::install_crds, works_world::WorkWorld};

/// How often the agents of these tests apply a work again.
const REAPPLY: std::ops::Range<Duration> = Duration::from_millis(500)..Duration::from_secs(1);

/// A hub that the test can stop, and an agent that repairs often.
async fn hub_and_agent(keeps_copies: bool) -> Result<(ControlPlane, WorkWorld)> {
    let hub = ControlPlane::builder().name("away").start().await?;
    install_crds(&hub, &["_manifestworks"]).await?;
    let world = WorkWorld::at(&hub, |settings| {
        let offline = OfflineSettings { keeps_copies, namespace: settings.cluster.clone(), patience: Duration::ZERO };
        Settings { reapply: REAPPLY, offline, ..settings }
    })
    .await?;
    Ok((hub, world))
}

fn manifest(world: &WorkWorld, name: &str, value: &str) -> Value {
    let mut manifest = world.config_map(name);
    manifest["data"] = json!({"value": value});
    manifest
}

/// Waits until the object has this value.
async fn has(world: &WorkWorld, name: &str, value: &str) -> Result<()> {
    eventually(&format!("{name} has value {value}"), || async {
        let found = world.config_maps().get_opt(name).await?.and_then(|map| map.data);
        let found = found.and_then(|data| data.get("value").cloned());
        anyhow::Ok(if found.as_deref() == Some(value) { Seen::Settled(()) } else { Seen::NotYet(format!("{found:?}")) })
    })
    .await
}

/// Changes one object on the managed cluster, and deletes another.
async fn drift(world: &WorkWorld, changed: &str, deleted: &str) -> Result<()> {
    let patch = Patch::Merge(json!({"data": {"value": "drifted"}}));
    world.config_maps().patch(changed, &PatchParams::default(), &patch).await?;
    world.config_maps().delete(deleted, &DeleteParams::default()).await?;
    Ok(())
}

async fn copies(world: &WorkWorld) -> Result<Vec<Secret>> {
    let secrets: Api<Secret> = Api::namespaced(world.managed.clone(), &world.cluster);
    Ok(secrets.list(&ListParams::default().labels(OFFLINE_COPY)).await?.items)
}

async fn has_copies(world: &WorkWorld, count: usize) -> Result<()> {
    eventually(&format!("there are {count} copies"), || async {
        let found = copies(world).await?.len();
        anyhow::Ok(if found == count { Seen::Settled(()) } else { Seen::NotYet(found.to_string()) })
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_runs_repairs_while_the_hub_is_away_without_any_copies() -> Result<()> {
    let (hub, world) = hub_and_agent(false).await?;
    world.create("a", json!([manifest(&world, "a", "1"), manifest(&world, "b", "1")])).await?;
    world.is("a", "Applied", "True").await?;
    hub.stop(Part::ApiServer)?;
    drift(&world, "a", "b").await?;
    has(&world, "a", "1").await?;
    has(&world, "b", "1").await?;
    assert!(copies(&world).await?.is_empty());
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_is_started_while_the_hub_is_away_repairs_from_its_copies_and_catches_up_later() -> Result<()> {
    let (hub, mut world) = hub_and_agent(true).await?;
    world.create("kept", json!([manifest(&world, "kept", "1"), manifest(&world, "gone", "1")])).await?;
    world.create("edited", json!([manifest(&world, "edited", "1"), manifest(&world, "taken-out", "1")])).await?;
    world.create("deleted", json!([manifest(&world, "deleted", "1")])).await?;
    for work in ["kept", "edited", "deleted"] {
        world.is(work, "Applied", "True").await?;
    }
    has_copies(&world, 3).await?;
    world.stop().await;
    world.edit("edited", json!({"workload": {"manifests": [manifest(&world, "edited", "2")]}})).await?;
    world.delete("deleted").await?;
    hub.stop(Part::ApiServer)?;
    drift(&world, "kept", "gone").await?;
    drift(&world, "edited", "deleted").await?;
    world.config_maps().delete("taken-out", &DeleteParams::default()).await?;

    world.start().await?;
    for object in ["kept", "gone", "edited", "taken-out", "deleted"] {
        has(&world, object, "1").await?;
    }
    for _ in 0..2 {
        drift(&world, "kept", "gone").await?;
        has(&world, "kept", "1").await?;
        has(&world, "gone", "1").await?;
    }

    hub.start_part(Part::ApiServer)?;
    hub.wait_ready().await?;
    has(&world, "edited", "2").await?;
    world.is("edited", "Applied", "True").await?;
    world.is_gone("deleted").await?;
    eventually("what is no longer in a work is deleted", || async {
        let maps = world.config_maps();
        anyhow::Ok(maps.get_opt("taken-out").await?.is_none() && maps.get_opt("deleted").await?.is_none())
    })
    .await?;
    has_copies(&world, 2).await?;
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_was_taken_out_of_its_work_does_not_come_back_from_an_older_copy() -> Result<()> {
    let (hub, mut world) = hub_and_agent(true).await?;
    world.create("w", json!([manifest(&world, "taken-out", "1"), manifest(&world, "kept", "1")])).await?;
    world.is("w", "Applied", "True").await?;
    let older = copies(&world).await?.pop().expect("a copy is written before its work is applied");
    world.edit("w", json!({"workload": {"manifests": [manifest(&world, "kept", "1")]}})).await?;
    let is_gone = || async { anyhow::Ok(world.config_maps().get_opt("taken-out").await?.is_none()) };
    eventually("what is no longer in the work is deleted", is_gone).await?;
    world.stop().await;
    hub.stop(Part::ApiServer)?;
    let older = Secret { metadata: ObjectMeta { annotations: older.metadata.annotations, ..<_>::default() }, ..older };
    let secrets: Api<Secret> = Api::namespaced(world.managed.clone(), &world.cluster);
    let name = copies(&world).await?.pop().expect("the copy").name_any();
    secrets.patch(&name, &PatchParams::default(), &Patch::Merge(&older)).await?;
    let patch = Patch::Merge(json!({"data": {"value": "drifted"}}));
    world.config_maps().patch("kept", &PatchParams::default(), &patch).await?;

    world.start().await?;
    has(&world, "kept", "1").await?;
    assert_eq!(world.config_maps().get_opt("taken-out").await?, None);
    hub.start_part(Part::ApiServer)?;
    hub.wait_ready().await?;
    world.edit("w", json!({"workload": {"manifests": [manifest(&world, "kept", "2")]}})).await?;
    has(&world, "kept", "2").await?;
    assert_eq!(world.config_maps().get_opt("taken-out").await?, None);
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_was_changed_is_not_used() -> Result<()> {
    let (hub, mut world) = hub_and_agent(true).await?;
    for work in ["changed", "whole"] {
        world.create(work, json!([manifest(&world, work, "1")])).await?;
        world.is(work, "Applied", "True").await?;
    }
    has_copies(&world, 2).await?;
    world.stop().await;
    hub.stop(Part::ApiServer)?;
    let copies = copies(&world).await?;
    let record = world.record_name("changed");
    let copy = copies.iter().find(|copy| copy.annotations().values().any(|value| *value == record)).expect("its copy");
    let text = String::from_utf8(copy.data.clone().unwrap_or_default()["work"].0.clone())?;
    let stolen = text.replace("\"value\":\"1\"", "\"value\":\"2\"");
    assert_ne!(text, stolen);
    let secrets: Api<Secret> = Api::namespaced(world.managed.clone(), &world.cluster);
    let patch = Patch::Merge(json!({"stringData": {"work": stolen}}));
    secrets.patch(&copy.name_any(), &PatchParams::default(), &patch).await?;
    drift(&world, "changed", "whole").await?;
    world.start().await?;
    has(&world, "whole", "1").await?;
    eventually("the other was considered, too", || async { world.reconciles("offline-works") >= 4 }).await?;
    has(&world, "changed", "drifted").await?;
    world.stop().await;
    Ok(())
}
