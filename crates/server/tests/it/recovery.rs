//! An agent whose certificate expires, on a control plane whose certificates are valid for two minutes.

use std::time::Duration;

use anyhow::{Context as _, Result};
use k8s_openapi::api::{certificates::v1::CertificateSigningRequest, core::v1::Namespace, events::v1::Event};
use kube::{Api, ResourceExt as _, api::ListParams};
use ocm_api::{
    conditions::cluster::AVAILABLE,
    crds::Side,
    namespaces,
    recovery::{RECORD_ANNOTATION, SIGNATURE_ANNOTATION},
};
use ocm_hub::{HubConfig, RecoveryPolicy};
use ocm_runtime::{Clock, pki::Bundle};
use ocm_testing::{ControlPlane, Part, eventually, eventually_within};

use crate::world::{AGENT_MANIFESTS, Agent, HUB_ACCOUNT, HUB_MANIFESTS, World, install_on, run_hub};

const RIGHTS: &str = include_str!("../../../../deploy/certificate-recovery.yaml");
const BOOTSTRAP_USER: &str = "system:serviceaccount:open-cluster-management:agent-registration-bootstrap";
/// How long certificates are valid. They are dated back by five minutes: with less than a hundred seconds an agent would
/// renew them at once.
const LIFETIME: Duration = Duration::from_secs(120);

/// A hub that is also the cluster to manage.
async fn start() -> Result<(World, ocm_runtime::Context)> {
    let lifetime = format!("{}s", LIFETIME.as_secs());
    let plane = ControlPlane::builder().flag(Part::ControllerManager, "cluster-signing-duration", &lifetime);
    // Its processes end with this one.
    let plane = &*Box::leak(Box::new(plane.start().await?));
    install_on(plane, Side::Hub, HUB_MANIFESTS).await?;
    install_on(plane, Side::Managed, AGENT_MANIFESTS).await?;
    plane.apply_yaml(RIGHTS).await?;
    let kubeconfig = plane.kubeconfig_for_service_account(namespaces::HUB, HUB_ACCOUNT).await?;
    let recovery = RecoveryPolicy { users: vec![BOOTSTRAP_USER.into()], ..RecoveryPolicy::default() };
    let hub = run_hub(&kubeconfig, HubConfig { recovery, ..HubConfig::default() }).await?;
    Ok((World::of(plane, plane).await?, hub))
}

fn certificate(agent: &Agent) -> Result<String> {
    Ok(std::fs::read_to_string(agent.hub_dir().join("tls.crt"))?)
}

async fn has_expired(certificate: &str) -> Result<()> {
    let bundle = Bundle::parse(certificate.as_bytes())?;
    let is_expired = || async { bundle.is_expired(Clock::System.now()) };
    eventually_within(LIFETIME * 2, "the certificate has expired", is_expired).await
}

/// The only request with a proof.
async fn recovered(world: &World, cluster: &str) -> Result<CertificateSigningRequest> {
    let mut requests = world.requests(cluster).await?;
    requests.retain(|request| request.annotations().contains_key(SIGNATURE_ANNOTATION));
    assert_eq!(requests.len(), 1);
    requests.pop().context("no request")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_was_away_until_its_certificate_had_expired_comes_back_by_itself() -> Result<()> {
    let (world, hub) = start().await?;
    let mut agent = world.join().await?;
    let cluster = agent.cluster.clone();
    agent.stop().await?;
    let former = certificate(&agent)?;
    has_expired(&former).await?;
    agent.start().await?;
    eventually("it has a new certificate", || async { anyhow::Ok(certificate(&agent)? != former) }).await?;

    let request = recovered(&world, &cluster).await?;
    assert_eq!(request.spec.username.as_deref(), Some(BOOTSTRAP_USER));
    let approved = request.status.as_ref().and_then(|status| status.conditions.as_ref()?.first()?.reason.as_deref());
    assert_eq!(approved, Some("CertificateRecoveredByHub"));
    let namespace = Api::<Namespace>::all(world.hub.clone()).get(&cluster).await?;
    assert!(namespace.annotations()[RECORD_ANNOTATION].contains(&request.uid().context("no uid")?));
    let events = Api::<Event>::namespaced(world.hub.clone(), &cluster);
    eventually("an event reports it", || async {
        let events = events.list(&ListParams::default()).await?;
        anyhow::Ok(events.iter().any(|event| event.reason.as_deref() == Some("CertificateRecovered")))
    })
    .await?;
    eventually("it works for the hub again", || async {
        let is_connected = agent.passes("cluster-lease") > 0;
        anyhow::Ok(is_connected)
    })
    .await?;
    eventually("the cluster is available", || world.cluster_condition(&cluster, AVAILABLE)).await?;
    agent.stop().await?;
    hub.stop().await;
    Ok(())
}
