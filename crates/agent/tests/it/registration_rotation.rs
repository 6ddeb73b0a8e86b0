//! New certificates for old.

use std::time::Duration;

use anyhow::{Context as _, Result};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, ResourceExt as _,
    api::{Patch, PatchParams, PostParams},
};
use ocm_api::{
    recovery::{CERTIFICATE_ANNOTATION, SIGNATURE_ANNOTATION},
    secrets,
};
use ocm_testing::eventually;
use serde_json::json;

use crate::{
    registration_world::{World, clock, later, name},
    running::Running,
};

const DAY: Duration = Duration::from_secs(24 * 3600);

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_about_to_expire_is_renewed_without_a_restart() -> Result<()> {
    let world = World::new().await?;
    let clock = clock();
    let agent = world.join(world.config(), clock.clone()).await?;
    let old = world.secret().await?.context("no secret")?;
    let start = clock.now();

    later(&clock, 300 * DAY);
    world.touch_secret("looked-at").await?;
    let requests = world.request_count(2).await?;
    let renewal = requests.iter().find(|request| request.spec.username == Some(world.user())).context("no renewal")?;
    // What is issued is issued by the machine's clock.
    clock.set(start);
    world.approve(renewal).await?;
    assert_eq!(world.condition("ClusterCertificateRotated", "True").await?, "ClientCertificateUpdated");
    let new = world.secret().await?.context("no secret")?;
    assert_ne!((&old["tls.crt"], &old["tls.key"]), (&new["tls.crt"], &new["tls.key"]));
    assert_eq!(new["looked-at"], "x", "what others keep there stays");
    eventually("the files are new", || async {
        std::fs::read_to_string(world.hub_dir().join("tls.crt")).is_ok_and(|text| text == new["tls.crt"])
    })
    .await?;

    // It still receives changes from the hub and still writes to it.
    let renewed = world.lease().await?.spec.and_then(|spec| spec.renew_time);
    later(&clock, Duration::from_secs(5));
    let patch = Patch::Merge(json!({"spec": {"leaseDurationSeconds": 50}}));
    world.clusters().patch(&world.cluster, &PatchParams::default(), &patch).await?;
    eventually("the lease is renewed again", || async {
        anyhow::Ok(world.lease().await?.spec.and_then(|spec| spec.renew_time) != renewed)
    })
    .await?;
    assert_eq!(world.own_requests().await?.len(), 2);
    agent.stop().await
}

