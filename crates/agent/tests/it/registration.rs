//! Joining.

use anyhow::{Context as _, Result};
use k8s_openapi::{
    ByteString,
    api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestSpec},
};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use ocm_agent::{AgentConfig, AgentError};
use ocm_api::{labels, leases, signers};
use ocm_runtime::{
    Clock,
    pki::{Bundle, PrivateKey, Subject, parse_request},
};
use ocm_testing::eventually;
use serde_json::json;

use crate::{
    registration_world::{World, name},
    running::reconciles_again,
};

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_asks_to_join_and_waits_for_approval() -> Result<()> {
    let world = World::bare().await?;
    let agent = world.start().await?;
    let request = world.request_count(1).await?.remove(0);

    let subject = parse_request(&request.spec.request.0)?;
    assert_eq!(subject.common_name, world.user());
    let group = format!("system:open-cluster-management:{}", world.cluster);
    assert!(subject.is_same_as(&Subject::new(
        world.user(),
        vec![group, "system:open-cluster-management:managed-clusters".into()],
    )));
    assert_eq!(request.metadata.generate_name, Some(format!("{}-", world.cluster)));
    assert_eq!(request.spec.signer_name, signers::KUBE_API_SERVER_CLIENT);
    assert_eq!(request.spec.usages.as_deref().unwrap_or_default(), signers::CLIENT_USAGES);
    assert_eq!(request.spec.expiration_seconds, None);
    let user = request.spec.username.as_deref().unwrap_or_default();
    assert!(user.ends_with("agent-registration-bootstrap"), "{user}");
    let cluster =
        eventually("the cluster is created", || async { world.clusters().get_opt(&world.cluster).await }).await?;
    assert!(!cluster.spec.hub_accepts_client);
    assert_eq!(cluster.spec.lease_duration_seconds, Some(60), "the default of the hub");

    assert_eq!(world.secret().await?, None);
    assert_eq!(world.own_requests().await?.len(), 1);
    assert_eq!(world.bootstrap_writes()?, ["create managedclusters"]);
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn once_approved_it_joins_with_as_few_writes_as_can_be() -> Result<()> {
    let world = World::bare().await?;
    let config = AgentConfig { cluster_healthcheck_period: std::time::Duration::from_millis(200), ..world.config() };
    let agent = world.join(config, Clock::System).await?;
    eventually("the lease is renewed", || async {
        anyhow::Ok(world.lease().await?.spec.is_some_and(|spec| spec.renew_time.is_some()))
    })
    .await?;
    let event = eventually("an event is written", || async { anyhow::Ok(world.events().await?.pop()) }).await?;

    let status = world.managed_cluster().await?.status.context("no status")?;
    let types: Vec<_> = status.conditions.iter().map(|condition| (&*condition.type_, &*condition.reason)).collect();
    assert_eq!(
        types,
        [
            ("HubAcceptedManagedCluster", "HubClusterAdminAccepted"),
            ("ManagedClusterJoined", "ManagedClusterJoined"),
            ("ManagedClusterConditionAvailable", "ManagedClusterAvailable"),
        ]
    );
    assert_eq!(status.version.kubernetes, Some(world.managed_client.apiserver_version().await?.git_version));
    assert!(status.capacity.is_empty() && status.cluster_claims.is_empty());
    assert_eq!((event.reason.as_deref(), event.type_.as_deref()), (Some("Available"), Some("Normal")));
    assert_eq!(event.reporting_instance.as_deref(), Some("klusterlet-agent-vm"));

    // Many looks later nothing more has been written.
    reconciles_again(&agent, "cluster-status", 10).await?;
    assert_eq!(world.hub_writes()?, ["create events", "patch managedclusters/status", "update leases"]);
    assert_eq!(world.managed_writes()?, ["create secrets"]);
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_secret_holds_what_every_ocm_agent_keeps() -> Result<()> {
    let world = World::new().await?;
    let agent = world.join(world.config(), Clock::System).await?;
    let secret = world.secret().await?.context("no secret")?;
    let keys: Vec<_> = secret.keys().map(String::as_str).collect();
    assert_eq!(keys, ["agent-name", "cluster-name", "kubeconfig", "tls.crt", "tls.key"]);
    assert_eq!((&*secret["agent-name"], &secret["cluster-name"]), ("9hdnf", &world.cluster));
    assert!(secret["tls.key"].starts_with("-----BEGIN EC PRIVATE KEY-----\n"));
    Bundle::parse(secret["tls.crt"].as_bytes())?.check_key(&secret["tls.key"])?;

    let bootstrap = serde_json::to_value(world.bootstrap().await?)?;
    let authority = bootstrap["clusters"][0]["cluster"]["certificate-authority-data"].as_str().context("no CA")?;
    let expected = format!(
        "apiVersion: v1\nclusters:\n- cluster:\n    certificate-authority-data: {authority}\n    server: {}\n  name: hub\n\
         contexts:\n- context:\n    cluster: hub\n    namespace: configuration\n    user: default-auth\n  \
         name: default-context\ncurrent-context: default-context\nkind: Config\nusers:\n- name: default-auth\n  user:\n    \
         client-certificate: tls.crt\n    client-key: tls.key\n",
        world.hub.url()
    );
    assert_eq!(secret["kubeconfig"], expected);
    for (key, value) in &secret {
        assert_eq!(&std::fs::read_to_string(world.hub_dir().join(key))?, value, "{key}");
    }
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn its_secret_may_have_another_name() -> Result<()> {
    let world = World::new().await?;
    let config = AgentConfig { hub_kubeconfig_secret: "own".into(), ..world.config() };
    world.join(config.clone(), Clock::System).await?.stop().await?;
    assert!(world.secrets().get("own").await?.data.is_some_and(|data| data.contains_key("tls.key")));
    assert_eq!(world.secret().await?, None);
    std::fs::remove_dir_all(world.hub_dir())?;
    let agent = world.start_with(config, Clock::System).await?;
    reconciles_again(&agent, "cluster-status", 1).await?;
    assert_eq!(world.own_requests().await?.len(), 1, "it found its credentials again");
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_restart_the_secret_is_enough() -> Result<()> {
    let world = World::new().await?;
    world.join(world.config(), Clock::System).await?.stop().await?;
    let before = world.lease().await?.spec.and_then(|spec| spec.renew_time);
    std::fs::remove_dir_all(world.hub_dir())?;

    // Its names come from the secret too, and the bootstrap kubeconfig is not needed any more.
    std::fs::remove_file(world.bootstrap_path())?;
    let config = AgentConfig { cluster_name: String::new(), agent_id: String::new(), ..world.config() };
    let agent = world.start_with(config, Clock::System).await?;
    eventually("the lease is renewed again", || async {
        anyhow::Ok(world.lease().await?.spec.and_then(|spec| spec.renew_time) != before)
    })
    .await?;
    assert_eq!(world.own_requests().await?.len(), 1, "no other request was made");
    assert_eq!(world.managed_writes()?, ["create secrets"]);
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_somebody_else_wrote_to_the_lease_stays_and_it_is_renewed_nevertheless() -> Result<()> {
    let world = World::new().await?;
    let agent = world.join(world.config(), Clock::System).await?;
    let renewed = eventually("the lease is renewed", || async {
        anyhow::Ok(world.lease().await?.spec.and_then(|spec| spec.renew_time))
    })
    .await?;
    world.hub.kubectl(&["label", "lease", leases::MANAGED_CLUSTER, "-n", &world.cluster, "note=kept"]).await?;
    let shorter = Patch::Merge(json!({"spec": {"leaseDurationSeconds": 30}}));
    world.clusters().patch(&world.cluster, &PatchParams::default(), &shorter).await?;
    let lease = eventually("the lease is renewed again", || async {
        let lease = world.lease().await?;
        let again = lease.spec.as_ref().is_some_and(|spec| spec.renew_time.as_ref() != Some(&renewed));
        anyhow::Ok(again.then_some(lease))
    })
    .await?;
    assert_eq!(lease.metadata.labels.unwrap_or_default().get("note").map(String::as_str), Some("kept"));
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_denied_request_is_waited_for_and_a_deleted_one_made_again() -> Result<()> {
    let world = World::new().await?;
    let agent = world.start().await?;
    let first = world.request_count(1).await?.remove(0);
    let looks = agent.reconciles("client-certificate");
    world.deny(&first).await?;
    eventually("the agent has seen it", || async { agent.reconciles("client-certificate") > looks }).await?;
    assert_eq!(world.own_requests().await?.len(), 1);

    world.requests().delete(name(&first), &DeleteParams::default()).await?;
    let second = eventually("another request is there", || async {
        anyhow::Ok(world.own_requests().await?.into_iter().find(|request| name(request) != name(&first)))
    })
    .await?;
    world.accept().await?;
    world.approve(&second).await?;
    world.condition("ManagedClusterJoined", "True").await?;
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_strangers_do_not_confuse_it() -> Result<()> {
    let world = World::new().await?;
    let agent = world.start().await?;
    let own = world.request_count(1).await?.remove(0);
    let stranger = world.requests().create(&PostParams::default(), &request_of_a_stranger(&world)?).await?;
    let looks = agent.reconciles("client-certificate");
    world.approve(&stranger).await?;
    eventually("the agent has seen it", || async { agent.reconciles("client-certificate") > looks }).await?;
    assert_eq!(world.secret().await?, None);

    world.accept().await?;
    world.approve(&own).await?;
    world.condition("ManagedClusterJoined", "True").await?;
    agent.stop().await
}

/// With the same label, prefix and subject.
fn request_of_a_stranger(world: &World) -> Result<CertificateSigningRequest> {
    let mut request = CertificateSigningRequest::default();
    request.metadata.name = Some(format!("{}-stranger", world.cluster));
    request.metadata.labels = Some([(labels::CLUSTER_NAME.to_owned(), world.cluster.clone())].into());
    let subject = Subject::new(world.user(), vec![format!("system:open-cluster-management:{}", world.cluster)]);
    request.spec = CertificateSigningRequestSpec {
        request: ByteString(PrivateKey::generate().request(&subject)?.into_bytes()),
        signer_name: signers::KUBE_API_SERVER_CLIENT.into(),
        usages: Some(signers::CLIENT_USAGES.map(str::to_owned).to_vec()),
        ..CertificateSigningRequestSpec::default()
    };
    Ok(request)
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_usable_bootstrap_kubeconfig_it_says_what_to_do() -> Result<()> {
    let world = World::new().await?;
    std::fs::write(world.bootstrap_path(), "{}")?;
    let malformed = world.start().await?.ended().await?.to_string();
    std::fs::remove_file(world.bootstrap_path())?;
    let missing = world.start().await?.ended().await?;
    assert!(matches!(missing, AgentError::Bootstrap { .. }), "{missing:?}");
    for message in [malformed, missing.to_string()] {
        assert!(message.contains("bootstrap.yaml") && message.contains("clusteradm get token"), "{message}");
    }
    let none = AgentConfig { bootstrap_kubeconfig: None, ..world.config() };
    let error = world.start_with(none, Clock::System).await?.ended().await?.to_string();
    assert!(error.contains("--bootstrap-kubeconfig"), "{error}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_does_not_answer_is_waited_for() -> Result<()> {
    let world = World::new().await?;
    let mut bootstrap = world.bootstrap().await?;
    let port = ocm_testing::Port::free()?;
    let cluster = bootstrap.clusters[0].cluster.as_mut().context("no cluster")?;
    cluster.server = Some(format!("https://127.0.0.1:{}", port.number()));
    ocm_testing::write_kubeconfig(&bootstrap, world.bootstrap_path())?;
    let agent = world.start().await?;
    eventually("the agent has tried", || async { agent.reconciles("cluster-creation") > 0 }).await?;
    assert!(agent.context.health().checks().iter().all(|(_, answer)| answer.is_ok()));
    agent.stop().await
}
