//! Clusters come, are let in, are denied and go.

use anyhow::Result;
use kube::{ResourceExt as _, api::DeleteParams};
use ocm_testing::{eventually, unique};
use serde_json::{Value, json};

use crate::support::{API_CLEANUP, CLEANUP, WORK_CLEANUP, content, there, world};

fn own(name: &str) -> String {
    format!("open-cluster-management:managedcluster:{name}")
}

fn subjects(name: &str) -> Value {
    json!([
        {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": format!("system:open-cluster-management:{name}")},
        {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": format!("open-cluster-management:{name}")},
    ])
}

#[tokio::test]
async fn a_new_cluster_gets_the_finalizer_and_the_unreachable_taint_and_nothing_else() -> Result<()> {
    let world = world().await?;
    let name = unique("new");
    world.register(&name).await?;
    let cluster = eventually("finalizer and taint are there", || async {
        let cluster = world.clusters().get(&name).await?;
        let done = !cluster.spec.taints.is_empty() && !cluster.finalizers().is_empty();
        Ok::<_, kube::Error>(done.then_some(cluster))
    })
    .await?;
    assert_eq!(cluster.finalizers(), [CLEANUP]);
    let mut taints = serde_json::to_value(&cluster.spec.taints)?;
    let added = taints[0]["timeAdded"].take();
    assert!(added.as_str().is_some_and(|time| time.ends_with('Z') && !time.contains('.')), "{added}");
    let unreachable = json!({
        "key": "cluster.open-cluster-management.io/unreachable", "effect": "NoSelect", "timeAdded": null,
    });
    assert_eq!(taints, json!([unreachable]));
    assert!(cluster.status.is_none());
    // Another cluster is let in meanwhile; this one still has nothing.
    world.accepted(&unique("other")).await?;
    assert_eq!(world.get("namespace", "", &name).await, None);
    assert_eq!(world.get("clusterrole", "", &own(&name)).await, None);
    Ok(())
}

#[tokio::test]
async fn an_accepted_cluster_gets_exactly_its_namespace_and_rights() -> Result<()> {
    let world = world().await?;
    let name = unique("accepted");
    world.register(&name).await?;
    world.set_accepted(&name, true).await?;
    world.wait_for_accepted(&name).await?;
    let labels = json!({"open-cluster-management.io/cluster-name": name});
    let namespace = content(&there(world.get("namespace", "", &name).await)?);
    assert_eq!(namespace["metadata"]["labels"]["open-cluster-management.io/cluster-name"], name);
    assert_eq!(namespace["metadata"].get("annotations"), None);
    let binding = content(&there(world.get("clusterrolebinding", "", &own(&name)).await)?);
    assert_eq!(binding["metadata"], json!({"name": own(&name), "labels": labels}));
    assert_eq!(binding["subjects"], subjects(&name));
    assert_eq!(binding["roleRef"]["name"], own(&name));
    for (part, finalizers) in [("registration", Value::Null), ("work", json!([WORK_CLEANUP]))] {
        let part_name = format!("{}:{part}", own(&name));
        let binding = content(&there(world.get("rolebinding", &name, &part_name).await)?);
        assert_eq!(binding["metadata"]["labels"], labels);
        assert_eq!(binding["metadata"]["finalizers"], finalizers);
        assert_eq!(binding["subjects"], subjects(&name));
        assert_eq!(binding["roleRef"]["name"], format!("open-cluster-management:managedcluster:{part}"));
    }
    let lease = content(&there(world.get("lease", &name, "managed-cluster-lease").await)?);
    assert_eq!(lease["metadata"]["labels"], labels);
    assert_eq!(lease["spec"]["holderIdentity"], "managed-cluster-lease");
    assert_eq!(lease["spec"].get("leaseDurationSeconds"), None);
    let mut finalizers = world.clusters().get(&name).await?.finalizers().to_vec();
    finalizers.sort();
    assert_eq!(finalizers, [API_CLEANUP, CLEANUP]);
    let (reason, _) = world.wait_for_condition(&name, "HubAcceptedManagedCluster", "True").await?;
    assert_eq!(reason, "HubClusterAdminAccepted");
    Ok(())
}

#[tokio::test]
async fn the_roles_that_all_clusters_share_are_there_while_a_cluster_is() -> Result<()> {
    let world = world().await?;
    world.accepted(&unique("sharing")).await?;
    for (part, rules) in [("registration", 4), ("work", 3)] {
        let role = there(world.get("clusterrole", "", &own(part)).await)?;
        assert_eq!(role["metadata"]["labels"], json!({"open-cluster-management.io/cluster-name": ""}));
        assert_eq!(role["rules"].as_array().map(Vec::len), Some(rules));
    }
    Ok(())
}

#[tokio::test]
async fn a_denied_cluster_loses_its_rights_and_an_accepted_one_gets_them_back() -> Result<()> {
    let world = world().await?;
    let name = unique("denied");
    world.accepted(&name).await?;
    world.set_accepted(&name, false).await?;
    let (reason, _) = world.wait_for_condition(&name, "HubAcceptedManagedCluster", "False").await?;
    assert_eq!(reason, "HubClusterAdminDenied");
    for part in ["registration", "work"] {
        assert_eq!(world.get("rolebinding", &name, &format!("{}:{part}", own(&name))).await, None);
    }
    let role = there(world.get("clusterrole", "", &own(&name)).await)?;
    assert_eq!(role["rules"].as_array().map(Vec::len), Some(1));
    assert_eq!(role["rules"][0]["verbs"], json!(["get", "list", "watch"]));
    assert!(world.get("namespace", "", &name).await.is_some());
    world.set_accepted(&name, true).await?;
    world.wait_for_condition(&name, "HubAcceptedManagedCluster", "True").await?;
    assert!(world.get("rolebinding", &name, &format!("{}:work", own(&name))).await.is_some());
    Ok(())
}

#[tokio::test]
async fn a_deleted_cluster_takes_its_rights_with_it_and_leaves_its_namespace() -> Result<()> {
    let world = world().await?;
    let name = unique("deleted");
    world.accepted(&name).await?;
    world.clusters().delete(&name, &DeleteParams::default()).await?;
    world.wait_until_gone("managedcluster", "", &name).await?;
    for resource in ["clusterrole", "clusterrolebinding"] {
        assert_eq!(world.get(resource, "", &own(&name)).await, None);
    }
    for part in ["registration", "work"] {
        assert_eq!(world.get("rolebinding", &name, &format!("{}:{part}", own(&name))).await, None);
    }
    let namespace = there(world.get("namespace", "", &name).await)?;
    assert_eq!(namespace["status"]["phase"], "Active");
    assert!(world.get("lease", &name, "managed-cluster-lease").await.is_some());
    Ok(())
}

#[tokio::test]
async fn a_deleted_cluster_waits_for_its_works_which_are_deleted_in_order_of_priority() -> Result<()> {
    let world = world().await?;
    let name = unique("waiting");
    world.accepted(&name).await?;
    world.create_work(&name, "first", json!({})).await?;
    world.create_work(&name, "last", json!({"open-cluster-management.io/cleanup-priority": "50"})).await?;
    world.clusters().delete(&name, &DeleteParams::default()).await?;
    let (reason, message) = world.wait_for_condition(&name, "Deleting", "False").await?;
    assert_eq!(reason, "ResourceRemaining");
    assert!(message.contains("2 manifestworks"), "{message}");
    let is_going = |work: Option<Value>| work.is_some_and(|work| !work["metadata"]["deletionTimestamp"].is_null());
    assert!(is_going(world.get("manifestwork", &name, "first").await));
    assert!(!is_going(world.get("manifestwork", &name, "last").await));
    world.wait_until_gone("clusterrole", "", &own(&name)).await?;
    world.wait_until_gone("rolebinding", &name, &format!("{}:registration", own(&name))).await?;
    // The agent may still clean up.
    assert!(is_going(world.get("rolebinding", &name, &format!("{}:work", own(&name))).await));
    world.finish_work(&name, "first").await?;
    eventually("the last work is deleted", || async { is_going(world.get("manifestwork", &name, "last").await) })
        .await?;
    world.finish_work(&name, "last").await?;
    world.wait_until_gone("managedcluster", "", &name).await?;
    world.wait_until_gone("rolebinding", &name, &format!("{}:work", own(&name))).await
}

#[tokio::test]
async fn a_cluster_named_like_a_namespace_of_kubernetes_gets_no_rights() -> Result<()> {
    let world = world().await?;
    let name = unique("kube-cluster");
    world.create(&name, true, 60).await?;
    let (reason, message) = world.wait_for_condition(&name, "HubAcceptedManagedCluster", "False").await?;
    assert_eq!(reason, "Error");
    assert!(message.contains("under another name"), "{message}");
    world.accepted(&unique("other")).await?;
    assert_eq!(world.get("namespace", "", &name).await, None);
    assert_eq!(world.get("clusterrole", "", &own(&name)).await, None);
    Ok(())
}

#[tokio::test]
async fn an_accepted_clusters_namespace_is_made_again_when_somebody_deletes_it() -> Result<()> {
    let world = world().await?;
    let name = unique("namespace");
    world.accepted(&name).await?;
    let uid = |namespace: Option<Value>| namespace.map(|namespace| namespace["metadata"]["uid"].clone());
    let before = uid(world.get("namespace", "", &name).await);
    world.plane.kubectl(&["delete", "namespace", &name]).await?;
    eventually("there is a new namespace with the binding for works", || async {
        let now = uid(world.get("namespace", "", &name).await);
        let binding = world.get("rolebinding", &name, &format!("{}:work", own(&name))).await;
        now.is_some() && now != before && binding.is_some()
    })
    .await?;
    world.wait_for_condition(&name, "HubAcceptedManagedCluster", "True").await?;
    Ok(())
}
