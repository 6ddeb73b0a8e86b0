//! The hub's API is down for a while, or comes back with older data.

use std::{path::Path, process::Command};

use kube::api::{DeleteParams, Patch, PatchParams};
use ocm_api::{cluster::v1::ManagedCluster, conditions};
use ocm_testing::{Part, Seen, eventually, unique};
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
    world.clusters().create(&kube::api::PostParams::default(), &newcomer).await?;
    eventually("the hub accepts a cluster again", || {
        world.cluster_condition("newcomer", conditions::cluster::HUB_ACCEPTED)
    })
    .await?;
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
    let data = world.hub_plane.dir().join("etcd");
    let backup = world.hub_plane.dir().join("backup");
    restarted_with(&world, || copy(&data, &backup)).await?;

    // What happens after the backup was made, and is forgotten when it is restored.
    let update = json!({"spec": {"workload": {"manifests": [config_map(&edited, json!({"a": "2"}))]}}});
    eventually("the work can be edited", || async {
        world.works(&cluster).patch(&edited, &PatchParams::default(), &Patch::Merge(&update)).await.map(|_| true)
    })
    .await?;
    world.work_is_available(&cluster, &edited).await?;
    world.create_work(&cluster, &lost, json!([config_map(&lost, json!({"a": "1"}))])).await?;
    world.work_is_available(&cluster, &lost).await?;
    restarted_with(&world, || {
        std::fs::remove_dir_all(&data)?;
        copy(&backup, &data)
    })
    .await?;

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

/// Stops the hub's API server and its data base, does something to the data, and starts them again.
async fn restarted_with(world: &World, act: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
    world.hub_plane.stop(Part::ApiServer)?;
    world.hub_plane.stop(Part::Etcd)?;
    act()?;
    world.hub_plane.start_part(Part::Etcd)?;
    world.hub_plane.start_part(Part::ApiServer)?;
    world.hub_plane.wait_ready().await
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    let copied = Command::new("cp").arg("--recursive").arg(from).arg(to).status()?;
    anyhow::ensure!(copied.success(), "failed to copy {} to {}", from.display(), to.display());
    Ok(())
}
