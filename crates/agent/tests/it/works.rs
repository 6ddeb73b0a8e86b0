//! Works whose records or objects are deleted, cannot be deleted, or are to stay.

use std::time::Duration;

use anyhow::Result;
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use ocm_agent::work::Settings;
use ocm_api::finalizers;
use ocm_testing::{Seen, eventually, unique};
use serde_json::json;

use crate::works_world::WorkWorld;

/// Whether the object of that name, which is that of a work of the same name, belongs to a live record.
async fn is_owned_by_a_live_record(world: &WorkWorld, name: &str) -> Result<bool> {
    let record = world.records().get_opt(&world.record_name(name)).await?;
    let object = world.config_maps().get_opt(name).await?;
    let (Some(record), Some(object)) = (record, object) else { return Ok(false) };
    let is_live = record.metadata.deletion_timestamp.is_none() && object.metadata.deletion_timestamp.is_none();
    let is_held = record.finalizers().iter().any(|finalizer| finalizer == finalizers::APPLIED_MANIFEST_WORK);
    let owner = object.owner_references().first().map(|owner| owner.uid.clone());
    Ok(is_live && is_held && owner == record.metadata.uid)
}

#[tokio::test(flavor = "multi_thread")]
async fn records_that_are_deleted_at_once_come_back_with_their_objects() -> Result<()> {
    let world = WorkWorld::new().await?;
    let names: Vec<_> = (0..30).map(|_| unique("work")).collect();
    try_join_all(names.iter().map(|name| world.create(name, json!([world.config_map(name)])))).await?;
    for _ in 0..3 {
        for name in &names {
            world.is(name, "Applied", "True").await?;
        }
        let records: Vec<_> = names.iter().map(|name| world.record_name(name)).collect();
        let (api, params) = (world.records(), DeleteParams::default());
        try_join_all(records.iter().map(|record| api.delete(record, &params))).await?;
        eventually("every work has a live record that owns its object", || async {
            let owned = try_join_all(names.iter().map(|name| is_owned_by_a_live_record(&world, name))).await?;
            let missing = owned.iter().filter(|owned| !**owned).count();
            anyhow::Ok(if missing == 0 { Seen::Settled(()) } else { Seen::NotYet(format!("{missing} are not")) })
        })
        .await?;
    }
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_has_lost_its_finalizer_gets_it_back() -> Result<()> {
    let (world, name) = (WorkWorld::new().await?, unique("work"));
    world.create(&name, json!([world.config_map(&name)])).await?;
    world.is(&name, "Applied", "True").await?;
    let none = json!({"metadata": {"finalizers": null}});
    world.records().patch(&world.record_name(&name), &PatchParams::default(), &Patch::Merge(none)).await?;
    eventually("the record has its finalizer", || is_owned_by_a_live_record(&world, &name)).await?;
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_applied_of_a_work_that_was_removed_by_force_is_evicted() -> Result<()> {
    let grace = Duration::from_secs(1);
    let mut world = WorkWorld::with(|settings| Settings { eviction_grace: grace, ..settings }).await?;
    let (removed, kept) = (unique("removed"), unique("kept"));
    for name in [&removed, &kept] {
        world.create(name, json!([world.config_map(name)])).await?;
        world.is(name, "Applied", "True").await?;
    }
    world.stop().await;
    world.delete(&removed).await?;
    let none = json!({"metadata": {"finalizers": null}});
    world.works().patch(&removed, &PatchParams::default(), &Patch::Merge(none)).await?;
    world.start().await?;
    eventually("the record and the object are gone", || async {
        let record = world.records().get_opt(&world.record_name(&removed)).await?;
        let object = world.config_maps().get_opt(&removed).await?;
        anyhow::Ok(record.is_none() && object.is_none())
    })
    .await?;
    assert!(is_owned_by_a_live_record(&world, &kept).await?);
    world.stop().await;
    Ok(())
}

fn secrets(world: &WorkWorld) -> Api<Secret> {
    Api::namespaced(world.managed.clone(), &world.cluster)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_cannot_be_deleted_is_named_and_the_others_are_deleted() -> Result<()> {
    let (world, name) = (WorkWorld::new().await?, unique("work"));
    let others: Vec<_> = (0..20).map(|n| format!("{name}-{n}")).collect();
    let mut manifests: Vec<_> = others.iter().map(|other| world.config_map(other)).collect();
    manifests.insert(0, world.manifest("v1", "Secret", &name));
    world.create(&name, json!(manifests)).await?;
    world.is(&name, "Applied", "True").await?;
    world.delete(&name).await?;
    let message = world.condition_contains(&name, "Deleting", "True", "cannot delete resource").await?;
    assert!(message.contains(&format!("secrets {}/{name}", world.cluster)), "{message}");
    eventually("the record lists the secret alone", || async {
        let record = world.records().get(&world.record_name(&name)).await?;
        let listed = record.status.unwrap_or_default().applied_resources;
        anyhow::Ok(matches!(listed.as_slice(), [only] if only.resource == "secrets"))
    })
    .await?;
    assert!(
        world
            .config_maps()
            .list(&ListParams::default())
            .await?
            .items
            .iter()
            .all(|map| !others.contains(&map.name_any()))
    );
    secrets(&world).delete(&name, &DeleteParams::default()).await?;
    world.is_gone(&name).await?;
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_is_reported_although_what_it_takes_out_cannot_be_deleted() -> Result<()> {
    let (world, name) = (WorkWorld::new().await?, unique("work"));
    let (taken_out, kept) = (world.manifest("v1", "Secret", &name), world.config_map(&name));
    world.create(&name, json!([taken_out, kept])).await?;
    world.is(&name, "Applied", "True").await?;
    world.edit(&name, json!({"workload": {"manifests": [kept]}})).await?;
    let message = world.condition_contains(&name, "Applied", "True", "cannot be deleted").await?;
    assert!(message.contains(&format!("secrets {}/{name}", world.cluster)), "{message}");
    let manifests = world.works().get(&name).await?.status.unwrap_or_default().resource_status.manifests;
    assert_eq!(manifests.len(), 1);
    secrets(&world).delete(&name, &DeleteParams::default()).await?;
    eventually("the condition no longer names the secret", || async {
        anyhow::Ok(!world.is(&name, "Applied", "True").await?.contains("cannot be deleted"))
    })
    .await?;
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_work_that_orphans_keeps_an_object_that_was_never_recorded() -> Result<()> {
    let (mut world, name) = (WorkWorld::new().await?, unique("work"));
    let unknown = world.manifest("example.com/v1", "Unknown", &name);
    world.create(&name, json!([world.config_map(&name), unknown])).await?;
    world.condition_contains(&name, "Applied", "False", "1 of 2").await?;
    world.stop().await;
    let none = Patch::Merge(json!({"status": {"appliedResources": null}}));
    world.records().patch_status(&world.record_name(&name), &PatchParams::default(), &none).await?;
    world.edit(&name, json!({"deleteOption": {"propagationPolicy": "Orphan"}})).await?;
    world.delete(&name).await?;
    world.start().await?;
    world.is_gone(&name).await?;
    let left = world.config_maps().get(&name).await?;
    assert!(left.owner_references().is_empty() && left.metadata.deletion_timestamp.is_none());
    world.stop().await;
    Ok(())
}
