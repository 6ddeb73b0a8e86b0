//! Watches of applied objects that bring events twice, expire, or begin again with a list of older objects: drift is repaired
//! once, and feedback is that of the object as it is.

use std::time::Duration;

use anyhow::Result;
use kube::api::{Patch, PatchParams};
use ocm_agent::work::Settings;
use ocm_testing::{
    Seen, eventually,
    fault::{Asked, Fault, FaultyServer, Injection},
    fixture, unique,
};
use serde_json::{Value, json};

use crate::{
    works_feedback::{paths, reports},
    works_world::WorkWorld,
};

/// Longer than any test.
const NEVER: Duration = Duration::from_secs(24 * 3600);

fn is_watch(asked: &Asked) -> bool {
    asked.is_watch() && asked.is_about("configmaps")
}

/// Whether it is the list with which a watch begins.
fn is_list(asked: &Asked) -> bool {
    asked.is_read() && asked.path.ends_with("/configmaps") && asked.query.contains("limit=500")
}

/// An agent that neither polls objects nor applies works regularly, and its connection to the managed cluster.
async fn world(drift_watch_limit: usize, fault: Fault) -> Result<WorkWorld> {
    let change = |settings| Settings { reapply: NEVER..2 * NEVER, status_sync: NEVER, drift_watch_limit, ..settings };
    let mut world = WorkWorld::with(change).await?;
    let server = FaultyServer::start(fixture::get().managed1).await?;
    server.inject(fault);
    world.start_behind(server).await?;
    Ok(world)
}

/// The ConfigMap of a work of the same name.
fn map(world: &WorkWorld, name: &str, value: &str) -> Value {
    let mut map = world.config_map(name);
    map["data"] = json!({"a": value});
    map
}

async fn patch(world: &WorkWorld, name: &str, change: Value) -> Result<()> {
    world.config_maps().patch(name, &PatchParams::default(), &Patch::Merge(change)).await?;
    Ok(())
}

/// Somebody changes the ConfigMap of a work, and the agent changes it back.
async fn is_repaired(world: &WorkWorld, name: &str, value: &str) -> Result<()> {
    patch(world, name, json!({"data": {"a": "theirs"}})).await?;
    eventually(&format!("{name} is repaired"), || async {
        let data = world.config_maps().get(name).await?.data.unwrap_or_default();
        anyhow::Ok(if data["a"] == value { Seen::Settled(()) } else { Seen::NotYet(format!("{data:?}")) })
    })
    .await
}

/// Waits until all faults have happened.
async fn all_happened(world: &WorkWorld) -> Result<()> {
    eventually("every fault has happened", || async { anyhow::Ok(world.server()?.outstanding() == 0) }).await
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_come_twice_cause_one_repair() -> Result<()> {
    let world = world(9, Fault::new(Injection::RepeatEvents).when(is_watch).times(usize::MAX)).await?;
    let (first, second) = (unique("first"), unique("second"));
    for name in [&first, &second] {
        world.create(name, json!([map(&world, name, "1")])).await?;
        world.is(name, "Applied", "True").await?;
    }
    is_repaired(&world, &first, "1").await?;
    let before = world.server()?.writes().count();
    for name in [&first, &second] {
        is_repaired(&world, name, "1").await?;
    }
    let writes = world.server()?.writes();
    eventually("the second repair is counted", || async { !writes.is_under_way() }).await?;
    assert_eq!(writes.count() - before, 2, "one for each change");
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_older_objects_has_nothing_repaired_and_the_watch_after_it_brings_what_has_changed() -> Result<()> {
    let world = world(9, Fault::new(Injection::Keep).when(is_list)).await?;
    let (older, missing) = (unique("older"), unique("missing"));
    world.create(&older, json!([map(&world, &older, "1")])).await?;
    all_happened(&world).await?;
    is_repaired(&world, &older, "1").await?;
    world.edit(&older, json!({"workload": {"manifests": [map(&world, &older, "2")]}})).await?;
    world.create(&missing, json!([map(&world, &missing, "1")])).await?;
    for name in [&older, &missing] {
        world.is(name, "Applied", "True").await?;
    }
    is_repaired(&world, &missing, "1").await?;
    let writes = world.server()?.writes();
    eventually("the repair is counted", || async { !writes.is_under_way() }).await?;
    let before = writes.count();
    world.server()?.inject(Fault::new(Injection::Replay).when(is_list));
    world.cut();
    all_happened(&world).await?;
    for (name, value) in [(&older, "2"), (&missing, "1")] {
        is_repaired(&world, name, value).await?;
    }
    eventually("the last repair is counted", || async { !writes.is_under_way() }).await?;
    assert_eq!(writes.count() - before, 2, "the list itself is no reason to write");
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn feedback_follows_an_object_whatever_happens_to_its_watch() -> Result<()> {
    let (world, name) = (world(0, Fault::new(Injection::Keep).when(is_list)).await?, unique("work"));
    let id = json!({"resource": "configmaps", "namespace": world.cluster, "name": name});
    let rules = paths(&[("label", ".metadata.labels.l")]);
    let config = json!({"resourceIdentifier": id, "feedbackRules": rules, "feedbackScrapeType": "Watch"});
    let workload = json!({"manifests": [world.config_map(&name)]});
    world.create_with(&name, json!({"workload": workload, "manifestConfigs": [config]})).await?;
    let follows = async |value: &str| {
        patch(&world, &name, json!({"metadata": {"labels": {"l": value}}})).await?;
        reports(&world, &name, &json!({"label": value}), "True").await
    };
    all_happened(&world).await?;
    follows("listed").await?;
    for (fault, value) in [
        (Fault::new(Injection::Expire).when(is_watch), "expired"),
        (Fault::new(Injection::RepeatEvents).when(is_watch), "repeated"),
        (Fault::new(Injection::LoseEvents(1)).when(is_watch), "lost"),
        (Fault::new(Injection::Replay).when(is_list), "older"),
    ] {
        world.server()?.inject(fault);
        world.cut();
        all_happened(&world).await?;
        follows(value).await?;
    }
    world.config_maps().delete(&name, &Default::default()).await?;
    world.is(&name, "Available", "False").await?;
    world.stop().await;
    Ok(())
}
