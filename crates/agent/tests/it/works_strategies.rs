//! Works whose objects are not always updated.

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    ResourceExt as _,
    api::{Patch, PatchParams, PostParams},
};
use ocm_testing::{Seen, eventually, unique};
use serde_json::{Value, json};

use crate::works_world::WorkWorld;

/// The spec of a work with one ConfigMap that has this data.
fn spec(world: &WorkWorld, name: &str, strategy: &Value, data: &Value) -> Value {
    let mut manifest = world.config_map(name);
    manifest["data"] = data.clone();
    let id = json!({"resource": "configmaps", "namespace": world.cluster, "name": name});
    let config = json!({"resourceIdentifier": id, "updateStrategy": strategy});
    json!({"workload": {"manifests": [manifest]}, "manifestConfigs": [config]})
}

async fn create_by_somebody_else(world: &WorkWorld, name: &str) -> Result<ConfigMap> {
    let map = json!({"metadata": {"name": name}, "data": {"theirs": "1"}});
    Ok(world.config_maps().create(&PostParams::default(), &serde_json::from_value(map)?).await?)
}

async fn data(world: &WorkWorld, name: &str) -> Result<Value> {
    Ok(json!(world.config_maps().get(name).await?.data.unwrap_or_default()))
}

/// The uids of the objects that the record of a work lists.
async fn recorded(world: &WorkWorld, work: &str) -> Result<Vec<Option<String>>> {
    let record = world.records().get(&world.record_name(work)).await?;
    Ok(record.status.unwrap_or_default().applied_resources.into_iter().map(|resource| resource.uid).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_is_only_created_is_not_updated_and_is_deleted_with_its_work() -> Result<()> {
    let (world, name) = (WorkWorld::new().await?, unique("work"));
    let create_only = json!({"type": "CreateOnly"});
    world.create_with(&name, spec(&world, &name, &create_only, &json!({"a": "1"}))).await?;
    world.is(&name, "Applied", "True").await?;
    let change = Patch::Merge(json!({"data": {"theirs": "1"}}));
    world.config_maps().patch(&name, &PatchParams::default(), &change).await?;
    world.edit(&name, spec(&world, &name, &create_only, &json!({"a": "2"}))).await?;
    world.is(&name, "Applied", "True").await?;
    assert_eq!(data(&world, &name).await?, json!({"a": "1", "theirs": "1"}));
    assert_eq!(world.config_maps().get(&name).await?.owner_references().len(), 1);
    world.ends_with(&name).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_exists_already_is_adopted_by_create_only_as_it_is() -> Result<()> {
    let (world, name) = (WorkWorld::new().await?, unique("work"));
    let existing = create_by_somebody_else(&world, &name).await?;
    world.create_with(&name, spec(&world, &name, &json!({"type": "CreateOnly"}), &json!({"a": "1"}))).await?;
    world.is(&name, "Applied", "True").await?;
    assert_eq!(data(&world, &name).await?, json!({"theirs": "1"}));
    assert_eq!(world.config_maps().get(&name).await?.owner_references().len(), 1);
    assert_eq!(recorded(&world, &name).await?, [existing.uid()]);
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_is_only_read_is_recorded_and_never_written_or_deleted() -> Result<()> {
    let (world, work, name) = (WorkWorld::new().await?, unique("work"), unique("map"));
    let existing = create_by_somebody_else(&world, &name).await?;
    let read_only = spec(&world, &name, &json!({"type": "ReadOnly"}), &json!({"a": "1"}));
    let is_untouched = async || {
        let now = world.config_maps().get(&name).await?;
        anyhow::Ok(now.resource_version() == existing.resource_version())
    };
    world.create_with(&work, read_only.clone()).await?;
    world.is(&work, "Applied", "True").await?;
    world.is(&work, "Available", "True").await?;
    assert_eq!(recorded(&world, &work).await?, [existing.uid()]);
    world.edit(&work, json!({"workload": {"manifests": [world.config_map(&work)]}})).await?;
    world.is(&work, "Applied", "True").await?;
    eventually("the record lists the other object alone", || async {
        let recorded = recorded(&world, &work).await?;
        let is_other = recorded.len() == 1 && recorded[0] != existing.uid();
        anyhow::Ok(if is_other { Seen::Settled(()) } else { Seen::NotYet(format!("{recorded:?}")) })
    })
    .await?;
    assert!(is_untouched().await?, "it was taken out of the work");
    world.edit(&work, read_only).await?;
    world.is(&work, "Applied", "True").await?;
    world.delete(&work).await?;
    world.is_gone(&work).await?;
    assert!(is_untouched().await?, "the work was deleted");
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_object_that_is_only_read_is_applied_and_not_available() -> Result<()> {
    let (world, name) = (WorkWorld::new().await?, unique("work"));
    world.create_with(&name, spec(&world, &name, &json!({"type": "ReadOnly"}), &json!({"a": "1"}))).await?;
    world.is(&name, "Applied", "True").await?;
    world.is(&name, "Available", "False").await?;
    assert!(world.config_maps().get_opt(&name).await?.is_none());
    create_by_somebody_else(&world, &name).await?;
    eventually("it is available", || async {
        let work = world.works().get(&name).await?;
        let conditions = work.status.unwrap_or_default().conditions;
        anyhow::Ok(ocm_runtime::conditions::is_true(&conditions, "Available"))
    })
    .await?;
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_becomes_read_only_stays_when_its_work_is_deleted() -> Result<()> {
    let (mut world, read, late) = (WorkWorld::new().await?, unique("read"), unique("late"));
    for work in [&read, &late] {
        world.create(work, json!([world.config_map(work)])).await?;
        world.is(work, "Applied", "True").await?;
    }
    world.edit(&read, spec(&world, &read, &json!({"type": "ReadOnly"}), &json!({}))).await?;
    world.is(&read, "Applied", "True").await?;
    assert!(world.config_maps().get(&read).await?.owner_references().is_empty());
    // Of the other work the agent sees the edit together with the deletion.
    world.stop().await;
    world.edit(&late, spec(&world, &late, &json!({"type": "ReadOnly"}), &json!({}))).await?;
    for work in [&read, &late] {
        world.delete(work).await?;
    }
    world.start().await?;
    for work in [&read, &late] {
        world.is_gone(work).await?;
        let left = world.config_maps().get(work).await?;
        assert!(left.owner_references().is_empty() && left.metadata.deletion_timestamp.is_none());
    }
    world.stop().await;
    Ok(())
}
