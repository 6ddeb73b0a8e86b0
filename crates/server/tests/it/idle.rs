//! Nothing happens, and nothing is written but leases.

use std::time::Duration;

use anyhow::Result;
use ocm_hub::HubConfig;
use ocm_runtime::leader::Settings;
use ocm_testing::{AuditLog, Write, eventually_within};
use serde_json::json;

use crate::world::{Agent, World, config_map};

/// Longer than any lease waits for its renewal: 60 s and a quarter.
const RENEWAL: Duration = Duration::from_secs(120);

/// An agent with a work that is done, on a control plane of its own.
async fn settled(world: &World) -> Result<Agent> {
    let agent = world.join().await?;
    world.create_work(&agent.cluster, "work", json!([config_map("idle", json!({"a": "1"}))])).await?;
    world.work_is_available(&agent.cluster, "work").await?;
    Ok(agent)
}

/// Waits until the leases of all these clusters have been renewed after a position in the log.
async fn renewed(hub: &AuditLog, agents: &[&Agent], since: u64) -> Result<u64> {
    eventually_within(RENEWAL, "the lease of every cluster is renewed", || async {
        let (now, writes) = (hub.position()?, hub.since(since)?);
        let is_renewed = |agent: &&Agent| writes.iter().any(|write| write.namespace == agent.cluster);
        anyhow::Ok(agents.iter().all(is_renewed).then_some(now))
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn for_three_minutes_hub_and_agents_write_nothing_but_leases() -> Result<()> {
    let config = HubConfig { election: Some(Settings::default()), ..HubConfig::default() };
    let (first, context) = World::alone_with(config).await?;
    let second = first.with_another_managed_cluster().await?;
    let (mut one, mut two) = (settled(&first).await?, settled(&second).await?);
    let planes = [first.hub_plane, first.managed_plane, second.managed_plane];
    let logs = planes.into_iter().map(AuditLog::of).collect::<Result<Vec<_>>>()?;
    // The first renewal is the end of what joining and working leave to do.
    let settled = renewed(&logs[0], &[&one, &two], logs[0].position()?).await?;
    let starts = logs.iter().map(AuditLog::position).collect::<Result<Vec<_>>>()?;
    let mut since = settled;
    for _ in 0..3 {
        since = renewed(&logs[0], &[&one, &two], since).await?;
    }
    for (log, start) in logs.iter().zip(starts) {
        let others: Vec<Write> = log.since(start)?.into_iter().filter(|write| !write.is_lease_update()).collect();
        assert!(others.is_empty(), "{others:#?}");
    }
    one.stop().await?;
    two.stop().await?;
    context.stop().await;
    Ok(())
}
