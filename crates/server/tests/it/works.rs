//! ManifestWorks, from creation to deletion.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams},
};
use ocm_api::work::v1::AppliedManifestWork;
use ocm_testing::{eventually, unique};
use serde_json::json;

use crate::world::{Agent, World, config_map, world};

fn config_maps(world: &World) -> Api<ConfigMap> {
    Api::namespaced(world.managed.clone(), "default")
}

async fn joined() -> anyhow::Result<(World, Agent)> {
    let world = world().await?;
    let agent = world.join().await?;
    Ok((world, agent))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_work_is_created_updated_and_deleted_on_the_managed_cluster() -> anyhow::Result<()> {
    let (world, mut agent) = joined().await?;
    let (cluster, work, kept, dropped) = (&agent.cluster, unique("work"), unique("kept"), unique("dropped"));
    let both = json!([config_map(&kept, json!({"a": "1"})), config_map(&dropped, json!({}))]);
    world.create_work(cluster, &work, both).await?;
    world.work_is_available(cluster, &work).await?;
    let created = config_maps(&world).get(&kept).await?;
    assert_eq!(created.owner_references()[0].kind, "AppliedManifestWork");
    let record = created.owner_references()[0].name.clone();

    let update = json!({"spec": {"workload": {"manifests": [config_map(&kept, json!({"a": "2"}))]}}});
    world.works(cluster).patch(&work, &PatchParams::default(), &Patch::Merge(update)).await?;
    let updated = world.work_is_available(cluster, &work).await?;
    assert_eq!(updated.status.unwrap_or_default().resource_status.manifests.len(), 1);
    assert_eq!(config_maps(&world).get(&kept).await?.data.unwrap_or_default()["a"], "2");
    assert!(config_maps(&world).get_opt(&dropped).await?.is_none(), "what is no longer in the work goes");

    world.works(cluster).delete(&work, &DeleteParams::default()).await?;
    world.work_is_gone(cluster, &work).await?;
    assert!(config_maps(&world).get_opt(&kept).await?.is_none());
    assert!(Api::<AppliedManifestWork>::all(world.managed.clone()).get_opt(&record).await?.is_none());
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_work_that_orphans_leaves_its_objects_behind() -> anyhow::Result<()> {
    let (world, mut agent) = joined().await?;
    let (cluster, work, name) = (&agent.cluster, unique("work"), unique("orphan"));
    world.create_work(cluster, &work, json!([config_map(&name, json!({}))])).await?;
    world.work_is_available(cluster, &work).await?;
    // Edited right before the deletion: the agent must read the latest spec.
    let orphan = json!({"spec": {"deleteOption": {"propagationPolicy": "Orphan"}}});
    world.works(cluster).patch(&work, &PatchParams::default(), &Patch::Merge(orphan)).await?;
    world.works(cluster).delete(&work, &DeleteParams::default()).await?;
    world.work_is_gone(cluster, &work).await?;
    let left = config_maps(&world).get(&name).await?;
    assert!(left.owner_references().is_empty() && left.metadata.deletion_timestamp.is_none());
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_of_two_works_is_deleted_with_the_last_of_them() -> anyhow::Result<()> {
    let (world, mut agent) = joined().await?;
    let (cluster, one, two, name) = (&agent.cluster, unique("one"), unique("two"), unique("shared"));
    for work in [&one, &two] {
        world.create_work(cluster, work, json!([config_map(&name, json!({"a": "1"}))])).await?;
        world.work_is_available(cluster, work).await?;
    }
    assert_eq!(config_maps(&world).get(&name).await?.owner_references().len(), 2);
    world.works(cluster).delete(&one, &DeleteParams::default()).await?;
    world.work_is_gone(cluster, &one).await?;
    assert_eq!(config_maps(&world).get(&name).await?.owner_references().len(), 1);
    world.works(cluster).delete(&two, &DeleteParams::default()).await?;
    world.work_is_gone(cluster, &two).await?;
    assert!(config_maps(&world).get_opt(&name).await?.is_none());
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_work_is_not_gone_before_its_objects_are() -> anyhow::Result<()> {
    let (world, mut agent) = joined().await?;
    let (cluster, work, name) = (&agent.cluster, unique("work"), unique("held"));
    let mut held = config_map(&name, json!({}));
    held["metadata"]["finalizers"] = json!(["example.com/held"]);
    world.create_work(cluster, &work, json!([held])).await?;
    world.work_is_available(cluster, &work).await?;
    world.works(cluster).delete(&work, &DeleteParams::default()).await?;
    world.work_is(cluster, &work, "Deleting", "True").await?;
    eventually("the object is being deleted", || async {
        anyhow::Ok(config_maps(&world).get(&name).await?.metadata.deletion_timestamp.is_some())
    })
    .await?;
    assert!(world.works(cluster).get_opt(&work).await?.is_some());
    let release = json!({"metadata": {"finalizers": null}});
    config_maps(&world).patch(&name, &PatchParams::default(), &Patch::Merge(release)).await?;
    world.work_is_gone(cluster, &work).await?;
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_and_objects_in_it_can_be_one_work() -> anyhow::Result<()> {
    let (world, mut agent) = joined().await?;
    let (cluster, work, namespace) = (&agent.cluster, unique("work"), unique("namespace"));
    let mut inside = config_map("inside", json!({}));
    inside["metadata"]["namespace"] = json!(namespace);
    let outside = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    world.create_work(cluster, &work, json!([inside, outside])).await?;
    let applied = world.work_is_available(cluster, &work).await?;
    let manifests = applied.status.unwrap_or_default().resource_status.manifests;
    let kinds: Vec<_> = manifests.iter().map(|entry| entry.resource_meta.kind.as_str()).collect();
    assert_eq!(kinds, ["ConfigMap", "Namespace"], "the report keeps the order of the spec");
    assert!(Api::<Namespace>::all(world.managed.clone()).get_opt(&namespace).await?.is_some());
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_somebody_deletes_is_created_again() -> anyhow::Result<()> {
    let (world, mut agent) = joined().await?;
    let (cluster, work, name) = (&agent.cluster, unique("work"), unique("noticed"));
    world.create_work(cluster, &work, json!([config_map(&name, json!({}))])).await?;
    world.work_is_available(cluster, &work).await?;
    let deleted = config_maps(&world).get(&name).await?.uid();
    config_maps(&world).delete(&name, &DeleteParams::default()).await?;
    eventually("the object exists again", async || {
        let found = config_maps(&world).get_opt(&name).await?;
        anyhow::Ok(found.filter(|found| found.uid() != deleted))
    })
    .await?;
    agent.stop().await
}
