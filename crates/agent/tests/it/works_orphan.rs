//! Works that keep some of their objects when they are deleted.

use anyhow::Result;
use kube::ResourceExt as _;
use ocm_testing::{Seen, eventually, unique};
use serde_json::{Value, json};

use crate::works_world::WorkWorld;

fn orphaning(world: &WorkWorld, names: &[&str]) -> Value {
    let rule = |name: &&str| json!({"resource": "configmaps", "namespace": world.cluster, "name": name});
    let rules: Vec<_> = names.iter().map(rule).collect();
    json!({"propagationPolicy": "SelectivelyOrphan", "selectivelyOrphans": {"orphaningRules": rules}})
}

/// Waits until the object has that many owners.
async fn has_owners(world: &WorkWorld, name: &str, expected: usize) -> Result<()> {
    eventually(&format!("{name} has {expected} owners"), || async {
        let owners = world.config_maps().get(name).await?.owner_references().len();
        anyhow::Ok(if owners == expected { Seen::Settled(()) } else { Seen::NotYet(owners.to_string()) })
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_deleted_work_exactly_the_objects_that_rules_name_stay() -> Result<()> {
    let (world, work) = (WorkWorld::new().await?, unique("work"));
    let [kept, gone] = ["kept", "gone"].map(unique);
    let manifests = json!([world.config_map(&kept), world.config_map(&gone)]);
    let spec = json!({"workload": {"manifests": manifests}, "deleteOption": orphaning(&world, &[&kept, "*"])});
    world.create_with(&work, spec).await?;
    world.is(&work, "Applied", "True").await?;
    has_owners(&world, &kept, 0).await?;
    has_owners(&world, &gone, 1).await?;
    world.delete(&work).await?;
    world.is_gone(&work).await?;
    let left = world.config_maps().get(&kept).await?;
    assert!(left.owner_references().is_empty() && left.metadata.deletion_timestamp.is_none());
    assert!(world.config_maps().get_opt(&gone).await?.is_none());
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_loses_its_owner_with_a_new_rule_and_gets_it_back_without_it() -> Result<()> {
    let (world, name) = (WorkWorld::new().await?, unique("work"));
    world.create(&name, json!([world.config_map(&name)])).await?;
    world.is(&name, "Applied", "True").await?;
    has_owners(&world, &name, 1).await?;
    world.edit(&name, json!({"deleteOption": orphaning(&world, &[&name])})).await?;
    has_owners(&world, &name, 0).await?;
    world.edit(&name, json!({"deleteOption": orphaning(&world, &[])})).await?;
    has_owners(&world, &name, 1).await?;
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_that_is_added_right_before_the_deletion_takes_effect() -> Result<()> {
    let (mut world, work) = (WorkWorld::new().await?, unique("work"));
    let [kept, gone] = ["kept", "gone"].map(unique);
    world.create(&work, json!([world.config_map(&kept), world.config_map(&gone)])).await?;
    world.is(&work, "Applied", "True").await?;
    world.stop().await;
    world.edit(&work, json!({"deleteOption": orphaning(&world, &[&kept])})).await?;
    world.delete(&work).await?;
    world.start().await?;
    world.is_gone(&work).await?;
    assert!(world.config_maps().get(&kept).await?.owner_references().is_empty());
    assert!(world.config_maps().get_opt(&gone).await?.is_none());
    world.stop().await;
    Ok(())
}
