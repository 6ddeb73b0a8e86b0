//! Works whose objects are written by server-side apply.

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    ResourceExt as _,
    api::{Patch, PatchParams},
};
use ocm_runtime::conditions::find;
use ocm_testing::{Seen, eventually, unique};
use serde_json::{Value, json};

use crate::works_world::WorkWorld;

/// The spec of a work with one ConfigMap that has this data.
fn spec(world: &WorkWorld, name: &str, settings: &Value, data: &Value) -> Value {
    let mut manifest = world.config_map(name);
    manifest["data"] = data.clone();
    let id = json!({"resource": "configmaps", "namespace": world.cluster, "name": name});
    let strategy = json!({"type": "ServerSideApply", "serverSideApply": settings});
    let config = json!({"resourceIdentifier": id, "updateStrategy": strategy});
    json!({"workload": {"manifests": [manifest]}, "manifestConfigs": [config]})
}

/// Somebody else sets data, taking the fields over.
async fn set_by_somebody_else(world: &WorkWorld, name: &str, data: &Value) -> Result<ConfigMap> {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data});
    let params = PatchParams::apply("somebody").force();
    Ok(world.config_maps().patch(name, &params, &Patch::Apply(map)).await?)
}

async fn data(world: &WorkWorld, name: &str) -> Result<Value> {
    Ok(json!(world.config_maps().get(name).await?.data.unwrap_or_default()))
}

