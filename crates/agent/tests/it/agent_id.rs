//! By which id an agent finds what it applied.

use std::time::Duration;

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, ResourceExt as _,
    api::{Patch, PatchParams, PostParams},
};
use ocm_agent::{AgentConfig, Components, work::hub_hash};
use ocm_api::{
    finalizers,
    work::v1::{AppliedManifestWork, ManifestWork},
};
use ocm_runtime::Clock;
use ocm_testing::eventually;
use serde_json::json;

use crate::registration_world::World;

/// An agent whose id is not configured.
fn config(world: &World) -> AgentConfig {
    let components = Components { registration: true, work: true };
    AgentConfig { agent_id: String::new(), components, ..world.config() }
}

/// Like [`config`], and records without a work are evicted at once.
fn impatient(world: &World) -> AgentConfig {
    let mut config = config(world);
    config.work.eviction_grace = Duration::from_millis(1);
    config
}

/// Creates a work with one ConfigMap.
pub(crate) async fn create_work(world: &World) -> Result<ManifestWork> {
    let manifest =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "namespace": "default"}});
    let work = json!({"metadata": {"name": "work"}, "spec": {"workload": {"manifests": [manifest]}}});
    Ok(world.works().create(&PostParams::default(), &serde_json::from_value(work)?).await?)
}

/// Waits for the record of the work, for the hub at this address.
pub(crate) async fn recorded(world: &World, server: &str) -> Result<AppliedManifestWork> {
    let name = format!("{}-work", hub_hash(server));
    eventually(&format!("the objects are in record {name}"), || async {
        let record = world.records().get_opt(&name).await?;
        let is_whole = |record: &AppliedManifestWork| {
            record.status.as_ref().is_some_and(|status| !status.applied_resources.is_empty())
        };
        anyhow::Ok(record.filter(is_whole))
    })
    .await
}

async fn is_gone(world: &World, record: &str) -> Result<()> {
    eventually(&format!("record {record} is gone"), || async {
        anyhow::Ok(world.records().get_opt(record).await?.is_none())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_hubs_address_changes_the_records_under_the_old_one_are_given_up_and_their_objects_stay() -> Result<()>
{
    let world = World::for_works().await?;
    let agent = world.join(config(&world), Clock::System).await?;
    create_work(&world).await?;
    let old = recorded(&world, &world.hub.url()).await?;
    let name = world.secret().await?.context("no secret")?["agent-name"].clone();
    assert_eq!(old.spec.agent_id, name, "the name that the secret keeps");
    agent.stop().await?;

    let moved = world.hub.url().replace("127.0.0.1", "localhost");
    let mut bootstrap = world.bootstrap().await?;
    bootstrap.clusters[0].cluster.as_mut().context("no cluster")?.server = Some(moved.clone());
    ocm_testing::write_kubeconfig(&bootstrap, world.bootstrap_path())?;
    let agent = world.start_with(config(&world), Clock::System).await?;
    for request in world.request_count(2).await? {
        world.approve(&request).await?;
    }
    let new = recorded(&world, &moved).await?;
    assert_eq!(new.spec.agent_id, name);
    agent.stop().await?;

    let agent = world.start_with(impatient(&world), Clock::System).await?;
    is_gone(&world, &old.name_any()).await?;
    let object = Api::<ConfigMap>::namespaced(world.managed_client.clone(), "default").get("web").await?;
    let owners: Vec<_> = object.owner_references().iter().map(|owner| owner.name.clone()).collect();
    assert_eq!(owners, [new.name_any()]);
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn records_under_the_hubs_hash_are_adopted_and_those_of_other_agents_are_left_alone() -> Result<()> {
    let world = World::for_works().await?;
    let hash = hub_hash(&world.hub.url());
    let (left, stranger) = (format!("{hash}-left"), format!("{hash}-stranger"));
    let object = json!({"metadata": {"name": "left"}});
    let objects = Api::<ConfigMap>::namespaced(world.managed_client.clone(), "default");
    let object = objects.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
    record(&world, &left, &hash, &object).await?;
    record(&world, &stranger, "another", &object).await?;
    record(&world, &format!("{hash}-work"), &hash, &object).await?;

    let agent =
        world.join(AgentConfig { components: config(&world).components, ..world.config() }, Clock::System).await?;
    agent.stop().await?;
    assert_eq!(world.records().get(&left).await?.spec.agent_id, hash, "an agent whose id is configured adopts nothing");

    create_work(&world).await?;
    let agent = world.start_with(impatient(&world), Clock::System).await?;
    is_gone(&world, &left).await?;
    assert!(objects.get_opt("left").await?.is_some_and(|object| object.metadata.deletion_timestamp.is_none()));
    eventually("the record of the work carries the agent's name", || async {
        anyhow::Ok(recorded(&world, &world.hub.url()).await?.spec.agent_id == "9hdnf")
    })
    .await?;
    let stranger = world.records().get(&stranger).await?;
    assert_eq!((stranger.spec.agent_id.as_str(), stranger.metadata.deletion_timestamp), ("another", None));
    agent.stop().await
}

/// What an earlier agent recorded: one object that has other owners by now.
async fn record(world: &World, name: &str, agent_id: &str, object: &ConfigMap) -> Result<()> {
    let (hub_hash, work) = name.split_once('-').context("no work in the name")?;
    let spec = json!({"hubHash": hub_hash, "agentID": agent_id, "manifestWorkName": work});
    let finalizers = [finalizers::APPLIED_MANIFEST_WORK];
    let record: AppliedManifestWork =
        serde_json::from_value(json!({"metadata": {"name": name, "finalizers": finalizers}, "spec": spec}))?;
    world.records().create(&PostParams::default(), &record).await?;
    let applied = json!({"version": "v1", "resource": "configmaps", "name": object.name_any(), "namespace": "default",
        "uid": "another-object"});
    let status = Patch::Merge(json!({"status": {"appliedResources": [applied]}}));
    world.records().patch_status(name, &PatchParams::default(), &status).await.map(|_| ()).map_err(Into::into)
}
