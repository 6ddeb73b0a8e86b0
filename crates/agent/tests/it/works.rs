//! Works whose records or objects are deleted, cannot be deleted, or are to stay.

use std::time::Duration;

use anyhow::Result;
use futures::future::try_join_all;
use kube::{
    ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams},
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
