//! While nothing changes, nothing is written except leases.

use std::time::Duration;

use anyhow::Result;
use kube::api::{Patch, PatchParams};
use ocm_hub::HubConfig;
use ocm_runtime::leader::Settings;
use ocm_testing::{AuditLog, Write, eventually_within};
use serde_json::{Value, json};

use crate::world::{Agent, World, config_map};

/// Longer than ten passes of every controller and two renewals of a lease.
const LIMIT: Duration = Duration::from_secs(120);
/// How often the leases are renewed in this test.
const LEASE_SECONDS: u32 = 5;
/// The controllers of an agent that run periodically.
const PERIODIC: [&str; 3] = ["manifestwork", "manifestwork-availability", "cluster-status"];

/// Manifests of kinds for which an API server fills in defaults, so that what is stored never equals what was sent.
fn manifests() -> Value {
    let labels = json!({"app": "idle"});
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "idle", "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "idle", "image": "idle"}]}},
        },
    });
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "idle", "namespace": "default"},
        "spec": {"selector": labels, "ports": [{"port": 80}]},
    });
    json!([deployment, service, config_map("idle", json!({"a": "1"}))])
}

/// An agent on a control plane of its own whose works are applied, and whose periodic passes run every second instead of every
/// few minutes.
async fn settled(world: &World) -> Result<Agent> {
    let mut agent = world.join().await?;
    let duration = Patch::Merge(json!({"spec": {"leaseDurationSeconds": LEASE_SECONDS}}));
    world.clusters().patch(&agent.cluster, &PatchParams::default(), &duration).await?;
    agent.stop().await?;
    agent.configure = |config| {
        let second = Duration::from_secs(1);
        config.work.reapply = second..second * 2;
        config.work.status_sync = second;
        config.cluster_healthcheck_period = second;
    };
    agent.start().await?;
    world.create_work(&agent.cluster, "work", manifests()).await?;
    world.work_is_available(&agent.cluster, "work").await?;
    Ok(agent)
}

/// Waits until every periodic controller has made so many more passes.
async fn passed(agent: &Agent, times: u64) -> Result<()> {
    for controller in PERIODIC {
        let enough = agent.passes(controller) + times;
        let what = format!("{controller} has made {times} passes");
        eventually_within(LIMIT, &what, || async { agent.passes(controller) >= enough }).await?;
    }
    Ok(())
}

/// Waits until the leases of all these clusters have been renewed after a position in the log.
async fn renewed(hub: &AuditLog, agents: &[&Agent], since: u64) -> Result<u64> {
    eventually_within(LIMIT, "the lease of every cluster is renewed", || async {
        let (now, writes) = (hub.position()?, hub.since(since)?);
        let is_renewed = |agent: &&Agent| writes.iter().any(|write| write.namespace == agent.cluster);
        anyhow::Ok(agents.iter().all(is_renewed).then_some(now))
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn while_works_are_applied_again_hub_and_agents_write_nothing_but_leases() -> Result<()> {
    let config = HubConfig { election: Some(Settings::default()), ..HubConfig::default() };
    let (first, context) = World::alone_with(config).await?;
    let second = first.with_another_managed_cluster().await?;
    let (mut one, mut two) = tokio::try_join!(settled(&first), settled(&second))?;
    let planes = [first.hub_plane, first.managed_plane, second.managed_plane];
    let logs = planes.into_iter().map(AuditLog::of).collect::<Result<Vec<_>>>()?;
    // With the first renewal and the first passes, joining and applying are complete.
    renewed(&logs[0], &[&one, &two], logs[0].position()?).await?;
    tokio::try_join!(passed(&one, 2), passed(&two, 2))?;
    let starts = logs.iter().map(AuditLog::position).collect::<Result<Vec<_>>>()?;
    tokio::try_join!(passed(&one, 10), passed(&two, 10))?;
    let again = renewed(&logs[0], &[&one, &two], starts[0]).await?;
    renewed(&logs[0], &[&one, &two], again).await?;
    for (log, start) in logs.iter().zip(starts) {
        let others: Vec<Write> = log.since(start)?.into_iter().filter(|write| !write.is_lease_update()).collect();
        assert!(others.is_empty(), "{others:#?}");
    }
    one.stop().await?;
    two.stop().await?;
    context.stop().await;
    Ok(())
}
