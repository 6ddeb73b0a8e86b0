//! Tokens of add-ons. The tests play the hub, which keeps the service accounts.

use std::time::Duration;

use anyhow::{Context as _, Result};
use k8s_openapi::api::{
    authentication::v1::TokenRequest,
    core::v1::{Secret, ServiceAccount},
};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use ocm_agent::AgentConfig;
use ocm_api::addon::v1alpha1::KubeClientDriver;
use ocm_runtime::Clock;
use ocm_testing::eventually;
use serde_json::json;

use crate::{
    addon_world::{FAILED, KUBE_CLIENT, ROTATED, UPDATED, texts},
    registration_world::{World, clock, later},
    running::Running,
};

const REFRESHED: &str = "TokenRefreshed";
const NEW: &str = "AddonTokenRefreshed";
const NONE: &str = "TokenCreationFailed";

/// What a hub keeps for the tokens of the add-on `hello`.
const OBJECTS: &str = r#"
apiVersion: v1
kind: ServiceAccount
metadata: {name: hello-agent, namespace: CLUSTER}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: hello-token-role, namespace: CLUSTER}
rules:
- {apiGroups: [""], resources: [serviceaccounts/token], resourceNames: [hello-agent], verbs: [create]}
- {apiGroups: [""], resources: [serviceaccounts/token], verbs: [subscribe]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: hello-token-role, namespace: CLUSTER}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: hello-token-role}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:open-cluster-management:CLUSTER"}]
"#;

impl World {
    fn with_tokens(&self) -> AgentConfig {
        AgentConfig { addon_driver: KubeClientDriver::Token, addon_token_seconds: 3600, ..self.config() }
    }

    fn accounts(&self) -> Api<ServiceAccount> {
        Api::namespaced(self.hub_client.clone(), &self.cluster)
    }

    /// Creates what is missing, as the hub does.
    async fn keep_account(&self) -> Result<()> {
        self.hub.apply_yaml(&OBJECTS.replace("CLUSTER", &self.cluster)).await
    }

