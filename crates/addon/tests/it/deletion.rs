//! Deletion of an add-on.

use anyhow::Result;
use kube::api::{DeleteParams, Patch, PatchParams};
use ocm_testing::eventually;
use serde_json::json;

use crate::{
    scripted::{PLAIN, READER, config_map, role},
    support::{World, world},
};

async fn wait_until_gone(world: &World, cluster: &str, addon: &str) -> Result<()> {
    eventually("the add-on is gone", || async {
        world.addons(cluster).get_opt(addon).await.map(|addon| addon.is_none())
    })
    .await
}

#[tokio::test]
async fn nothing_of_an_add_on_stays_on_the_hub_and_other_add_ons_are_not_affected() -> Result<()> {
    let world = world().await?;
    let cluster = world.cluster("leaving", None).await?;
    for addon in [READER, PLAIN] {
        world.enable(&cluster, addon).await?;
        world.work(&cluster, addon, "exists", |_| true).await?;
    }
    world.condition(&cluster, READER, ["RegistrationApplied", "True", "SetPermissionApplied"]).await?;
    // The cluster's agent holds the work until it has cleaned up.
    let hold =
        Patch::Merge(json!({"metadata": {"finalizers": ["cluster.open-cluster-management.io/manifest-work-cleanup"]}}));
    let work = "addon-reader-deploy-0";
    world.works(&cluster).patch(work, &PatchParams::default(), &hold).await?;
    world.addons(&cluster).delete(READER, &DeleteParams::default()).await?;
    wait_until_gone(&world, &cluster, READER).await?;
    eventually("the work is being deleted", || async {
        Ok::<_, kube::Error>(world.works(&cluster).get(work).await?.metadata.deletion_timestamp.is_some())
    })
    .await?;
    let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    world.works(&cluster).patch(work, &PatchParams::default(), &release).await?;
    for (resource, name) in [("manifestwork", work), ("role", &*role(READER)), ("rolebinding", &*role(READER))] {
        eventually(&format!("{resource} {name} is gone"), || async {
            world.exists(resource, &cluster, name).await.map(|there| !there)
        })
        .await?;
    }
    assert!(world.exists("manifestwork", &cluster, "addon-plain-deploy-0").await?);
    Ok(())
}

#[tokio::test]
async fn an_add_on_that_comes_back_is_deployed_again() -> Result<()> {
    let world = world().await?;
    let cluster = world.cluster("returning", None).await?;
    world.enable(&cluster, READER).await?;
    let first = world.work(&cluster, READER, "exists", |_| true).await?;
    world.addons(&cluster).delete(READER, &DeleteParams::default()).await?;
    wait_until_gone(&world, &cluster, READER).await?;
    world.enable(&cluster, READER).await?;
    let addon = world.addons(&cluster).get(READER).await?;
    world
        .work(&cluster, READER, "belongs to the new add-on", |work| {
            let owners = work.metadata.owner_references.iter().flatten();
            work.metadata.deletion_timestamp.is_none() && owners.map(|owner| &owner.uid).eq(&addon.metadata.uid)
        })
        .await?;
    assert_eq!(first.spec, world.works(&cluster).get("addon-reader-deploy-0").await?.spec);
    world.condition(&cluster, READER, ["RegistrationApplied", "True", "SetPermissionApplied"]).await?;
    eventually("the role belongs to the new add-on", || async {
        let owner = "jsonpath={.metadata.ownerReferences[*].uid}";
        let uids = world.plane.kubectl(&["get", "role", &role(READER), "-n", &cluster, "-o", owner]).await?;
        anyhow::Ok(Some(uids) == addon.metadata.uid)
    })
    .await
}

#[tokio::test]
async fn a_finalizer_that_a_former_manager_left_does_not_hold_the_add_on() -> Result<()> {
    let world = world().await?;
    let script = json!([config_map("a", 1)]).to_string();
    let cluster = world.cluster("held", Some(&script)).await?;
    let finalizers =
        ["addon.open-cluster-management.io/addon-pre-delete", "cluster.open-cluster-management.io/addon-pre-delete"];
    let object = json!({"metadata": {"name": PLAIN, "finalizers": finalizers}, "spec": {}});
    world.enable_as(&cluster, PLAIN, object).await?;
    world.work(&cluster, PLAIN, "exists", |_| true).await?;
    world.addons(&cluster).delete(PLAIN, &DeleteParams::default()).await?;
    wait_until_gone(&world, &cluster, PLAIN).await
}
