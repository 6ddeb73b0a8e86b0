//! An agent that is killed while it reconciles an add-on.

use kube::api::DeleteParams;
use ocm_testing::unique;
use serde_json::json;

use super::agent::MortalAgent;
use crate::world::{World, world};

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_killed_at_any_write_while_an_addon_starts_gives_it_its_identity() -> anyhow::Result<()> {
    let world = world().await?;
    let agent = MortalAgent::new(&world).await?;
    agent.mortal.live(usize::MAX / 2, world.admit(&agent.cluster)).await?;
    for nth in 1.. {
        let came_to_it = agent.mortal.live(nth, async { new_addon(&world, &agent.cluster).await.map(|_| ()) }).await?;
        if !came_to_it {
            assert!(nth > 4, "the beginning of an add-on takes more than {nth} writes");
            return Ok(());
        }
    }
    Ok(())
}

/// An agent does not notice what happens to an add-on while it is down: so it is killed only after it has started the add-on's
/// controllers.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_killed_at_any_write_while_an_addon_moves_or_is_deleted_leaves_no_secret_behind() -> anyhow::Result<()>
{
    let world = world().await?;
    let agent = MortalAgent::new(&world).await?;
    let cluster = &agent.cluster;
    agent.mortal.live(usize::MAX / 2, world.admit(cluster)).await?;
    for nth in 1.. {
        let moves = |(name, first)| move_addon(&world, cluster, name, first);
        if !agent.mortal.live_after(new_addon(&world, cluster), nth, moves).await? {
            assert!(nth > 3, "an add-on's move takes more than {nth} writes");
            break;
        }
    }
    for nth in 1.. {
        let goes = |(name, namespace)| remove_addon(&world, cluster, name, namespace);
        if !agent.mortal.live_after(new_addon(&world, cluster), nth, goes).await? {
            assert!(nth > 1, "an add-on's end takes more than {nth} writes");
            break;
        }
    }
    Ok(())
}

/// Name and namespace of an add-on that has its identity.
async fn new_addon(world: &World, cluster: &str) -> anyhow::Result<(String, String)> {
    let name = unique("addon");
    let namespace = world.create_addon(cluster, &name).await?;
    world.addon_is_served(cluster, &name, &namespace).await?;
    Ok((name, namespace))
}

async fn move_addon(world: &World, cluster: &str, name: String, first: String) -> anyhow::Result<()> {
    let second = world.addon_namespace().await?;
    world.manage_addon(cluster, &name, json!({"namespace": second})).await?;
    world.addon_is_served(cluster, &name, &second).await?;
    world.addon_secret_is_gone(&first, &name).await
}

async fn remove_addon(world: &World, cluster: &str, name: String, namespace: String) -> anyhow::Result<()> {
    world.addons(cluster).delete(&name, &DeleteParams::default()).await?;
    world.addon_secret_is_gone(&namespace, &name).await
}
