//! ClusterProfiles in the namespaces that cluster sets are bound to.

use anyhow::Result;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use ocm_api::multicluster::v1alpha1::ClusterProfile;
use ocm_testing::{Seen, eventually, unique};
use serde_json::{Value, json};

use crate::{
    gated::gated_world,
    support::{World, content, there},
};

const SET: &str = "cluster.open-cluster-management.io/clusterset";

/// A namespace with these sets bound to it.
async fn namespace(world: &World, sets: &[&str]) -> Result<String> {
    let name = unique("tenant");
    world.plane.kubectl(&["create", "namespace", &name]).await?;
    for set in sets {
        bind(world, &name, set).await?;
    }
    Ok(name)
}

async fn bind(world: &World, namespace: &str, set: &str) -> Result<()> {
    let binding = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta2", "kind": "ManagedClusterSetBinding",
        "metadata": {"name": set, "namespace": namespace}, "spec": {"clusterSet": set},
    });
    world.plane.kubectl_with_input(&["create", "-f", "-"], &binding.to_string()).await.map(|_| ())
}

async fn unbind(world: &World, namespace: &str, set: &str) -> Result<()> {
    world.plane.kubectl(&["delete", "managedclustersetbinding", set, "-n", namespace]).await.map(|_| ())
}

async fn set(world: &World, selector: Value) -> Result<String> {
    let name = unique("set");
    let set = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta2", "kind": "ManagedClusterSet",
        "metadata": {"name": name}, "spec": {"clusterSelector": selector},
    });
    world.plane.kubectl_with_input(&["create", "-f", "-"], &set.to_string()).await?;
    Ok(name)
}

async fn exclusive_set(world: &World) -> Result<String> {
    set(world, json!({"selectorType": "ExclusiveClusterSetLabel"})).await
}

async fn label_set(world: &World, value: &str) -> Result<String> {
    let labels = json!({"matchLabels": {"colour": value}});
    set(world, json!({"selectorType": "LabelSelector", "labelSelector": labels})).await
}

async fn cluster(world: &World, labels: Value) -> Result<String> {
    let name = unique("profiled");
    world.accepted(&name).await?;
    label(world, &name, labels).await?;
    Ok(name)
}

async fn label(world: &World, cluster: &str, labels: Value) -> Result<()> {
    world.patch(cluster, json!({"metadata": {"labels": labels}})).await
}

fn profiles(world: &World, namespace: &str) -> Api<ClusterProfile> {
    Api::namespaced(world.client.clone(), namespace)
}

/// Waits until the namespace has the profiles of these clusters, and no others.
async fn wait_for(world: &World, namespace: &str, clusters: &[&str]) -> Result<()> {
    eventually(&format!("namespace {namespace} has profiles of {clusters:?}"), || async {
        let found = profiles(world, namespace).list(&Default::default()).await?;
        let names: Vec<_> = found.iter().map(ResourceExt::name_any).collect();
        Ok::<_, kube::Error>(if names == clusters { Seen::Settled(()) } else { Seen::NotYet(format!("{names:?}")) })
    })
    .await
}

/// Waits until a profile is as `is_done` wants it.
async fn wait_for_profile(
    world: &World,
    namespace: &str,
    name: &str,
    is_done: impl Fn(&ClusterProfile) -> bool,
) -> Result<ClusterProfile> {
    eventually("the profile is up to date", || async {
        let profile = profiles(world, namespace).get(name).await?;
        Ok::<_, kube::Error>(if is_done(&profile) {
            Seen::Settled(profile)
        } else {
            Seen::NotYet(format!("{profile:?}"))
        })
    })
    .await
}

