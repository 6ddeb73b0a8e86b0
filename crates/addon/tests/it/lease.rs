//! The lease by which an agent reports its health.

use anyhow::Result;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use ocm_addon::LeaseUpdater;
use ocm_runtime::Context;
use ocm_testing::{eventually, unique};

use crate::support::world;

async fn lease(api: &Api<Lease>, name: &str) -> Result<Lease> {
    eventually("the lease is there", || async { api.get_opt(name).await }).await
}

#[tokio::test]
async fn a_lease_of_the_add_ons_name_is_renewed_in_the_agents_namespace() -> Result<()> {
    let (world, name) = (world().await?, unique("lease"));
    let (context, api) = (Context::new(), Api::<Lease>::namespaced(world.client.clone(), "default"));
    let updater = LeaseUpdater::new(world.client.clone(), &name, "default");
    updater.clone().spawn(&context);
    let first = lease(&api, &name).await?.spec.unwrap_or_default();
    assert_eq!(first.lease_duration_seconds, Some(60));
    context.stop().await;
    // Another process of the agent renews it at once.
    let context = Context::new();
    updater.spawn(&context);
    eventually("the lease is renewed", || async {
        Ok::<_, kube::Error>(api.get(&name).await?.spec.unwrap_or_default().renew_time > first.renew_time)
    })
    .await?;
    context.stop().await;
    Ok(())
}

#[tokio::test]
async fn an_agent_that_is_not_healthy_renews_nothing() -> Result<()> {
    let (world, unhealthy, healthy) = (world().await?, unique("unhealthy"), unique("healthy"));
    let (context, api) = (Context::new(), Api::<Lease>::namespaced(world.client.clone(), "default"));
    let (asked, was_asked) = tokio::sync::mpsc::unbounded_channel();
    let updater = LeaseUpdater::new(world.client.clone(), &unhealthy, "default").health_check(|| async { true });
    let is_unhealthy = move || {
        _ = asked.send(());
        async { false }
    };
    updater.health_check(is_unhealthy).spawn(&context);
    let mut was_asked = was_asked;
    was_asked.recv().await;
    LeaseUpdater::new(world.client.clone(), &healthy, "default").spawn(&context);
    lease(&api, &healthy).await?;
    context.stop().await;
    assert!(api.get_opt(&unhealthy).await?.is_none());
    Ok(())
}

#[tokio::test]
async fn without_the_namespace_on_the_managed_cluster_the_lease_is_on_the_hub() -> Result<()> {
    let world = world().await?;
    let cluster = world.cluster("leased", None).await?;
    let context = Context::new();
    let updater = LeaseUpdater::new(world.client.clone(), "hello", "no-such-namespace");
    updater.hub_fallback(world.client.clone(), &cluster).spawn(&context);
    lease(&Api::namespaced(world.client.clone(), &cluster), "hello").await?;
    context.stop().await;
    Ok(())
}
