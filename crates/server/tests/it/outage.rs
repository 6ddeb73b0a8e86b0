//! The hub's API is down for a while.

use kube::api::DeleteParams;
use ocm_api::{cluster::v1::ManagedCluster, conditions};
use ocm_testing::{Part, eventually, unique};
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
