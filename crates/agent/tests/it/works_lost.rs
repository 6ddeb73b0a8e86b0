//! A hub that lost works, and people who delete many.

use std::time::Duration;

use anyhow::{Context as _, Result};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::{ConfigMap, Event};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use ocm_agent::work::Settings;
use ocm_api::{
    annotations, cluster::v1::ManagedCluster, conditions::cluster::WORK_EVICTION_HELD, work::v1::AppliedManifestWork,
};
use ocm_runtime::conditions::find;
use ocm_testing::{ControlPlane, Seen, eventually};
use serde_json::json;

use crate::{registration_world::install_crds, works_world::WorkWorld};

/// A hub that the test can restore, and an agent that evicts without a grace period what it may evict.
async fn hub_and_agent() -> Result<(ControlPlane, WorkWorld)> {
    let hub = ControlPlane::builder().name("restored").start().await?;
    install_crds(&hub, &["_manifestworks", "_managedclusters"]).await?;
    let world = WorkWorld::at(&hub, |settings| Settings { eviction_grace: Duration::ZERO, ..settings }).await?;
    let cluster = ManagedCluster::new(&world.cluster, serde_json::from_value(json!({"hubAcceptsClient": true}))?);
    clusters(&world).create(&PostParams::default(), &cluster).await?;
    Ok((hub, world))
}

/// Writes to the hub what the restore of an earlier backup takes back: as much as a hub writes in some minutes.
async fn move_on(world: &WorkWorld) -> Result<()> {
    let api: Api<ConfigMap> = Api::namespaced(world.hub.clone(), &world.cluster);
    let named = |n| {
        let mut object = ConfigMap::default();
        object.metadata.name = Some(format!("moves-on-{n}"));
        object
    };
    let (params, objects) = (PostParams::default(), (0..500).map(named).collect::<Vec<_>>());
    for some in objects.chunks(50) {
        try_join_all(some.iter().map(|object| api.create(&params, object))).await?;
    }
    Ok(())
}

fn clusters(world: &WorkWorld) -> Api<ManagedCluster> {
    Api::all(world.hub.clone())
}

async fn create_all(world: &WorkWorld, names: &[&str]) -> Result<()> {
    try_join_all(names.iter().map(|name| world.create(name, json!([world.config_map(name)])))).await?;
    for name in names {
        world.is(name, "Applied", "True").await?;
    }
    Ok(())
}

/// Waits until the condition WorkEvictionHeld has this status and its message contains all of this; returns the message.
async fn is_held(world: &WorkWorld, status: &str, parts: &[&str]) -> Result<String> {
    eventually(&format!("{WORK_EVICTION_HELD} is {status} and names {parts:?}"), || async {
        let conditions = clusters(world).get(&world.cluster).await?.status.unwrap_or_default().conditions;
        let message = find(&conditions, WORK_EVICTION_HELD).filter(|condition| condition.status == status);
        let message = message.map(|condition| format!("{}: {}", condition.reason, condition.message));
        let message = message.filter(|message| parts.iter().all(|part| message.contains(part)));
        anyhow::Ok(message.map_or_else(|| Seen::NotYet(format!("{conditions:?}")), Seen::Settled))
    })
    .await
}

async fn record(world: &WorkWorld, work: &str) -> Result<Option<AppliedManifestWork>> {
    Ok(world.records().get_opt(&world.record_name(work)).await?)
}

/// Whether nothing of these works was deleted or is about to be.
async fn are_untouched(world: &WorkWorld, names: &[&str]) -> Result<()> {
    for name in names {
        let record = record(world, name).await?.with_context(|| format!("the record of {name} is gone"))?;
        let object = world.config_maps().get(name).await?;
        assert!(record.metadata.deletion_timestamp.is_none() && object.metadata.deletion_timestamp.is_none(), "{name}");
        assert!(record.status.is_none_or(|status| status.eviction_start_time.is_none()), "{name}");
    }
    Ok(())
}

async fn are_gone(world: &WorkWorld, names: &[&str]) -> Result<()> {
    eventually("records and objects are gone", || async {
        for name in names {
            if record(world, name).await?.is_some() || world.config_maps().get_opt(name).await?.is_some() {
                return anyhow::Ok(Seen::NotYet((*name).to_owned()));
            }
        }
        Ok(Seen::Settled(()))
    })
    .await
}

/// Starts the agent again, and waits until it has decided on every record.
async fn restart(world: &mut WorkWorld, records: u64) -> Result<()> {
    world.stop().await;
    world.start().await?;
    eventually("the agent has decided on every record", || async {
        world.reconciles("applied-manifestwork-eviction") >= records
    })
    .await
}

async fn three_are_counted(world: &WorkWorld) -> Result<()> {
    let line = "ocm_deletions_held{kind=\"appliedmanifestworks\"} 3";
    eventually("the metric says that three are held", || async { world.metrics().contains(line) }).await
}

