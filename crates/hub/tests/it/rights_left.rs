//! Rights that a cluster has without being accepted, regardless of its status.

use anyhow::Result;
use kube::api::{Patch, PatchParams};
use ocm_testing::{eventually, unique};
use serde_json::{Value, json};

use crate::support::{WORK_CLEANUP, World, there, world};

fn own(name: &str) -> String {
    format!("open-cluster-management:managedcluster:{name}")
}

/// The rights of an accepted cluster, as a former cluster of that name or a backup leaves them.
async fn create_rights(world: &World, cluster: &str) -> Result<()> {
    let label = json!({"open-cluster-management.io/cluster-name": cluster});
    let group = json!([{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group",
                        "name": format!("system:open-cluster-management:{cluster}")}]);
    let role_ref =
        |role: &str| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": own(role)});
    let object = |kind: &str, name: String, rest: Value| {
        let mut object = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind,
                                "metadata": {"name": name, "labels": label}});
        object
            .as_object_mut()
            .into_iter()
            .for_each(|object| object.extend(rest.as_object().cloned().unwrap_or_default()));
        object
    };
    let binding = |part: &str| {
        let mut binding = object(
            "RoleBinding",
            format!("{}:{part}", own(cluster)),
            json!({"roleRef": role_ref(part), "subjects": group}),
        );
        binding["metadata"]["namespace"] = json!(cluster);
        binding
    };
    let mut work = binding("work");
    work["metadata"]["finalizers"] = json!([WORK_CLEANUP]);
    let rules = json!({"rules": [{"apiGroups": ["cluster.open-cluster-management.io"], "resources": ["managedclusters"],
                                  "verbs": ["get", "update"]}]});
    let all = [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": cluster, "labels": label}}),
        object("ClusterRole", own(cluster), rules),
        object("ClusterRoleBinding", own(cluster), json!({"roleRef": role_ref(cluster), "subjects": group})),
        binding("registration"),
        work,
    ];
    let list = json!({"apiVersion": "v1", "kind": "List", "items": all});
    world.plane.kubectl_with_input(&["create", "-f", "-"], &list.to_string()).await.map(|_| ())
}

async fn bindings_are_gone(world: &World, cluster: &str) -> Result<()> {
    for part in ["registration", "work"] {
        world.wait_until_gone("rolebinding", cluster, &format!("{}:{part}", own(cluster))).await?;
    }
    Ok(())
}

/// The cluster has lost everything but the right to read its own ManagedCluster, and its condition reports it.
async fn is_denied(world: &World, cluster: &str) -> Result<()> {
    bindings_are_gone(world, cluster).await?;
    let (reason, _) = world.wait_for_condition(cluster, "HubAcceptedManagedCluster", "False").await?;
    assert_eq!(reason, "HubClusterAdminDenied");
    let role = there(world.get("clusterrole", "", &own(cluster)).await)?;
    assert_eq!(role["rules"][0]["verbs"], json!(["get", "list", "watch"]));
    Ok(())
}

#[tokio::test]
async fn a_denied_cluster_whose_agent_removes_the_condition_again_and_again_loses_its_rights() -> Result<()> {
    let world = world().await?;
    let name = unique("forgetful");
    world.accepted(&name).await?;
    let forget = Patch::Merge(json!({"status": {"conditions": []}}));
    let remove_condition = || async { world.clusters().patch_status(&name, &PatchParams::default(), &forget).await };
    remove_condition().await?;
    world.set_accepted(&name, false).await?;
    eventually("the bindings are gone", || async {
        remove_condition().await?;
        let binding = world.get("rolebinding", &name, &format!("{}:registration", own(&name))).await;
        Ok::<_, kube::Error>(binding.is_none())
    })
    .await?;
    is_denied(&world, &name).await
}

#[tokio::test]
async fn a_denied_cluster_that_a_backup_brings_back_without_status_loses_its_rights() -> Result<()> {
    let world = world().await?;
    let name = unique("restored");
    world.register(&name).await?;
    create_rights(&world, &name).await?;
    is_denied(&world, &name).await
}

#[tokio::test]
async fn rights_of_a_cluster_that_does_not_exist_are_removed() -> Result<()> {
    let world = world().await?;
    let name = unique("former");
    create_rights(&world, &name).await?;
    bindings_are_gone(&world, &name).await?;
    for resource in ["clusterrole", "clusterrolebinding"] {
        world.wait_until_gone(resource, "", &own(&name)).await?;
    }
    assert!(world.get("namespace", "", &name).await.is_some());
    Ok(())
}