    /// Reports the service account, as the hub does; returns its uid.
    async fn report_account(&self) -> Result<String> {
        let uid = self.accounts().get("hello-agent").await?.metadata.uid.context("no uid")?;
        let message = format!("ServiceAccount {}/hello-agent (UID: {uid}) is ready", self.cluster);
        let condition = json!({"type": "TokenInfrastructureReady", "status": "True", "reason": "TokenInfrastructureReady",
            "message": message, "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let mut conditions = self.addon_conditions("hello").await?;
        conditions.retain(|condition| condition.type_ != "TokenInfrastructureReady");
        conditions.push(serde_json::from_value(condition)?);
        self.manage("hello", json!({"conditions": conditions})).await?;
        Ok(uid)
    }

    /// Waits until the secret of `hello` holds another token than `old`.
    async fn token_secret(&self, namespace: &str, old: Option<&Secret>) -> Result<Secret> {
        let token = |secret: &Secret| secret.data.as_ref().and_then(|data| data.get("token").cloned());
        eventually("the secret holds a new token", || async {
            let found = self.managed_secret(namespace, "hello-hub-kubeconfig").await?;
            anyhow::Ok(found.filter(|found| token(found).is_some() && token(found) != old.and_then(token)))
        })
        .await
    }

    /// An agent whose add-on `hello` has its token; with the namespace and the secret.
    async fn join_with_token(&self, clock: Clock) -> Result<(Running, String, Secret)> {
        let agent = self.join(self.with_tokens(), clock).await?;
        let namespace = self.install_namespace("hello").await?;
        self.register_addon("hello", &namespace).await?;
        self.keep_account().await?;
        self.report_account().await?;
        let secret = self.token_secret(&namespace, None).await?;
        self.addon_condition("hello", REFRESHED, "True", NEW).await?;
        Ok((agent, namespace, secret))
    }

    fn account_user(&self) -> String {
        format!("system:serviceaccount:{}:hello-agent", self.cluster)
    }

    async fn token_requests(&self) -> Result<usize> {
        let writes = self.hub_writes()?;
        Ok(writes.iter().filter(|write| *write == "create serviceaccounts/token").count())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_addon_gets_a_token_with_as_few_writes_as_can_be() -> Result<()> {
    let world = World::new().await?;
    let agent = world.join(world.with_tokens(), Clock::System).await?;
    let namespace = world.install_namespace("hello").await?;
    world.register_addon("hello", &namespace).await?;
    let status = eventually("the status names the service account", || async {
        let status = world.addon("hello").await?.status.unwrap_or_default();
        anyhow::Ok(Some(status).filter(|status| status.kube_client_driver == Some(KubeClientDriver::Token)))
    })
    .await?;
    let subject = status.registrations[0].subject.clone().context("no subject")?;
    assert_eq!((subject.user, subject.groups), (world.account_user(), Vec::new()));
    eventually("the agent has looked", || async { agent.reconciles("addon-token") > 0 }).await?;
    assert_eq!(world.token_requests().await?, 0, "the hub has no service account yet");

    world.keep_account().await?;
    let uid = world.report_account().await?;
    let secret = world.token_secret(&namespace, None).await?;
    let data = texts(&secret);
    assert_eq!(data.keys().copied().collect::<Vec<_>>(), ["cluster-name", "kubeconfig", "token"]);
    assert_eq!(data["cluster-name"], world.cluster);
    let own = world.secret().await?.context("the agent has no secret")?["kubeconfig"].clone();
    let user = "    client-certificate: tls.crt\n    client-key: tls.key\n";
    assert_eq!(data["kubeconfig"], own.replace(user, "    tokenFile: token\n"));
    assert_eq!((secret.type_.as_deref(), &secret.metadata.labels), (Some("Opaque"), &None));
    let known = world.who_is(&secret).await?;
    assert_eq!((known.username, known.uid), (Some(world.account_user()), Some(uid)));

    let message = world.addon_condition("hello", REFRESHED, "True", NEW).await?.message;
    assert!(message.contains("expires at 2") && !message.contains(&data["token"]), "{message}");
    let on_addons =
        |write: &String| ["managedclusteraddons", "signing", "serviceaccounts"].iter().any(|kind| write.contains(kind));
    let written: Vec<_> = world.hub_writes()?.into_iter().filter(on_addons).collect();
    let status = "patch managedclusteraddons/status";
    assert_eq!(written, ["create serviceaccounts/token", status, status]);
    assert_eq!(world.managed_writes()?, ["create secrets", "create secrets"]);
    world.delete_addon("hello").await?;
    world.secret_gone(&namespace, "hello-hub-kubeconfig").await?;
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_replaced_when_the_service_account_was_created_again() -> Result<()> {
    let world = World::new().await?;
    let (agent, namespace, old) = world.join_with_token(Clock::System).await?;
    world.accounts().delete("hello-agent", &DeleteParams::default()).await?;
    world.keep_account().await?;
    let uid = world.report_account().await?;
    let new = world.token_secret(&namespace, Some(&old)).await?;
    assert_eq!(world.who_is(&new).await?.uid, Some(uid));
    assert_eq!(new.metadata.uid, old.metadata.uid, "it is the same secret");
    assert_eq!(world.token_requests().await?, 2);
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_renewed_when_a_fifth_of_its_life_is_left_and_a_deleted_secret_made_anew() -> Result<()> {
    let world = World::new().await?;
    let clock = clock();
    let (agent, namespace, _) = world.join_with_token(clock.clone()).await?;
    let secrets = Api::<Secret>::namespaced(world.managed_client.clone(), &namespace);
    // As one that was issued for ten minutes.
    let request: TokenRequest = serde_json::from_value(json!({"spec": {"audiences": [], "expirationSeconds": 600}}))?;
    let short = world.accounts().create_token_request("hello-agent", &PostParams::default(), &request).await?;
    let short = short.status.context("no token")?.token;
    let patch = Patch::Merge(json!({"stringData": {"token": short}}));
    let looks = agent.reconciles("addon-token");
    let old = secrets.patch("hello-hub-kubeconfig", &PatchParams::default(), &patch).await?;
    eventually("the agent has seen it", || async { agent.reconciles("addon-token") > looks }).await?;
    assert_eq!(world.token_requests().await?, 1, "all of its life is left");

    later(&clock, Duration::from_secs(500));
    let touch = Patch::Merge(json!({"metadata": {"annotations": {"note": "a fifth is left"}}}));
    secrets.patch("hello-hub-kubeconfig", &PatchParams::default(), &touch).await?;
    let new = world.token_secret(&namespace, Some(&old)).await?;
    assert_eq!(world.who_is(&new).await?.username, Some(world.account_user()));
    assert_eq!(world.token_requests().await?, 2);

    secrets.delete("hello-hub-kubeconfig", &DeleteParams::default()).await?;
    let again = world.token_secret(&namespace, Some(&new)).await?;
    assert_ne!(again.metadata.uid, new.metadata.uid);
    world.addon_condition("hello", REFRESHED, "True", NEW).await?;
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_right_is_reported_and_waited_for() -> Result<()> {
    let world = World::new().await?;
    let agent = world.join(world.with_tokens(), Clock::System).await?;
    let namespace = world.install_namespace("hello").await?;
    world.register_addon("hello", &namespace).await?;
    let account: ServiceAccount = serde_json::from_value(json!({"metadata": {"name": "hello-agent"}}))?;
    world.accounts().create(&PostParams::default(), &account).await?;
    world.report_account().await?;
    let message = world.addon_condition("hello", REFRESHED, "False", NONE).await?.message;
    assert!(message.contains("cannot create resource") && message.contains("hello-agent"), "{message}");
    world.keep_account().await?;
    world.token_secret(&namespace, None).await?;
    world.addon_condition("hello", REFRESHED, "True", NEW).await?;
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_restart_the_secret_with_the_token_is_enough_and_is_reported() -> Result<()> {
    let world = World::new().await?;
    let (agent, _, _) = world.join_with_token(Clock::System).await?;
    agent.stop().await?;
    let mut conditions = world.addon_conditions("hello").await?;
    conditions.retain(|condition| condition.type_ != REFRESHED);
    world.manage("hello", json!({"conditions": conditions})).await?;
    let agent = world.start_with(world.with_tokens(), Clock::System).await?;
    world.addon_condition("hello", REFRESHED, "True", NEW).await?;
    assert_eq!(world.token_requests().await?, 1);
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_with_the_other_driver_replaces_credentials_and_condition() -> Result<()> {
    let world = World::new().await?;
    let (agent, namespace) = world.join_with_hello().await?;
    let certificate = world.managed_secret(&namespace, "hello-hub-kubeconfig").await?.context("no secret")?;
    agent.stop().await?;

    let agent = world.start_with(world.with_tokens(), Clock::System).await?;
    eventually("the status names the driver", || async {
        let status = world.addon("hello").await?.status.unwrap_or_default();
        anyhow::Ok(status.kube_client_driver == Some(KubeClientDriver::Token))
    })
    .await?;
    assert_eq!(
        world.managed_secret(&namespace, "hello-hub-kubeconfig").await?.map(|it| it.data),
        Some(certificate.data)
    );
    world.keep_account().await?;
    world.report_account().await?;
    let token = world.token_secret(&namespace, None).await?;
    assert_eq!(texts(&token).keys().copied().collect::<Vec<_>>(), ["cluster-name", "kubeconfig", "token"]);
    world.addon_condition("hello", REFRESHED, "True", NEW).await?;
    assert!(!world.addon_conditions("hello").await?.iter().any(|condition| condition.type_ == ROTATED));
    agent.stop().await?;

    // The manager of this add-on never writes a subject again.
    let agent = world.start().await?;
    let secret = world.issue("hello", &namespace, Some(&token)).await?;
    assert_eq!(
        texts(&secret).keys().copied().collect::<Vec<_>>(),
        ["cluster-name", "kubeconfig", "tls.crt", "tls.key"]
    );
    world.addon_condition("hello", ROTATED, "True", UPDATED).await?;
    assert!(!world.addon_conditions("hello").await?.iter().any(|condition| condition.type_ == REFRESHED));
    assert_eq!(world.addon_requests("hello").await?.len(), 2);

    // One that keeps the former subject is told what it has to do.
    let account = json!({"signerName": KUBE_CLIENT, "subject": {"user": world.account_user()}});
    world.manage("hello", json!({"registrations": [account]})).await?;
    let message = world.addon_condition("hello", ROTATED, "False", FAILED).await?.message;
    assert!(message.contains(&world.account_user()) && message.contains("manager has to write"), "{message}");
    agent.stop().await
}
