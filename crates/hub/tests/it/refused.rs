//! Names that belong to others, and objects that do: neither is given to a cluster.

use anyhow::Result;
use kube::api::DeleteParams;
use ocm_testing::{eventually, unique};
use serde_json::{Value, json};

use crate::support::{API_CLEANUP, World, content, there, world};

fn own(name: &str) -> String {
    format!("open-cluster-management:managedcluster:{name}")
}

fn labels(cluster: &str) -> Value {
    json!({"open-cluster-management.io/cluster-name": cluster})
}

async fn create(world: &World, object: &Value) -> Result<()> {
    world.plane.kubectl_with_input(&["create", "-f", "-"], &object.to_string()).await.map(|_| ())
}

/// What a hub that did not check names gave to a cluster of that name.
fn binding_of_refused(cluster: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": own(cluster), "labels": labels(cluster)},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": own(cluster)},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group",
                      "name": format!("system:open-cluster-management:{cluster}")}],
    })
}

async fn nothing_is_given_to(world: &World, cluster: &str, role: &Value) -> Result<()> {
    // Whatever the hub does about the cluster, it has done when it has set up a later one.
    world.accepted(&unique("later")).await?;
    assert_eq!(content(&there(world.get("clusterrole", "", &own(cluster)).await)?), *role);
    assert_eq!(world.get("clusterrolebinding", "", &own(cluster)).await, None);
    assert_eq!(world.get("namespace", "", cluster).await, None);
    Ok(())
}

#[tokio::test]
async fn a_cluster_named_like_a_role_of_all_clusters_gets_nothing_accepted_denied_or_deleted() -> Result<()> {
    let world = world().await?;
    world.accepted(&unique("other")).await?;
    for name in ["work", "registration"] {
        let role = content(&there(world.get("clusterrole", "", &own(name)).await)?);
        assert_eq!(role["metadata"]["labels"], labels(""));
        world.create(name, true, 60).await?;
        let (reason, message) = world.wait_for_condition(name, "HubAcceptedManagedCluster", "False").await?;
        assert_eq!(reason, "Error");
        assert!(message.contains("shared by all clusters") && message.contains("under another name"), "{message}");
        nothing_is_given_to(&world, name, &role).await?;
        world.set_accepted(name, false).await?;
        eventually("the cluster is denied", || async {
            let (reason, _) = world.wait_for_condition(name, "HubAcceptedManagedCluster", "False").await?;
            anyhow::Ok(reason == "HubClusterAdminDenied")
        })
        .await?;
        nothing_is_given_to(&world, name, &role).await?;
        world.clusters().delete(name, &DeleteParams::default()).await?;
        world.wait_until_gone("managedcluster", "", name).await?;
        nothing_is_given_to(&world, name, &role).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_binding_that_a_cluster_with_a_refused_name_has_is_withdrawn() -> Result<()> {
    let world = world().await?;
    world.accepted(&unique("other")).await?;
    create(&world, &binding_of_refused("managed-clusters")).await?;
    world.wait_until_gone("clusterrolebinding", "", &own("managed-clusters")).await?;
    world.create("managed-clusters", false, 60).await?;
    create(&world, &binding_of_refused("managed-clusters")).await?;
    world.wait_until_gone("clusterrolebinding", "", &own("managed-clusters")).await
}

#[tokio::test]
async fn a_role_of_another_cluster_is_not_adopted_and_its_removal_makes_room() -> Result<()> {
    let world = world().await?;
    let (name, other) = (unique("foreign"), unique("owner"));
    let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]);
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": own(&name), "labels": labels(&other)}, "rules": rules,
    });
    create(&world, &role).await?;
    world.create(&name, true, 60).await?;
    let (reason, message) = world.wait_for_condition(&name, "HubAcceptedManagedCluster", "False").await?;
    assert_eq!(reason, "Error");
    assert!(message.contains(&format!("belongs to cluster {other}; delete it")), "{message}");
    let kept = there(world.get("clusterrole", "", &own(&name)).await)?;
    assert_eq!((&kept["metadata"]["labels"], &kept["rules"]), (&labels(&other), &rules));
    world.plane.kubectl(&["delete", "clusterrole", &own(&name)]).await?;
    world.wait_for_accepted(&name).await
}

#[tokio::test]
async fn a_namespace_of_another_cluster_is_not_adopted() -> Result<()> {
    let world = world().await?;
    let (name, other) = (unique("ns-foreign"), unique("owner"));
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels(&other)},
    });
    create(&world, &namespace).await?;
    world.create(&name, true, 60).await?;
    let (_, message) = world.wait_for_condition(&name, "HubAcceptedManagedCluster", "False").await?;
    assert!(message.contains(&format!("belongs to cluster {other}")), "{message}");
    let kept = there(world.get("namespace", "", &name).await)?;
    assert_eq!(kept["metadata"]["labels"]["open-cluster-management.io/cluster-name"], other);
    assert_eq!(world.get("clusterrolebinding", "", &own(&name)).await, None);
    Ok(())
}

#[tokio::test]
async fn a_deleted_cluster_with_a_refused_name_says_that_its_works_hold_it_and_goes_when_they_are_gone() -> Result<()> {
    let (world, name) = (world().await?, "kube-node-lease");
    world.register(name).await?;
    world.patch(name, json!({"metadata": {"finalizers": [API_CLEANUP]}})).await?;
    world.create_work(name, "left", json!({})).await?;
    world.clusters().delete(name, &DeleteParams::default()).await?;
    let is_explained = || async {
        let (reason, message) = world.wait_for_condition(name, "Deleting", "False").await?;
        anyhow::Ok(reason == "ResourceRemaining" && message.contains("Delete the ManifestWorks of this cluster"))
    };
    eventually("the condition names what holds the cluster", is_explained).await?;
    assert!(world.get("manifestwork", name, "left").await.is_some(), "the namespace belongs to others");
    world.finish_work(name, "left").await?;
    world.plane.kubectl(&["delete", "manifestwork", "left", "-n", name]).await?;
    world.wait_until_gone("managedcluster", "", name).await
}
