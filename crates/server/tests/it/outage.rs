//! The hub's API server is down for a while, or comes back with older data.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{
    Api,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use ocm_api::{cluster::v1::ManagedCluster, conditions, labels};
use ocm_testing::{
    Part, Seen, eventually,
    fault::{Fault, FaultyServer, Injection},
    unique,
};
use serde_json::json;

use crate::world::{World, config_map};

#[tokio::test(flavor = "multi_thread")]
async fn everything_catches_up_when_the_hubs_api_was_down() -> anyhow::Result<()> {
    let (world, hub) = World::alone().await?;
    let mut agent = world.join().await?;
    let cluster = agent.cluster.clone();
    let (before, after) = (unique("before"), unique("after"));
    world.create_work(&cluster, &before, json!([config_map(&before, json!({}))])).await?;
    world.work_is_available(&cluster, &before).await?;

    world.hub_plane.stop(Part::ApiServer)?;
    let down = world.clusters().get(&cluster).await;
    assert!(down.is_err(), "{down:?}");
    world.hub_plane.start_part(Part::ApiServer)?;
    world.hub_plane.wait_ready().await?;

    world.works(&cluster).delete(&before, &DeleteParams::default()).await?;
    world.create_work(&cluster, &after, json!([config_map(&after, json!({}))])).await?;
    world.work_is_gone(&cluster, &before).await?;
    world.work_is_available(&cluster, &after).await?;

    let newcomer = ManagedCluster::new("newcomer", serde_json::from_value(json!({"hubAcceptsClient": true}))?);
    world.clusters().create(&PostParams::default(), &newcomer).await?;
    eventually("the hub accepts a cluster again", || {
        world.cluster_condition("newcomer", conditions::cluster::HUB_ACCEPTED)
    })
    .await?;
    agent.stop().await?;
    hub.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_is_restarted_while_the_hubs_api_is_down_repairs_from_its_copies() -> anyhow::Result<()> {
    let (world, hub) = World::alone().await?;
    let mut agent = world.join().await?;
    agent.stop().await?;
    agent.configure = |config| {
        config.work.offline.keeps_copies = true;
        config.work.offline.patience = Duration::ZERO;
    };
    agent.start().await?;
    let (cluster, work) = (agent.cluster.clone(), unique("work"));
    world.create_work(&cluster, &work, json!([config_map(&work, json!({"a": "1"}))])).await?;
    world.work_is_available(&cluster, &work).await?;
    let copies: Api<Secret> = Api::namespaced(world.managed.clone(), &agent.namespace);
    let labelled = ListParams::default().labels(labels::OFFLINE_COPY);
    eventually("there is a copy", || async { anyhow::Ok(!copies.list(&labelled).await?.items.is_empty()) }).await?;

    agent.stop().await?;
    world.hub_plane.stop(Part::ApiServer)?;
    let config_maps: Api<ConfigMap> = Api::namespaced(world.managed.clone(), "default");
    config_maps.delete(&work, &DeleteParams::default()).await?;
    agent.start().await?;
    let names = [work.clone()];
    eventually("the object is back", || async {
        anyhow::Ok(world.config_map_values(&names).await? == [Some("1".to_owned())])
    })
    .await?;

    world.hub_plane.start_part(Part::ApiServer)?;
    world.hub_plane.wait_ready().await?;
    world.works(&cluster).delete(&work, &DeleteParams::default()).await?;
    world.work_is_gone(&cluster, &work).await?;
    eventually("the copy is gone", || async { anyhow::Ok(copies.list(&labelled).await?.items.is_empty()) }).await?;
    agent.stop().await?;
    hub.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_catches_up_when_the_hubs_data_was_restored_from_a_backup() -> anyhow::Result<()> {
    let (world, hub) = World::alone().await?;
    let mut agent = world.join().await?;
    let cluster = agent.cluster.clone();
    let (kept, edited, lost) = (unique("kept"), unique("edited"), unique("lost"));
    for work in [&kept, &edited] {
        world.create_work(&cluster, work, json!([config_map(work, json!({"a": "1"}))])).await?;
        world.work_is_available(&cluster, work).await?;
    }
    let backup = world.hub_plane.back_up().await?;
    happens_after_the_backup(&world, &cluster, &edited, &lost).await?;
    world.hub_plane.restore(&backup).await?;

    let names = [kept, edited, lost];
    eventually("the managed cluster is as the backup has it, and nothing was deleted", || async {
        let values = world.config_map_values(&names).await?;
        let expected = [Some("1".to_owned()), Some("1".to_owned()), Some("1".to_owned())];
        anyhow::Ok(if values == expected { Seen::Settled(()) } else { Seen::NotYet(format!("{values:?}")) })
    })
    .await?;
    let after = unique("after");
    world.create_work(&cluster, &after, json!([config_map(&after, json!({}))])).await?;
    world.work_is_available(&cluster, &after).await?;
    world.create_cluster("newcomer").await?;
    world.is_accepted_with_rights("newcomer").await?;
    agent.stop().await?;
    hub.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_restore_took_back_is_noticed_when_the_hub_has_moved_on_before_the_agent_is_back() -> anyhow::Result<()>
{
    let (world, hub) = World::alone().await?;
    let troubled = FaultyServer::start(world.hub_plane).await?;
    let mut agent = world.start_agent_through(&unique("c"), |hub| troubled.reached_through(hub), |own| own).await?;
    world.admit(&agent.cluster).await?;
    let cluster = agent.cluster.clone();
    let (edited, lost) = (unique("edited"), unique("lost"));
    world.create_work(&cluster, &edited, json!([config_map(&edited, json!({"a": "1"}))])).await?;
    world.work_is_available(&cluster, &edited).await?;
    let backup = world.hub_plane.back_up().await?;
    happens_after_the_backup(&world, &cluster, &edited, &lost).await?;
    let newest = newest_version(&world).await?;

    troubled.inject(Fault::new(Injection::answer(503, "ServiceUnavailable")).times(usize::MAX));
    troubled.cut_all();
    world.hub_plane.restore(&backup).await?;
    eventually("the hub has moved past everything that the agent has seen", || async {
        let version = newest_version(&world).await?;
        anyhow::Ok(if version > newest + 100 { Seen::Settled(()) } else { Seen::NotYet(version.to_string()) })
    })
    .await?;
    troubled.heal();
    troubled.release();

    let names = [edited, lost];
    eventually("the managed cluster is as the backup has it", || async {
        let values = world.config_map_values(&names).await?;
        let expected = [Some("1".to_owned()), Some("1".to_owned())];
        anyhow::Ok(if values == expected { Seen::Settled(()) } else { Seen::NotYet(format!("{values:?}")) })
    })
    .await?;
    agent.stop().await?;
    hub.stop().await;
    Ok(())
}

/// Writes an object to the hub, and returns its resource version.
async fn newest_version(world: &World) -> anyhow::Result<u64> {
    let api: Api<ConfigMap> = Api::namespaced(world.hub.clone(), "default");
    let object = serde_json::from_value(config_map(&unique("moves-on"), json!({})))?;
    let written = api.create(&PostParams::default(), &object).await?;
    Ok(written.metadata.resource_version.unwrap_or_default().parse()?)
}

/// The changes that the restore of a backup reverts: one work is edited, another created.
async fn happens_after_the_backup(world: &World, cluster: &str, edited: &str, lost: &str) -> anyhow::Result<()> {
    let update = json!({"spec": {"workload": {"manifests": [config_map(edited, json!({"a": "2"}))]}}});
    eventually("the work can be edited", || async {
        world.works(cluster).patch(edited, &PatchParams::default(), &Patch::Merge(&update)).await.map(|_| true)
    })
    .await?;
    world.work_is_available(cluster, edited).await?;
    world.create_work(cluster, lost, json!([config_map(lost, json!({"a": "1"}))])).await?;
    world.work_is_available(cluster, lost).await?;
    Ok(())
}