#[tokio::test]
async fn a_cluster_has_a_profile_in_each_namespace_that_one_of_its_sets_is_bound_to() -> Result<()> {
    let world = gated_world().await?;
    let colour = unique("colour");
    let (one, other) = (exclusive_set(&world).await?, label_set(&world, &colour).await?);
    let (both, second) = (namespace(&world, &[&one, &other]).await?, namespace(&world, &[&other]).await?);
    let name = cluster(&world, json!({SET: one, "colour": colour})).await?;
    wait_for(&world, &both, &[&name]).await?;
    wait_for(&world, &second, &[&name]).await?;
    let profile = content(&there(world.get("clusterprofile", &both, &name).await)?);
    let labels = json!({
        "x-k8s.io/cluster-manager": "open-cluster-management",
        "open-cluster-management.io/cluster-name": name,
        "multicluster.x-k8s.io/clusterset": one,
    });
    assert_eq!(profile["metadata"], json!({"name": name, "namespace": both, "labels": labels}));
    assert_eq!(profile["spec"], json!({"displayName": name, "clusterManager": {"name": "open-cluster-management"}}));

    unbind(&world, &both, &one).await?;
    unbind(&world, &second, &other).await?;
    wait_for(&world, &second, &[]).await?;
    wait_for(&world, &both, &[&name]).await?;
    unbind(&world, &both, &other).await?;
    wait_for(&world, &both, &[]).await?;
    bind(&world, &both, &one).await?;
    wait_for(&world, &both, &[&name]).await
}

#[tokio::test]
async fn a_change_of_labels_a_deleted_cluster_and_a_deleted_set_count_at_once() -> Result<()> {
    let world = gated_world().await?;
    let (old, new) = (exclusive_set(&world).await?, exclusive_set(&world).await?);
    let (left, joined) = (namespace(&world, &[&old]).await?, namespace(&world, &[&new]).await?);
    let (mover, stayer) = (cluster(&world, json!({SET: old})).await?, cluster(&world, json!({SET: old})).await?);
    wait_for(&world, &left, &[&mover, &stayer]).await?;
    label(&world, &mover, json!({SET: new})).await?;
    wait_for(&world, &left, &[&stayer]).await?;
    wait_for(&world, &joined, &[&mover]).await?;
    let set_of = |profile: &ClusterProfile| profile.labels().get("multicluster.x-k8s.io/clusterset").cloned();
    wait_for_profile(&world, &joined, &mover, |profile| set_of(profile).as_ref() == Some(&new)).await?;
    world.clusters().delete(&mover, &DeleteParams::default()).await?;
    wait_for(&world, &joined, &[]).await?;
    world.plane.kubectl(&["delete", "managedclusterset", &old]).await?;
    wait_for(&world, &left, &[]).await
}

#[tokio::test]
async fn a_profile_says_what_the_cluster_says_and_is_restored() -> Result<()> {
    let world = gated_world().await?;
    let set = exclusive_set(&world).await?;
    let tenant = namespace(&world, &[&set]).await?;
    let name = cluster(&world, json!({SET: set})).await?;
    world.say_available(&name).await?;
    let status = json!({"status": {
        "version": {"kubernetes": "v1.36.3"}, "clusterClaims": [{"name": "id.k8s.io", "value": "7"}],
    }});
    world.clusters().patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await?;
    let is_done = |profile: &ClusterProfile| {
        let status = profile.status.clone().unwrap_or_default();
        let healthy = ocm_runtime::conditions::is_true(&status.conditions, "ControlPlaneHealthy");
        let properties = serde_json::to_value(&status.properties).unwrap_or_default();
        healthy
            && status.version.kubernetes.as_deref() == Some("v1.36.3")
            && properties == json!([{"name": "id.k8s.io", "value": "7"}])
    };
    let profile = wait_for_profile(&world, &tenant, &name, is_done).await?;
    let reason = profile.status.and_then(|status| Some(status.conditions.first()?.reason.clone()));
    assert_eq!(reason.as_deref(), Some("ManagedClusterAvailable"));

    let edit = json!({"metadata": {"labels": {"open-cluster-management.io/cluster-name": "other", "theirs": "x"}}});
    profiles(&world, &tenant).patch(&name, &PatchParams::default(), &Patch::Merge(edit)).await?;
    let label = |profile: &ClusterProfile| profile.labels().get("open-cluster-management.io/cluster-name").cloned();
    let restored = wait_for_profile(&world, &tenant, &name, |it| label(it).as_ref() == Some(&name)).await?;
    assert_eq!(restored.labels().get("theirs").map(String::as_str), Some("x"));
    profiles(&world, &tenant).delete(&name, &DeleteParams::default()).await?;
    eventually("the profile exists again", || async {
        Ok::<_, kube::Error>(
            profiles(&world, &tenant).get_opt(&name).await?.is_some_and(|it| it.uid() != restored.uid()),
        )
    })
    .await
}

