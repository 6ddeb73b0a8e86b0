//! What the agent reports.

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::{Namespace, Node};
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use ocm_agent::{AgentConfig, agent::known_gates};
use ocm_api::{
    about::v1alpha1::{ClusterProperty, ClusterPropertySpec},
    cluster::v1alpha1::{ClusterClaim, ClusterClaimSpec},
    labels::SPOKE_ONLY,
};
use ocm_runtime::{Clock, feature_gates::FeatureGates};
use ocm_testing::eventually;
use serde_json::json;

use crate::{
    registration_world::{World, install_crds},
    running::reconciles_again,
};

#[tokio::test(flavor = "multi_thread")]
async fn claims_and_nodes_are_reported_as_they_come() -> Result<()> {
    let world = World::new().await?;
    let agent = world.join(world.config(), Clock::System).await?;
    let claims: Api<ClusterClaim> = Api::all(world.managed_client.clone());
    let name = format!("{}.example.com", world.cluster);
    let claim = ClusterClaim::new(&name, ClusterClaimSpec { value: Some("x".into()) });
    claims.create(&PostParams::default(), &claim).await?;
    let nodes: Api<Node> = Api::all(world.managed_client.clone());
    let mut node = Node::default();
    node.metadata.name = Some(format!("{}-node", world.cluster));
    nodes.create(&PostParams::default(), &node).await?;
    let resource = format!("example.com/{}", world.cluster);
    let resources = json!({"status": {"capacity": {&resource: "2k"}, "allocatable": {&resource: "1k"}}});
    let node_name = node.metadata.name.context("no name")?;
    nodes.patch_status(&node_name, &PatchParams::default(), &Patch::Merge(resources)).await?;

    eventually("the hub knows both", || async {
        let status = world.managed_cluster().await?.status.unwrap_or_default();
        let claimed = status.cluster_claims.iter().any(|claim| claim.name == name && claim.value == "x");
        let capacity = status.capacity.get(&resource).map(|quantity| quantity.0.as_str());
        let allocatable = status.allocatable.get(&resource).map(|quantity| quantity.0.as_str());
        anyhow::Ok(claimed && capacity == Some("2k") && allocatable == Some("1k"))
    })
    .await?;
    nodes.delete(&node_name, &kube::api::DeleteParams::default()).await?;
    claims.delete(&name, &kube::api::DeleteParams::default()).await?;
    agent.stop().await
}

fn with_properties(world: &World) -> Result<AgentConfig> {
    let feature_gates = FeatureGates::parse(&known_gates(), &["ClusterProperty=true".to_owned()])?;
    Ok(AgentConfig { feature_gates, ..world.config() })
}

/// Names that start with that of the cluster, with their values.
async fn reported_claims(world: &World) -> Result<Vec<(String, String)>> {
    let status = world.managed_cluster().await?.status.unwrap_or_default();
    let claims = status.cluster_claims.into_iter().map(|claim| (claim.name, claim.value));
    Ok(claims.filter(|(name, _)| name.starts_with(&world.cluster)).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn properties_are_reported_with_claims_and_win_over_them() -> Result<()> {
    let world = World::new().await?;
    install_crds(world.managed, &["clusterproperties"]).await?;
    let agent = world.join(with_properties(&world)?, Clock::System).await?;
    let claims: Api<ClusterClaim> = Api::all(world.managed_client.clone());
    let properties: Api<ClusterProperty> = Api::all(world.managed_client.clone());
    let name = |suffix: &str| format!("{}.{suffix}.example.com", world.cluster);
    for suffix in ["a", "b"] {
        let claim = ClusterClaim::new(name(suffix), ClusterClaimSpec { value: Some("claim".into()) });
        claims.create(&PostParams::default(), &claim).await?;
    }
    let property =
        |suffix: &str, value: &str| ClusterProperty::new(name(suffix), ClusterPropertySpec { value: value.into() });
    let mut hidden = property("hidden", "here");
    hidden.metadata.labels = Some([(SPOKE_ONLY.to_owned(), String::new())].into());
    // The hub would refuse the whole status with a value as long as this.
    for property in [property("b", "property"), property("c", "property"), hidden, property("long", &"x".repeat(1025))]
    {
        properties.create(&PostParams::default(), &property).await?;
    }

    let expected =
        [("a", "claim"), ("b", "property"), ("c", "property")].map(|(suffix, value)| (name(suffix), value.to_owned()));
    eventually("the hub knows them", || async { anyhow::Ok(reported_claims(&world).await? == expected) }).await?;
    properties.delete(&name("b"), &kube::api::DeleteParams::default()).await?;
    eventually("the claim of that name is reported again", || async {
        anyhow::Ok(reported_claims(&world).await?.contains(&(name("b"), "claim".to_owned())))
    })
    .await?;
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_without_the_definition_of_properties_is_reported_without_them() -> Result<()> {
    let world = World::bare().await?;
    let agent = world.join(with_properties(&world)?, Clock::System).await?;
    let status = world.managed_cluster().await?.status.context("no status")?;
    assert!(status.version.kubernetes.is_some() && status.cluster_claims.is_empty());
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn namespaces_of_cluster_sets_are_kept_and_let_go() -> Result<()> {
    let world = World::alone().await?;
    let agent = world.join(world.config(), Clock::System).await?;
    let name = format!("{}-managed", world.cluster);
    world.patch_status(json!({"managedNamespaces": [{"clusterSet": "set1", "name": name}]})).await?;
    eventually("the entry reports that it exists", || async {
        let entries = world.managed_cluster().await?.status.unwrap_or_default().managed_namespaces;
        anyhow::Ok(
            entries
                .first()
                .is_some_and(|entry| entry.conditions.iter().any(|found| found.reason == "NamespaceApplied")),
        )
    })
    .await?;
    assert_eq!(label_of(&world, &name).await?.as_deref(), Some("true"));

    world.patch_status(json!({"managedNamespaces": null})).await?;
    eventually("its label is false", || async {
        anyhow::Ok(label_of(&world, &name).await?.as_deref() == Some("false"))
    })
    .await?;
    agent.stop().await
}

async fn label_of(world: &World, name: &str) -> Result<Option<String>> {
    let namespaces: Api<Namespace> = Api::all(world.managed_client.clone());
    let labels = namespaces.get(name).await?.metadata.labels.unwrap_or_default();
    let hash = ocm_agent::work::hub_hash(&world.hub.url());
    Ok(labels.get(&ocm_api::labels::managed_namespace(&hash)).cloned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_is_denied_later_is_no_longer_reported() -> Result<()> {
    let world = World::bare().await?;
    let config = world.config();
    let agent = world.join(config, Clock::System).await?;
    let looks = agent.reconciles("cluster-lease");
    let denied = json!({
        "type": "HubAcceptedManagedCluster", "status": "False", "reason": "HubClusterAdminDenied",
        "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    world.patch_status(json!({"conditions": [denied]})).await?;
    eventually("the agent has seen it", || async { agent.reconciles("cluster-lease") > looks }).await?;
    reconciles_again(&agent, "cluster-status", 0).await?;
    let conditions = world.managed_cluster().await?.status.unwrap_or_default().conditions;
    assert_eq!(conditions.len(), 1, "nothing is written back: {conditions:?}");
    agent.stop().await
}
