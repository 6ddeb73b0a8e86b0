//! Rights that somebody changes are restored.

use anyhow::Result;
use ocm_testing::{eventually, unique};
use serde_json::{Value, json};

use crate::support::{World, content, there, world};

async fn wait_for(world: &World, resource: &str, namespace: &str, name: &str, expected: &Value) -> Result<()> {
    eventually(&format!("{resource} {name} is as it was"), || async {
        world.get(resource, namespace, name).await.is_some_and(|object| content(&object) == *expected)
    })
    .await
}

#[tokio::test]
async fn an_edited_or_deleted_role_and_its_binding_are_restored() -> Result<()> {
    let world = world().await?;
    let name = unique("drift");
    world.accepted(&name).await?;
    let own = format!("open-cluster-management:managedcluster:{name}");
    let role = content(&there(world.get("clusterrole", "", &own).await)?);
    let wide = json!({"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}).to_string();
    world.plane.kubectl(&["patch", "clusterrole", &own, "--type=merge", "-p", &wide]).await?;
    wait_for(&world, "clusterrole", "", &own, &role).await?;
    let binding = content(&there(world.get("clusterrolebinding", "", &own).await)?);
    world.plane.kubectl(&["delete", "clusterrolebinding", &own]).await?;
    wait_for(&world, "clusterrolebinding", "", &own, &binding).await
}

#[tokio::test]
async fn a_binding_to_another_role_is_replaced() -> Result<()> {
    let world = world().await?;
    let name = unique("rebound");
    world.accepted(&name).await?;
    let own = format!("open-cluster-management:managedcluster:{name}:registration");
    let binding = content(&there(world.get("rolebinding", &name, &own).await)?);
    let mut elsewhere = binding.clone();
    elsewhere["roleRef"]["name"] = "view".into();
    let replace = ["replace", "--force", "-f", "-"];
    // The hub may be faster than the second half of the replacement.
    let _ = world.plane.kubectl_with_input(&replace, &elsewhere.to_string()).await;
    wait_for(&world, "rolebinding", &name, &own, &binding).await
}

#[tokio::test]
async fn a_role_that_lost_the_hubs_label_is_taken_over_again() -> Result<()> {
    let world = world().await?;
    let name = unique("unlabelled");
    world.accepted(&name).await?;
    let own = format!("open-cluster-management:managedcluster:{name}");
    let role = content(&there(world.get("clusterrole", "", &own).await)?);
    let bare = json!({"metadata": {"labels": null}, "rules": []}).to_string();
    world.plane.kubectl(&["patch", "clusterrole", &own, "--type=merge", "-p", &bare]).await?;
    wait_for(&world, "clusterrole", "", &own, &role).await
}