/// Waits for the condition `Applied` of the only manifest; returns its reason and message.
async fn failure(world: &WorkWorld, work: &str) -> Result<(String, String)> {
    world.is(work, "Applied", "False").await?;
    let manifests = world.works().get(work).await?.status.unwrap_or_default().resource_status.manifests;
    let applied = find(&manifests[0].conditions, "Applied").cloned();
    Ok(applied.map(|applied| (applied.reason, applied.message)).unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_field_of_another_manager_is_a_conflict_until_it_is_taken_over() -> Result<()> {
    let (world, name) = (WorkWorld::new().await?, unique("work"));
    world.create_with(&name, spec(&world, &name, &json!({}), &json!({"a": "1"}))).await?;
    world.is(&name, "Applied", "True").await?;
    set_by_somebody_else(&world, &name, &json!({"a": "theirs", "b": "theirs"})).await?;
    world.edit(&name, spec(&world, &name, &json!({}), &json!({"a": "2"}))).await?;
    let (reason, message) = failure(&world, &name).await?;
    assert_eq!(reason, "AppliedManifestFailed");
    for expected in [".data.a", "\"somebody\"", "spec.manifestConfigs[0].updateStrategy.serverSideApply.force"] {
        assert!(message.contains(expected), "{message}");
    }
    assert_eq!(data(&world, &name).await?, json!({"a": "theirs", "b": "theirs"}));
    world
        .edit(&name, spec(&world, &name, &json!({"force": true, "fieldManager": "work-agent"}), &json!({"a": "2"})))
        .await?;
    world.is(&name, "Applied", "True").await?;
    assert_eq!(data(&world, &name).await?, json!({"a": "2", "b": "theirs"}));
    let map = world.config_maps().get(&name).await?;
    assert!(
        map.managed_fields()
            .iter()
            .any(|entry| entry.manager.as_deref() == Some("work-agent") && entry.operation.as_deref() == Some("Apply"))
    );
    assert_eq!(map.owner_references().len(), 1);
    world.ends_with(&name).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_field_that_left_the_manifest_is_removed_and_those_of_others_stay() -> Result<()> {
    let (world, name) = (WorkWorld::new().await?, unique("work"));
    world.create_with(&name, spec(&world, &name, &json!({}), &json!({"a": "1", "b": "1"}))).await?;
    world.is(&name, "Applied", "True").await?;
    set_by_somebody_else(&world, &name, &json!({"c": "theirs"})).await?;
    world.edit(&name, spec(&world, &name, &json!({}), &json!({"a": "2"}))).await?;
    world.is(&name, "Applied", "True").await?;
    assert_eq!(data(&world, &name).await?, json!({"a": "2", "c": "theirs"}));
    world.stop().await;
    Ok(())
}

fn ignoring(condition: &str, path: &Value) -> Value {
    let mut entry = path.clone();
    entry["condition"] = json!(condition);
    json!({"force": true, "ignoreFields": [entry]})
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_that_are_ignored_on_the_spoke_are_set_at_creation_and_never_again() -> Result<()> {
    let world = WorkWorld::new().await?;
    for path in [
        json!({"jsonPointers": ["/data/b"]}),
        json!({"jsonPaths": [".data.b"]}),
        json!({"jqPathExpressions": [".data | .b"]}),
    ] {
        let (name, settings) = (unique("work"), ignoring("OnSpokePresent", &path));
        world.create_with(&name, spec(&world, &name, &settings, &json!({"a": "1", "b": "1"}))).await?;
        world.is(&name, "Applied", "True").await?;
        assert_eq!(data(&world, &name).await?, json!({"a": "1", "b": "1"}));
        set_by_somebody_else(&world, &name, &json!({"b": "theirs"})).await?;
        world.edit(&name, spec(&world, &name, &settings, &json!({"a": "2", "b": "2"}))).await?;
        world.is(&name, "Applied", "True").await?;
        assert_eq!(data(&world, &name).await?, json!({"a": "2", "b": "theirs"}), "{path}");
    }
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_that_are_ignored_on_change_are_written_when_the_manifest_changes() -> Result<()> {
    let reapply = std::time::Duration::from_millis(100)..std::time::Duration::from_millis(200);
    let world = WorkWorld::with(|settings| ocm_agent::work::Settings { reapply: reapply.clone(), ..settings }).await?;
    let (name, other) = (unique("work"), unique("other"));
    let settings = ignoring("OnSpokeChange", &json!({"jsonPointers": ["/data/b"]}));
    world.create_with(&name, spec(&world, &name, &settings, &json!({"a": "1", "b": "1"}))).await?;
    world.is(&name, "Applied", "True").await?;
    set_by_somebody_else(&world, &name, &json!({"b": "theirs"})).await?;
    // Another manifest is applied in the passes that follow, so that they are known to have happened.
    let mut both = spec(&world, &name, &settings, &json!({"a": "1", "b": "1"}));
    both["workload"]["manifests"].as_array_mut().unwrap().push(world.config_map(&other));
    world.edit(&name, both).await?;
    world.is(&name, "Applied", "True").await?;
    assert_eq!(data(&world, &name).await?, json!({"a": "1", "b": "theirs"}));
    world.edit(&name, spec(&world, &name, &settings, &json!({"a": "1", "b": "2"}))).await?;
    world.is(&name, "Applied", "True").await?;
    assert_eq!(data(&world, &name).await?, json!({"a": "1", "b": "2"}));
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_that_cannot_be_ignored_are_named_and_the_other_objects_are_applied() -> Result<()> {
    let (world, name, good) = (WorkWorld::new().await?, unique("work"), unique("good"));
    let bad = ignoring("OnSpokePresent", &json!({"jqPathExpressions": ["input"]}));
    let mut spec = spec(&world, &name, &bad, &json!({"a": "1"}));
    spec["workload"]["manifests"].as_array_mut().unwrap().push(world.config_map(&good));
    world.create_with(&name, spec).await?;
    let (reason, message) = failure(&world, &name).await?;
    assert_eq!(reason, "AppliedManifestSSAIgnoreFieldError");
    assert!(message.contains("spec.manifestConfigs[0].updateStrategy.serverSideApply.ignoreFields[0]"), "{message}");
    assert!(message.contains("JQ expression error in 'input'"), "{message}");
    eventually("the other object exists", || async {
        let found = world.config_maps().get_opt(&good).await?;
        anyhow::Ok(found.map_or(Seen::NotYet(String::new()), |_| Seen::Settled(())))
    })
    .await?;
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_field_that_somebody_changes_is_repaired_at_the_next_pass() -> Result<()> {
    let reapply = std::time::Duration::from_millis(100)..std::time::Duration::from_millis(200);
    let world = WorkWorld::with(|settings| ocm_agent::work::Settings { reapply: reapply.clone(), ..settings }).await?;
    let name = unique("work");
    world.create_with(&name, spec(&world, &name, &json!({"force": true}), &json!({"a": "1"}))).await?;
    world.is(&name, "Applied", "True").await?;
    set_by_somebody_else(&world, &name, &json!({"theirs": "1"})).await?;
    let update = Patch::Merge(json!({"data": {"a": "drifted"}}));
    world.config_maps().patch(&name, &PatchParams::default(), &update).await?;
    eventually("the drift is repaired", || async {
        let now = data(&world, &name).await?;
        let is_repaired = now == json!({"a": "1", "theirs": "1"});
        anyhow::Ok(if is_repaired { Seen::Settled(()) } else { Seen::NotYet(now.to_string()) })
    })
    .await?;
    world.stop().await;
    Ok(())
}
