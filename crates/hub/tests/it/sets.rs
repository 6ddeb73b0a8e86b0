//! Cluster sets: the two that the hub maintains, and the conditions of all.

use anyhow::Result;
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use ocm_api::cluster::v1beta2::{ManagedClusterSet, ManagedClusterSetSpec};
use ocm_testing::{Seen, eventually, unique};
use serde_json::{Value, json};

use crate::support::{World, world};

fn sets(world: &World) -> Api<ManagedClusterSet> {
    Api::all(world.client.clone())
}

async fn patch(world: &World, set: &str, patch: Value) -> Result<()> {
    sets(world).patch(set, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}

async fn wait_for_selector(world: &World, set: &str, expected: &Value) -> Result<()> {
    eventually(&format!("set {set} selects {expected}"), || async {
        let selector = serde_json::to_value(sets(world).get(set).await?.spec.cluster_selector)?;
        anyhow::Ok(if selector == *expected { Seen::Settled(()) } else { Seen::NotYet(selector.to_string()) })
    })
    .await
}

#[tokio::test]
async fn the_two_sets_of_the_hub_are_created_restored_and_created_again() -> Result<()> {
    let world = world().await?;
    let exclusive = json!({"selectorType": "ExclusiveClusterSetLabel"});
    let all = json!({"selectorType": "LabelSelector", "labelSelector": {}});
    wait_for_selector(&world, "default", &exclusive).await?;
    wait_for_selector(&world, "global", &all).await?;
    let edited = json!({"spec": {"clusterSelector": {"labelSelector": {"matchLabels": {"a": "b"}}},
                                 "managedNamespaces": [{"name": "theirs"}]}});
    patch(&world, "global", edited).await?;
    wait_for_selector(&world, "global", &all).await?;
    assert_eq!(sets(&world).get("global").await?.spec.managed_namespaces.len(), 1);
    let before = sets(&world).get("default").await?.metadata.uid;
    sets(&world).delete("default", &DeleteParams::default()).await?;
    eventually("set default exists again", || async {
        Ok::<_, kube::Error>(sets(&world).get("default").await?.metadata.uid != before)
    })
    .await?;
    let own = json!({"metadata": {"annotations": {"cluster.open-cluster-management.io/autoupdate": "false"}},
                     "spec": {"clusterSelector": {"selectorType": "LabelSelector"}}});
    patch(&world, "default", own).await?;
    // Whatever the hub would do, it has done when it has restored the other one.
    patch(&world, "global", json!({"spec": {"clusterSelector": {"selectorType": "ExclusiveClusterSetLabel"}}})).await?;
    wait_for_selector(&world, "global", &all).await?;
    wait_for_selector(&world, "default", &json!({"selectorType": "LabelSelector"})).await?;
    let again = json!({"metadata": {"annotations": {"cluster.open-cluster-management.io/autoupdate": null}}});
    patch(&world, "default", again).await?;
    wait_for_selector(&world, "default", &exclusive).await
}

async fn wait_for_message(world: &World, set: &str, status: &str, message: &str) -> Result<()> {
    eventually(&format!("the condition of set {set} contains {message:?}"), || async {
        let conditions = sets(world).get(set).await?.status.unwrap_or_default().conditions;
        let is_reported =
            conditions.iter().any(|it| it.type_ == "ClusterSetEmpty" && it.status == status && it.message == message);
        Ok::<_, kube::Error>(if is_reported { Seen::Settled(()) } else { Seen::NotYet(format!("{conditions:?}")) })
    })
    .await
}

#[tokio::test]
async fn a_set_counts_the_clusters_whose_label_names_it() -> Result<()> {
    let world = world().await?;
    let (set, one, two) = (unique("set"), unique("member"), unique("member"));
    let empty = ManagedClusterSet::new(&set, ManagedClusterSetSpec::default());
    sets(&world).create(&PostParams::default(), &empty).await?;
    wait_for_message(&world, &set, "True", "No ManagedCluster belongs to this set").await?;
    let joined = |set: Value| json!({"metadata": {"labels": {"cluster.open-cluster-management.io/clusterset": set}}});
    for name in [&one, &two] {
        world.register(name).await?;
        world.patch(name, joined(json!(set))).await?;
    }
    wait_for_message(&world, &set, "False", "2 ManagedClusters belong to this set").await?;
    world.patch(&one, joined(Value::Null)).await?;
    wait_for_message(&world, &set, "False", "1 ManagedCluster belongs to this set").await?;
    world.clusters().delete(&two, &DeleteParams::default()).await?;
    wait_for_message(&world, &set, "True", "No ManagedCluster belongs to this set").await
}
