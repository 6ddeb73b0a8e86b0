//! The status of add-ons: their progress, their health, and the clusters on which they are.

use anyhow::Result;
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use ocm_api::work::v1::ManifestWork;
use ocm_testing::unique;
use serde_json::{Value, json};

use crate::addon_world::{AddonWorld, addon_world};

/// An add-on that is installed by hand.
async fn installed(world: &AddonWorld, cluster: &str, prefix: &str) -> Result<String> {
    let name = unique(prefix);
    world.create_management(&name, json!({})).await?;
    world.install(cluster, &name, json!({})).await?;
    world.wait_for_addon(cluster, &name).await?;
    Ok(name)
}

fn conditions(generation: i64) -> Value {
    let condition = |type_: &str| {
        json!({"type": type_, "status": "True", "reason": "R", "message": "", "observedGeneration": generation,
            "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    json!({"status": {"conditions": [condition("Applied"), condition("Available")]}})
}

#[tokio::test]
async fn an_addon_progresses_with_its_works() -> Result<()> {
    let world = addon_world().await?;
    let cluster = world.cluster("works").await?;
    let name = installed(&world, &cluster, "works").await?;
    world.set_condition(&cluster, &name, "ManifestApplied", "True").await?;
    let message = world.wait_for_condition(&cluster, &name, "Progressing", "True", "Progressing").await?;
    assert!(message.contains("no ManifestWork"), "{message}");
    let works: Api<ManifestWork> = Api::namespaced(world.client.clone(), &cluster);
    let work = format!("addon-{name}-deploy-0");
    let labels = json!({"open-cluster-management.io/addon-name": name});
    let object = json!({"metadata": {"name": work, "labels": labels}, "spec": {"workload": {"manifests": []}}});
    works.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
    works.patch_status(&work, &PatchParams::default(), &Patch::Merge(conditions(1))).await?;
    world.wait_for_condition(&cluster, &name, "Progressing", "False", "Completed").await?;
    let edit = Patch::Merge(json!({"spec": {"deleteOption": {"propagationPolicy": "Orphan"}}}));
    works.patch(&work, &PatchParams::default(), &edit).await?;
    let message = world.wait_for_condition(&cluster, &name, "Progressing", "True", "Progressing").await?;
    assert!(message.contains(&work), "{message}");
    works.patch_status(&work, &PatchParams::default(), &Patch::Merge(conditions(2))).await?;
    world.wait_for_condition(&cluster, &name, "Progressing", "False", "Completed").await?;
    works.delete(&work, &DeleteParams::default()).await?;
    world.wait_for_condition(&cluster, &name, "Progressing", "True", "Progressing").await?;
    Ok(())
}

#[tokio::test]
async fn labels_of_a_cluster_show_how_its_addons_fare() -> Result<()> {
    let world = addon_world().await?;
    let cluster = world.cluster("label").await?;
    let name = installed(&world, &cluster, "label").await?;
    world.wait_for_label(&cluster, &name, None).await?;
    world.set_available(&cluster, "True", "ManagedClusterAvailable").await?;
    world.wait_for_label(&cluster, &name, Some("unreachable")).await?;
    for (status, label) in [("True", "available"), ("False", "unhealthy"), ("Unknown", "unreachable")] {
        world.set_condition(&cluster, &name, "Available", status).await?;
        world.wait_for_label(&cluster, &name, Some(label)).await?;
    }
    let key = format!("feature.open-cluster-management.io/addon-{name}");
    world.edit_cluster(&cluster, json!({"metadata": {"labels": { &key: "wrong", "env": "prod" }}})).await?;
    world.wait_for_label(&cluster, &name, Some("unreachable")).await?;
    world.uninstall(&cluster, &name).await?;
    world.wait_for_label(&cluster, &name, None).await?;
    assert_eq!(world.clusters().get(&cluster).await?.labels()["env"], "prod");
    Ok(())
}

#[tokio::test]
async fn a_name_too_long_for_a_label_keeps_no_other_addon_from_its_label() -> Result<()> {
    let world = addon_world().await?;
    let cluster = world.cluster("long").await?;
    world.set_available(&cluster, "True", "ManagedClusterAvailable").await?;
    world.install(&cluster, &"a".repeat(63), json!({})).await?;
    let name = installed(&world, &cluster, "short").await?;
    world.wait_for_label(&cluster, &name, Some("unreachable")).await
}

#[tokio::test]
async fn addons_of_a_silent_cluster_are_unknown_and_stay_so_until_somebody_knows_better() -> Result<()> {
    let world = addon_world().await?;
    let cluster = world.cluster("unreachable").await?;
    let name = installed(&world, &cluster, "unreachable").await?;
    world.set_available(&cluster, "True", "ManagedClusterAvailable").await?;
    world.set_condition(&cluster, &name, "Available", "True").await?;
    world.wait_for_label(&cluster, &name, Some("available")).await?;
    let reason = "ManagedClusterLeaseUpdateStopped";
    world.set_available(&cluster, "Unknown", reason).await?;
    let message = world.wait_for_condition(&cluster, &name, "Available", "Unknown", reason).await?;
    assert_eq!(message, "m");
    world.wait_for_label(&cluster, &name, Some("unreachable")).await?;
    let later = installed(&world, &cluster, "later").await?;
    world.wait_for_condition(&cluster, &later, "Available", "Unknown", reason).await?;
    world.set_available(&cluster, "True", "ManagedClusterAvailable").await?;
    world.settle().await?;
    world.wait_for_condition(&cluster, &name, "Available", "Unknown", reason).await?;
    world.set_condition(&cluster, &name, "Available", "True").await?;
    world.wait_for_label(&cluster, &name, Some("available")).await
}