/// Lets the controller of the certificate look again.
async fn reconcile(world: &World, agent: &Running, key: &str) -> Result<()> {
    let looks = agent.reconciles("client-certificate");
    world.touch_secret(key).await?;
    eventually("it has looked again", || async { agent.reconciles("client-certificate") > looks }).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewal_that_nobody_approves_is_reported_once_with_the_command_and_the_time_that_is_left() -> Result<()> {
    const TYPE: &str = "ClusterCertificateRotated";
    let world = World::new().await?;
    let clock = clock();
    let agent = world.join(world.config(), clock.clone()).await?;
    reconcile(&world, &agent, "healthy").await?;
    let conditions = world.managed_cluster().await?.status.unwrap_or_default().conditions;
    assert!(conditions.iter().all(|condition| condition.type_ != TYPE), "a healthy certificate takes no write");

    later(&clock, 300 * DAY);
    reconcile(&world, &agent, "due").await?;
    let requests = world.request_count(2).await?;
    let renewal = requests.iter().find(|request| request.spec.username == Some(world.user())).context("no renewal")?;
    reconcile(&world, &agent, "pending").await?;
    later(&clock, Duration::from_secs(11 * 60));
    reconcile(&world, &agent, "overdue").await?;
    assert_eq!(world.condition(TYPE, "False").await?, "ClientCertificateUpdateFailed");
    let overdue = async || {
        let found = world.managed_cluster().await?.status.unwrap_or_default().conditions;
        found.into_iter().find(|condition| condition.type_ == TYPE).context("no condition")
    };
    let reported = overdue().await?;
    for part in ["kubectl certificate approve", name(renewal), "The present certificate is valid until"] {
        assert!(reported.message.contains(part), "{}", reported.message);
    }
    later(&clock, Duration::from_secs(60 * 60));
    reconcile(&world, &agent, "still-overdue").await?;
    assert_eq!(overdue().await?, reported);
    world.approve(renewal).await?;
    assert_eq!(world.condition(TYPE, "True").await?, "ClientCertificateUpdated");
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn with_an_expired_certificate_it_starts_over_with_the_bootstrap_kubeconfig() -> Result<()> {
    let world = World::new().await?;
    let clock = clock();
    let agent = world.join(world.config(), clock.clone()).await?;
    let start = clock.now();
    let first = world.request_count(1).await?.remove(0);

    later(&clock, 400 * DAY);
    world.touch_secret("looked-at").await?;
    let user = "system:serviceaccount:open-cluster-management:agent-registration-bootstrap";
    let request = eventually("there is a request with the bootstrap identity", || async {
        let requests = world.own_requests().await?;
        let mut by_bootstrap = requests.into_iter().filter(|request| request.spec.username.as_deref() == Some(user));
        anyhow::Ok(by_bootstrap.find(|request| name(request) != name(&first)))
    })
    .await?;
    // It proves that it is the same agent, as the first request could not.
    for (request, has_proof) in [(&first, false), (&request, true)] {
        let annotations = request.annotations();
        assert_eq!(annotations.contains_key(CERTIFICATE_ANNOTATION), has_proof);
        assert_eq!(annotations.contains_key(SIGNATURE_ANNOTATION), has_proof);
    }
    let secret = world.secret().await?.context("no secret")?;
    assert_eq!(request.annotations()[CERTIFICATE_ANNOTATION], secret["tls.crt"]);
    clock.set(start);
    world.approve(&request).await?;
    let renewed = world.lease().await?.spec.and_then(|spec| spec.renew_time);
    later(&clock, Duration::from_secs(5));
    eventually("it is connected again", || async {
        anyhow::Ok(world.lease().await?.spec.and_then(|spec| spec.renew_time) != renewed)
    })
    .await?;
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn another_bootstrap_secret_makes_it_ask_again() -> Result<()> {
    let world = World::new().await?;
    let secrets: Api<Secret> = world.secrets();
    let mut secret = Secret::default();
    secret.metadata.name = Some(secrets::BOOTSTRAP_HUB_KUBECONFIG.into());
    secret.string_data = Some([("kubeconfig".to_owned(), "old".to_owned())].into());
    secrets.create(&PostParams::default(), &secret).await?;
    let agent = world.join(world.config(), ocm_runtime::Clock::System).await?;

    world.rename_in_bootstrap("renamed").await?;
    let patch = Patch::Merge(json!({"stringData": {"kubeconfig": "new"}}));
    secrets.patch(secrets::BOOTSTRAP_HUB_KUBECONFIG, &PatchParams::default(), &patch).await?;

    let requests = world.request_count(2).await?;
    world.approve(&requests[0]).await?;
    world.approve(&requests[1]).await?;
    eventually("the secret has the new kubeconfig", || async {
        anyhow::Ok(world.secret().await?.is_some_and(|secret| secret["kubeconfig"].contains("name: renamed")))
    })
    .await?;
    agent.stop().await
}

impl World {
    /// The same hub under another name, for which the agent's own kubeconfig will not do.
    async fn rename_in_bootstrap(&self, name: &str) -> Result<()> {
        let mut bootstrap = self.bootstrap().await?;
        bootstrap.clusters[0].name = name.into();
        bootstrap.contexts[0].context.as_mut().context("no context")?.cluster = name.into();
        ocm_testing::write_kubeconfig(&bootstrap, self.bootstrap_path())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_bootstrap_kubeconfig_makes_a_connected_agent_ask_again_without_an_event_of_its_secret() -> Result<()> {
    let world = World::new().await?;
    let agent = world.join(world.config(), ocm_runtime::Clock::System).await?;
    world.rename_in_bootstrap("renamed").await?;
    let user = "system:serviceaccount:open-cluster-management:agent-registration-bootstrap";
    let requests = world.request_count(2).await?;
    assert!(requests.iter().all(|request| request.spec.username.as_deref() == Some(user)), "it starts over");
    for request in &requests {
        world.approve(request).await?;
    }
    eventually("the secret has the new kubeconfig", || async {
        anyhow::Ok(world.secret().await?.is_some_and(|secret| secret["kubeconfig"].contains("name: renamed")))
    })
    .await?;
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn another_file_that_the_bootstrap_kubeconfig_names_makes_it_ask_again() -> Result<()> {
    let world = World::new().await?;
    let mut bootstrap = world.bootstrap().await?;
    let cluster = bootstrap.clusters[0].cluster.as_mut().context("no cluster")?;
    let authority = cluster.certificate_authority_data.take().context("no CA")?;
    cluster.certificate_authority = Some("ca.crt".into());
    ocm_testing::write_kubeconfig(&bootstrap, world.bootstrap_path())?;
    let write = |authority: &str| -> Result<()> {
        Ok(std::fs::write(world.bootstrap_path().with_file_name("ca.crt"), STANDARD.decode(authority)?)?)
    };

    // It trusts another cluster's authority, so it does not even reach the hub.
    write(&world.managed_authority()?)?;
    let agent = world.start().await?;
    eventually("the agent has tried", || async { agent.reconciles("cluster-creation") > 0 }).await?;
    assert!(world.own_requests().await?.is_empty());
    write(&authority)?;
    world.request_count(1).await?;
    agent.stop().await
}