async fn held_events(world: &WorkWorld) -> Result<usize> {
    let events: Api<Event> = Api::namespaced(world.hub.clone(), &world.cluster);
    let events = events.list(&ListParams::default()).await?.items;
    Ok(events.iter().filter(|event| event.reason.as_deref() == Some(WORK_EVICTION_HELD)).count())
}

fn token(message: &str) -> Result<&str> {
    let rest = message.split_once(&format!("{}=", annotations::CONFIRM_EVICTION)).context("no command")?.1;
    rest.split_whitespace().next().context("no token")
}

async fn confirm(world: &WorkWorld, token: &str) -> Result<()> {
    let patch = json!({"metadata": {"annotations": {annotations::CONFIRM_EVICTION: token}}});
    clusters(world).patch(&world.cluster, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_lost_most_works_in_a_restore_has_nothing_deleted_until_somebody_confirms() -> Result<()> {
    let (hub, mut world) = hub_and_agent().await?;
    create_all(&world, &["kept"]).await?;
    let backup = hub.back_up().await?;
    let lost = ["lost-a", "lost-b", "lost-c"];
    create_all(&world, &lost).await?;

    hub.restore(&backup).await?;
    is_held(&world, "True", &["ManyManifestWorksMissing", "3 of the 4", "lost-a, lost-b, lost-c"]).await?;
    // It is written after the condition, and an agent that is stopped in between does not write it again.
    eventually("there is an event", || async { anyhow::Ok(held_events(&world).await? == 1) }).await?;
    are_untouched(&world, &lost).await?;
    restart(&mut world, 4).await?;
    three_are_counted(&world).await?;
    are_untouched(&world, &lost).await?;
    let message = is_held(&world, "True", &lost).await?;
    confirm(&world, "another").await?;
    restart(&mut world, 4).await?;
    three_are_counted(&world).await?;
    are_untouched(&world, &lost).await?;

    confirm(&world, token(&message)?).await?;
    are_gone(&world, &lost).await?;
    is_held(&world, "False", &["NoEvictionHeld"]).await?;
    are_untouched(&world, &["kept"]).await?;
    world.stop().await;
    assert_eq!(held_events(&world).await?, 1, "although the agent was restarted");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_few_works_that_a_restore_lost_are_held_until_they_are_back() -> Result<()> {
    let (hub, mut world) = hub_and_agent().await?;
    let kept = ["kept-a", "kept-b", "kept-c", "kept-d"];
    create_all(&world, &kept).await?;
    let backup = hub.back_up().await?;
    move_on(&world).await?;
    create_all(&world, &["lost"]).await?;

    hub.restore(&backup).await?;
    is_held(&world, "True", &["HubRestored", "1 of the 5", "lost"]).await?;
    are_untouched(&world, &["lost"]).await?;
    restart(&mut world, 5).await?;
    are_untouched(&world, &["lost"]).await?;
    create_all(&world, &["lost"]).await?;
    is_held(&world, "False", &["NoEvictionHeld"]).await?;
    eventually("the record no longer says that its work was lost", || async {
        let record = record(&world, "lost").await?.context("it is gone")?;
        anyhow::Ok(!record.annotations().contains_key(annotations::EVICTION_HELD))
    })
    .await?;

    world.stop().await;
    hub.restore(&backup).await?;
    restart(&mut world, 5).await?;
    is_held(&world, "True", &["HubRestored", "1 of the 5", "lost"]).await?;
    are_untouched(&world, &["lost"]).await?;
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn works_that_are_all_deleted_at_once_are_deleted_without_a_confirmation() -> Result<()> {
    let world = WorkWorld::new().await?;
    let names: Vec<_> = (0..6).map(|n| format!("{}-{n}", world.cluster)).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    create_all(&world, &names).await?;
    world.works().delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
    are_gone(&world, &names).await?;
    for name in names {
        world.is_gone(name).await?;
    }
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn works_that_disappeared_while_the_agent_was_stopped_are_held_if_they_are_many() -> Result<()> {
    let mut world = WorkWorld::with(|settings| Settings { eviction_grace: Duration::ZERO, ..settings }).await?;
    let names: Vec<_> = (0..4).map(|n| format!("{}-{n}", world.cluster)).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    create_all(&world, &names).await?;
    world.stop().await;
    for name in &names[1..] {
        world.delete(name).await?;
        let none = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        world.works().patch(name, &PatchParams::default(), &none).await?;
    }
    restart(&mut world, 4).await?;
    are_untouched(&world, &names).await?;
    // They are deleted if somebody asks for it on the managed cluster.
    world.records().delete(&world.record_name(names[1]), &DeleteParams::default()).await?;
    are_gone(&world, &names[1..2]).await?;
    are_untouched(&world, &names[2..]).await?;
    world.stop().await;
    Ok(())
}
