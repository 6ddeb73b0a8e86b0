//! An agent that is stopped mid-way and started again.

use futures::future::try_join_all;
use kube::api::DeleteParams;
use ocm_api::conditions;
use ocm_testing::{eventually, unique};
use serde_json::json;

use crate::world::{config_map, world};

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_stopped_while_it_joins_finishes_when_it_is_started_again() -> anyhow::Result<()> {
    let world = world().await?;
    let mut agent = world.start_agent(&unique("interrupted")).await?;
    eventually("the agent has asked for a certificate", || async {
        anyhow::Ok(!world.requests(&agent.cluster).await?.is_empty())
    })
    .await?;
    agent.stop().await?;
    world.accept(&agent.cluster).await?;
    world.approve_all(&agent.cluster).await?;
    agent.start().await?;
    world.admit(&agent.cluster).await?;
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_started_again_uses_the_certificate_it_has() -> anyhow::Result<()> {
    let world = world().await?;
    let mut agent = world.join().await?;
    let before = world.requests(&agent.cluster).await?.len();
    agent.stop().await?;
    // The files may be lost: the secret has the same content.
    std::fs::remove_dir_all(agent.hub_dir())?;
    agent.start().await?;
    let (cluster, work) = (&agent.cluster, unique("work"));
    world.create_work(cluster, &work, json!([config_map(&unique("again"), json!({}))])).await?;
    world.work_is_available(cluster, &work).await?;
    assert_eq!(world.requests(cluster).await?.len(), before);
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn works_in_progress_are_finished_after_a_restart() -> anyhow::Result<()> {
    let world = world().await?;
    let mut agent = world.join().await?;
    let cluster = agent.cluster.clone();
    let works: Vec<_> = (0..30).map(|_| unique("work")).collect();
    let create = |work: &String| {
        let (world, cluster, work) = (&world, &cluster, work.clone());
        async move { world.create_work(cluster, &work, json!([config_map(&work, json!({}))])).await }
    };
    try_join_all(works.iter().map(create)).await?;
    world.work_is(&cluster, &works[0], conditions::work::APPLIED, "True").await?;
    agent.stop().await?;
    let deleted = &works[29];
    world.works(&cluster).delete(deleted, &DeleteParams::default()).await?;
    agent.start().await?;
    for work in &works[..29] {
        world.work_is_available(&cluster, work).await?;
    }
    world.work_is_gone(&cluster, deleted).await?;
    agent.stop().await
}
