//! The condition Available of add-ons, by their leases.

use std::time::Duration;

use anyhow::Result;
use ocm_runtime::Clock;
use serde_json::json;

use crate::{
    registration_world::{World, clock, later},
    running::{Running, reconciles_again},
};

const UPDATED: &str = "ManagedClusterAddOnLeaseUpdated";
const STOPPED: &str = "ManagedClusterAddOnLeaseUpdateStopped";
const NOT_FOUND: &str = "ManagedClusterAddOnLeaseNotFound";

/// An agent with the add-on `hello`, which has no registration.
async fn with_addon(world: &World, clock: &Clock) -> Result<(Running, String)> {
    let agent = world.join(world.attentive(), clock.clone()).await?;
    let namespace = world.install_namespace("hello").await?;
    world.create_addon("hello", &namespace).await?;
    Ok((agent, namespace))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_addon_is_available_as_long_as_its_lease_is_renewed() -> Result<()> {
    let world = World::new().await?;
    let clock = clock();
    let (agent, namespace) = with_addon(&world, &clock).await?;
    let message = world.addon_condition("hello", "Available", "Unknown", NOT_FOUND).await?.message;
    assert!(message.contains(&format!("{namespace}/hello")), "{message}");
    World::renew(&world.managed_client, &namespace, "hello", clock.now()).await?;
    world.addon_condition("hello", "Available", "True", UPDATED).await?;
    later(&clock, Duration::from_secs(299));
    reconciles_again(&agent, "addon-health", 2).await?;
    world.addon_condition("hello", "Available", "True", UPDATED).await?;
    later(&clock, Duration::from_secs(1));
    world.addon_condition("hello", "Available", "False", STOPPED).await?;
    World::renew(&world.managed_client, &namespace, "hello", clock.now()).await?;
    world.addon_condition("hello", "Available", "True", UPDATED).await?;

    let status =
        |writes: Vec<String>| writes.into_iter().filter(|write| write.contains("managedclusteraddons")).count();
    reconciles_again(&agent, "addon-health", 10).await?;
    assert_eq!(status(world.hub_writes()?), 4, "one write for each change, and none without one");
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_has_said_is_put_right_at_the_next_look() -> Result<()> {
    let world = World::new().await?;
    let clock = clock();
    let (agent, namespace) = with_addon(&world, &clock).await?;
    World::renew(&world.managed_client, &namespace, "hello", clock.now()).await?;
    world.addon_condition("hello", "Available", "True", UPDATED).await?;
    // As the hub does when the cluster's lease has expired.
    let unknown = json!({
        "type": "Available", "status": "Unknown", "reason": "ManagedClusterLeaseUpdateStopped", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    world.manage("hello", json!({"conditions": [unknown]})).await?;
    world.addon_condition("hello", "Available", "True", UPDATED).await?;
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_on_the_hub_counts_where_the_cluster_has_none() -> Result<()> {
    let world = World::new().await?;
    let clock = clock();
    let (agent, namespace) = with_addon(&world, &clock).await?;
    World::renew(&world.hub_client, &world.cluster, "hello", clock.now()).await?;
    world.addon_condition("hello", "Available", "True", UPDATED).await?;
    let long_ago = clock.now() - Duration::from_secs(3600);
    World::renew(&world.managed_client, &namespace, "hello", long_ago).await?;
    world.addon_condition("hello", "Available", "False", STOPPED).await?;
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lease_is_looked_for_where_the_agent_is_installed() -> Result<()> {
    let world = World::new().await?;
    let clock = clock();
    let (agent, namespace) = with_addon(&world, &clock).await?;
    World::renew(&world.managed_client, &namespace, "hello", clock.now()).await?;
    world.addon_condition("hello", "Available", "True", UPDATED).await?;
    let elsewhere = world.install_namespace("elsewhere").await?;
    world.manage("hello", json!({"namespace": elsewhere})).await?;
    world.addon_condition("hello", "Available", "Unknown", NOT_FOUND).await?;

    world.host_addon("hello", "host1").await?;
    ocm_testing::eventually("the hosting cluster is named", || async {
        let conditions = world.addon_conditions("hello").await?;
        anyhow::Ok(conditions.iter().any(|condition| condition.message.contains("\"host1\"")))
    })
    .await?;
    // The agent of this test runs on the cluster that it manages.
    World::renew(&world.managed_client, &elsewhere, "hello", clock.now()).await?;
    world.addon_condition("hello", "Available", "True", UPDATED).await?;
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_addon_whose_manager_tells_its_health_is_left_alone() -> Result<()> {
    let world = World::new().await?;
    let clock = clock();
    let agent = world.join(world.attentive(), clock.clone()).await?;
    let namespace = world.install_namespace("hello").await?;
    world.create_addon("custom", &namespace).await?;
    world.manage("custom", json!({"healthCheck": {"mode": "Customized"}})).await?;
    world.create_addon("lease", &namespace).await?;
    let before = world.addon_conditions("custom").await?.len();
    world.addon_condition("lease", "Available", "Unknown", NOT_FOUND).await?;
    reconciles_again(&agent, "addon-health", 3).await?;
    assert_eq!(world.addon_conditions("custom").await?.len(), before);
    agent.stop().await
}
