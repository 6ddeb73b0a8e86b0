//! Leases and clocks of clusters.

use anyhow::Result;
use jiff::SignedDuration;
use k8s_openapi::{
    api::{coordination::v1::Lease, events::v1::Event},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::{
    Api,
    api::{ListParams, Patch, PatchParams},
};
use ocm_testing::{eventually, unique};
use serde_json::json;

use crate::support::{World, now, world};

/// What an agent does, with a clock that is off by so much.
async fn renew(world: &World, cluster: &str, off: SignedDuration) -> Result<()> {
    let leases: Api<Lease> = Api::namespaced(world.client.clone(), cluster);
    let patch = Patch::Merge(json!({"spec": {"renewTime": MicroTime(now() + off)}}));
    leases.patch("managed-cluster-lease", &PatchParams::default(), &patch).await?;
    Ok(())
}

async fn wait_for_taints(world: &World, cluster: &str, expected: &[&str]) -> Result<()> {
    eventually(&format!("the taints are {expected:?}"), || async {
        let taints = world.clusters().get(cluster).await?.spec.taints;
        Ok::<_, kube::Error>(taints.iter().map(|taint| taint.key.as_str()).eq(expected.iter().copied()))
    })
    .await
}

#[tokio::test]
async fn a_cluster_whose_lease_expires_is_unknown_and_tainted_and_an_event_reports_it() -> Result<()> {
    let world = world().await?;
    let name = unique("unreachable");
    world.create(&name, true, 1).await?;
    world.wait_for_accepted(&name).await?;
    world.say_available(&name).await?;
    wait_for_taints(&world, &name, &[]).await?;
    let (reason, message) = world.wait_for_condition(&name, "ManagedClusterConditionAvailable", "Unknown").await?;
    assert_eq!(reason, "ManagedClusterLeaseUpdateStopped");
    assert!(message.contains("more than 5 s ago"), "{message}");
    wait_for_taints(&world, &name, &["cluster.open-cluster-management.io/unreachable"]).await?;
    let events: Api<Event> = Api::namespaced(world.client.clone(), &name);
    let event = eventually("there is an event", || async {
        Ok::<_, kube::Error>(events.list(&ListParams::default()).await?.items.pop())
    })
    .await?;
    assert_eq!(event.reason.as_deref(), Some("AvailableUnknown"));
    assert_eq!(event.action.as_deref(), Some("AvailableUnknown"));
    assert_eq!(event.type_.as_deref(), Some("Warning"));
    assert_eq!(event.reporting_controller.as_deref(), Some("registration-controller"));
    assert_eq!(event.reporting_instance.as_deref(), Some("registration-controller-test"));
    assert_eq!(event.regarding.and_then(|regarding| regarding.namespace), Some(name));
    Ok(())
}

#[tokio::test]
async fn a_renewal_shows_whether_the_agents_clock_is_right() -> Result<()> {
    let world = world().await?;
    let name = unique("clock");
    world.accepted(&name).await?;
    renew(&world, &name, SignedDuration::from_secs(10)).await?;
    let (reason, _) = world.wait_for_condition(&name, "ManagedClusterConditionClockSynced", "True").await?;
    assert_eq!(reason, "ManagedClusterClockSynced");
    renew(&world, &name, SignedDuration::from_hours(1)).await?;
    let (reason, message) = world.wait_for_condition(&name, "ManagedClusterConditionClockSynced", "False").await?;
    assert_eq!(reason, "ManagedClusterClockOutOfSync");
    assert!(message.contains("ahead of the hub's"), "{message}");
    renew(&world, &name, SignedDuration::ZERO).await?;
    world.wait_for_condition(&name, "ManagedClusterConditionClockSynced", "True").await?;
    Ok(())
}

#[tokio::test]
async fn a_lease_that_goes_is_made_again() -> Result<()> {
    let world = world().await?;
    let name = unique("lease");
    world.accepted(&name).await?;
    world.plane.kubectl(&["delete", "lease", "managed-cluster-lease", "-n", &name]).await?;
    eventually("the lease is there again", || async { world.get("lease", &name, "managed-cluster-lease").await })
        .await?;
    Ok(())
}
