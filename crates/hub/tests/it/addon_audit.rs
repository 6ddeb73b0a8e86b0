//! What add-ons cost in writes.

use std::collections::BTreeMap;

use anyhow::Result;
use kube::api::{Patch, PatchParams};
use ocm_testing::{AuditLog, unique};
use serde_json::json;

use crate::{
    addon_world::addon_world,
    support::{ACCOUNT, NAMESPACE, world},
};

/// The hub's writes to an add-on, each with its number: `create managedclusteraddons 201`.
async fn writes_to(addon: &str) -> Result<BTreeMap<String, usize>> {
    let hub = format!("system:serviceaccount:{NAMESPACE}:{ACCOUNT}");
    let mut writes = BTreeMap::new();
    for write in AuditLog::of(world().await?.plane)?.all()? {
        if write.user == hub && write.name == addon {
            *writes.entry(format!("{write} {}", write.code)).or_default() += 1;
        }
    }
    Ok(writes)
}

fn expected(writes: &[(&str, usize)]) -> BTreeMap<String, usize> {
    writes.iter().map(|(write, times)| ((*write).to_owned(), *times)).collect()
}

#[tokio::test]
async fn an_addon_costs_two_writes_and_an_idle_one_none() -> Result<()> {
    let world = addon_world().await?;
    let (one, two, name) = (world.cluster("thrift").await?, world.cluster("thrift").await?, unique("thrift"));
    world.create_placement("p").await?;
    world.decide("p", 1, &[&one, &two]).await?;
    world.create_management(&name, world.following(&["p"])).await?;
    for cluster in [&one, &two] {
        world.wait_for_addon(cluster, &name).await?;
    }
    world.wait_for_progress(&name, "p", "False", "Completed", "2 of 2").await?;
    let installed = writes_to(&name).await?;
    assert_eq!(installed["create managedclusteraddons 201"], 2, "{installed:?}");
    assert_eq!(installed["patch managedclusteraddons/status 200"], 2, "{installed:?}");
    let progress = installed["patch clustermanagementaddons/status 200"];
    assert!(progress <= 2, "{installed:?}");
    assert_eq!(installed.len(), 3, "{installed:?}");
    // Changes without an effect: controllers that are concerned reconcile, and write nothing.
    world.annotate(&one, json!({"note": "x"})).await?;
    world.edit_management(&name, json!({"spec": {"addOnMeta": {"displayName": "Thrift"}}})).await?;
    let note = Patch::Merge(json!({"metadata": {"annotations": {"note": "x"}}}));
    world.addons(&two).patch(&name, &PatchParams::default(), &note).await?;
    world.decide("p", 2, &[&one]).await?;
    world.settle().await?;
    assert_eq!(writes_to(&name).await?, installed);
    Ok(())
}

#[tokio::test]
async fn an_addon_that_is_installed_by_hand_costs_its_owner_and_its_conditions() -> Result<()> {
    let world = addon_world().await?;
    let (cluster, name) = (world.cluster("hand").await?, unique("hand"));
    world.create_management(&name, json!({})).await?;
    world.install(&cluster, &name, json!({})).await?;
    world.wait_for_addon(&cluster, &name).await?;
    world.settle().await?;
    let writes = [("patch managedclusteraddons 200", 1), ("patch managedclusteraddons/status 200", 1)];
    assert_eq!(writes_to(&name).await?, expected(&writes));
    Ok(())
}
