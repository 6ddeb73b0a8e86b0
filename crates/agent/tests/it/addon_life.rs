//! What becomes of the identities of add-ons when registrations, add-ons and agents come and go.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use ocm_agent::AgentConfig;
use ocm_api::feature_gates;
use ocm_runtime::{Clock, feature_gates::FeatureGates};
use ocm_testing::eventually;
use serde_json::json;

use crate::{
    addon_world::{FAILED, KUBE_CLIENT, ROTATED, UPDATED, create_namespace},
    registration_world::World,
    running::reconciles_again,
};

/// As of an add-on whose manager has to clean up.
fn finalizers(list: &serde_json::Value) -> Patch<serde_json::Value> {
    Patch::Merge(json!({"metadata": {"finalizers": list}}))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_secret_goes_with_the_registration_and_with_the_addon_and_not_before() -> Result<()> {
    let world = World::new().await?;
    let (agent, namespace) = world.join_with_hello().await?;
    world.manage("hello", json!({"registrations": []})).await?;
    world.secret_gone(&namespace, "hello-hub-kubeconfig").await?;

    world.manage("hello", json!({"registrations": [world.kube_client("hello")]})).await?;
    world.issue("hello", &namespace, None).await?;
    world.addons().patch("hello", &PatchParams::default(), &finalizers(&json!(["example.com/clean-up"]))).await?;
    let looks = agent.reconciles("addon-registration");
    world.delete_addon("hello").await?;
    // Its manager takes the registration away, and the agent keeps what there is all the same.
    world.manage("hello", json!({"registrations": []})).await?;
    eventually("the agent has seen it", || async { agent.reconciles("addon-registration") > looks }).await?;
    assert!(world.managed_secret(&namespace, "hello-hub-kubeconfig").await?.is_some(), "it may have to clean up");
    world.addons().patch("hello", &PatchParams::default(), &finalizers(&json!(null))).await?;
    world.secret_gone(&namespace, "hello-hub-kubeconfig").await?;
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn another_namespace_or_another_subject_takes_another_certificate_and_the_old_secret_goes() -> Result<()> {
    let world = World::new().await?;
    let agent = world.join(world.config(), Clock::System).await?;
    let (first, second) = (world.install_namespace("first").await?, world.install_namespace("second").await?);
    world.serve_addon("hello", &first).await?;
    world.manage("hello", json!({"namespace": second})).await?;
    world.secret_gone(&first, "hello-hub-kubeconfig").await?;
    let old = world.issue("hello", &second, None).await?;

    let mut other = world.kube_client("hello");
    other["subject"]["user"] = json!("somebody-else");
    world.manage("hello", json!({"registrations": [other]})).await?;
    let new = world.issue("hello", &second, Some(&old)).await?;
    assert_eq!(world.who_is(&new).await?.username.as_deref(), Some("somebody-else"));
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registration_that_cannot_be_served_is_refused_by_name() -> Result<()> {
    let world = World::new().await?;
    let agent = world.join(world.config(), Clock::System).await?;
    // Its secret would be the one the agent takes its bootstrap kubeconfig from.
    world.register_addon("bootstrap", &world.namespace).await?;
    let message = world.addon_condition("bootstrap", ROTATED, "False", FAILED).await?.message;
    assert!(message.contains("bootstrap-hub-kubeconfig"), "{message}");
    assert!(world.addon_requests("bootstrap").await?.is_empty());
    world.delete_addon("bootstrap").await?;
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_restart_the_secrets_of_addons_are_enough_and_are_reported() -> Result<()> {
    let world = World::new().await?;
    let (agent, namespace) = world.join_with_hello().await?;
    agent.stop().await?;
    // As if it had been killed before it could report that.
    world.manage("hello", json!({"conditions": []})).await?;
    let written = world.hub_writes()?.len();

    let agent = world.start().await?;
    world.addon_condition("hello", ROTATED, "True", UPDATED).await?;
    assert_eq!(world.addon_requests("hello").await?.len(), 1);
    world.delete_addon("hello").await?;
    world.secret_gone(&namespace, "hello-hub-kubeconfig").await?;
    let writes = world.hub_writes()?;
    assert!(!writes[written..].iter().any(|write| write.contains("certificatesigning")), "{writes:?}");
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_is_taken_back_with_the_registration() -> Result<()> {
    let world = World::new().await?;
    let (agent, _) = world.join_with_hello().await?;
    let twice = json!([world.kube_client("hello"), {"signerName": KUBE_CLIENT}]);
    world.manage("hello", json!({"registrations": twice})).await?;
    let message = world.addon_condition("hello", ROTATED, "False", FAILED).await?.message;
    assert!(message.contains("more than once"), "{message}");
    world.manage("hello", json!({"registrations": [world.kube_client("hello")]})).await?;
    world.addon_condition("hello", ROTATED, "True", UPDATED).await?;
    assert_eq!(world.addon_requests("hello").await?.len(), 1, "its certificate has been there all the time");
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_deleted_while_the_agent_restarts_keeps_its_secret_until_it_is_gone() -> Result<()> {
    let world = World::new().await?;
    let (agent, namespace) = world.join_with_hello().await?;
    agent.stop().await?;
    world.addons().patch("hello", &PatchParams::default(), &finalizers(&json!(["example.com/clean-up"]))).await?;
    world.delete_addon("hello").await?;

    let agent = world.start().await?;
    eventually("the agent has seen it", || async { agent.reconciles("addon-registration") > 0 }).await?;
    assert!(world.managed_secret(&namespace, "hello-hub-kubeconfig").await?.is_some(), "it may have to clean up");
    world.addons().patch("hello", &PatchParams::default(), &finalizers(&json!(null))).await?;
    world.secret_gone(&namespace, "hello-hub-kubeconfig").await?;
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hosted_addon_is_served_where_the_agent_runs_and_any_other_on_the_managed_cluster() -> Result<()> {
    let (world, managed) = World::hosted().await?;
    let agent = world.join(world.attentive(), Clock::System).await?;
    let namespace = world.install_namespace("addons").await?;
    create_namespace(&managed, &namespace).await?;
    world.create_addon("hosted", &namespace).await?;
    world.host_addon("hosted", "here").await?;
    world.manage("hosted", json!({"registrations": [world.kube_client("hosted")]})).await?;
    world.issue("hosted", &namespace, None).await?;
    world.register_addon("plain", &namespace).await?;
    world.approve(&world.open_request("plain").await?).await?;
    let there: Api<Secret> = Api::namespaced(managed.clone(), &namespace);
    eventually("the other one is there", || there.get_opt("plain-hub-kubeconfig")).await?;
    assert!(there.get_opt("hosted-hub-kubeconfig").await?.is_none());
    assert!(world.managed_secret(&namespace, "plain-hub-kubeconfig").await?.is_none());

    World::renew(&world.managed_client, &namespace, "hosted", Clock::System.now()).await?;
    World::renew(&managed, &namespace, "plain", Clock::System.now()).await?;
    for addon in ["hosted", "plain"] {
        world.addon_condition(addon, "Available", "True", "ManagedClusterAddOnLeaseUpdated").await?;
        world.delete_addon(addon).await?;
    }
    world.secret_gone(&namespace, "hosted-hub-kubeconfig").await?;
    eventually("the other one is gone", || async {
        anyhow::Ok(there.get_opt("plain-hub-kubeconfig").await?.is_none())
    })
    .await?;
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn with_the_gate_off_addons_are_left_alone() -> Result<()> {
    let world = World::new().await?;
    let off = [format!("{}=false", feature_gates::ADDON_MANAGEMENT)];
    let gates = FeatureGates::parse(&ocm_agent::agent::known_gates(), &off)?;
    let config = AgentConfig {
        feature_gates: gates,
        cluster_healthcheck_period: Duration::from_millis(50),
        ..world.attentive()
    };
    let agent = world.join(config, Clock::System).await?;
    world.register_addon("hello", "default").await?;
    reconciles_again(&agent, "cluster-status", 2).await?;
    assert_eq!((agent.reconciles("addon-registration"), agent.reconciles("addon-health")), (0, 0));
    assert!(!agent.context.metrics().encode().contains("managedclusteraddons"), "nothing is watched");
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_without_addons_is_fine() -> Result<()> {
    let world = World::without_addons().await?;
    let agent = world.join(world.config(), Clock::System).await?;
    eventually("the agent is ready", || async { agent.context.health().awaited().is_empty() }).await?;
    assert!(!agent.context.metrics().encode().contains("managedclusteraddons"), "nothing is watched");
    agent.stop().await
}