#[tokio::test]
async fn a_profile_of_somebody_else_is_left_alone_and_reported_until_it_is_deleted() -> Result<()> {
    let world = gated_world().await?;
    let set = exclusive_set(&world).await?;
    let tenant = namespace(&world, &[]).await?;
    let name = cluster(&world, json!({SET: set})).await?;
    let theirs = json!({
        "apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ClusterProfile",
        "metadata": {"name": name, "namespace": tenant, "labels": {"x-k8s.io/cluster-manager": "other"}},
        "spec": {"displayName": "theirs", "clusterManager": {"name": "other"}},
    });
    world.plane.kubectl_with_input(&["create", "-f", "-"], &theirs.to_string()).await?;
    let before = profiles(&world, &tenant).get(&name).await?;
    bind(&world, &tenant, &set).await?;
    let field = format!("regarding.name={name}");
    eventually("an event names the profile", || async {
        let events = world
            .plane
            .kubectl(&["get", "events.events.k8s.io", "-n", &tenant, "--field-selector", &field, "-o", "json"])
            .await?;
        let events: Value = serde_json::from_str(&events)?;
        let event = events["items"].as_array().and_then(|items| items.first().cloned()).unwrap_or_default();
        let is_ours = event["reason"] == "ClusterProfileNameTaken" && event["type"] == "Warning";
        anyhow::Ok(if is_ours { Seen::Settled(()) } else { Seen::NotYet(events.to_string()) })
    })
    .await?;
    unbind(&world, &tenant, &set).await?;
    bind(&world, &tenant, &set).await?;
    let other = cluster(&world, json!({SET: set})).await?;
    eventually("another cluster has its profile", || async {
        Ok::<_, kube::Error>(profiles(&world, &tenant).get_opt(&other).await?.is_some())
    })
    .await?;
    assert_eq!(profiles(&world, &tenant).get(&name).await?, before);

    profiles(&world, &tenant).delete(&name, &DeleteParams::default()).await?;
    wait_for_profile(&world, &tenant, &name, |profile| profile.spec.cluster_manager.name == "open-cluster-management")
        .await?;
    Ok(())
}

#[tokio::test]
async fn a_profile_that_a_user_makes_in_the_hubs_name_tells_them_nothing() -> Result<()> {
    let world = gated_world().await?;
    let tenant = namespace(&world, &[]).await?;
    let name = cluster(&world, json!({})).await?;
    let forged = json!({
        "apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ClusterProfile",
        "metadata": {"name": name, "namespace": tenant, "labels": {
            "x-k8s.io/cluster-manager": "open-cluster-management", "open-cluster-management.io/cluster-name": name,
        }},
        "spec": {"clusterManager": {"name": "open-cluster-management"}},
    });
    world.plane.kubectl_with_input(&["create", "-f", "-"], &forged.to_string()).await?;
    wait_for(&world, &tenant, &[]).await?;
    let writes = ocm_testing::AuditLog::of(world.plane)?.all()?;
    let of_profile: Vec<_> = writes.iter().filter(|write| write.namespace == tenant && write.name == name).collect();
    assert!(!of_profile.iter().any(|write| write.to_string().contains("clusterprofiles/status")), "{of_profile:?}");
    Ok(())
}
