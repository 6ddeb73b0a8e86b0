//! Agents whose certificate has expired, on a control plane whose certificates are valid for seconds.

use std::time::Duration;

use anyhow::{Context as _, Result};
use k8s_openapi::api::{certificates::v1::CertificateSigningRequest, core::v1::Namespace, events::v1::Event};
use kube::{
    Api, ResourceExt as _,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use ocm_api::{
    conditions::cluster::AVAILABLE,
    crds::Side,
    namespaces,
    recovery::{CERTIFICATE_ANNOTATION, RECORD_ANNOTATION, SIGNATURE_ANNOTATION},
};
use ocm_hub::{HubConfig, RecoveryPolicy};
use ocm_runtime::pki::Bundle;
use ocm_testing::{ControlPlane, Part, client_for, eventually, unique};
use serde_json::json;

use crate::world::{AGENT_MANIFESTS, Agent, HUB_ACCOUNT, HUB_MANIFESTS, World, install_on, run_hub};

const RIGHTS: &str = include_str!("../../../../deploy/certificate-recovery.yaml");
const BOOTSTRAP_USER: &str = "system:serviceaccount:open-cluster-management:agent-registration-bootstrap";
/// How long certificates are valid: long enough to join within, short enough to wait for.
const LIFETIME: &str = "45s";

/// One recovery for each cluster.
fn policy() -> RecoveryPolicy {
    RecoveryPolicy {
        users: vec![BOOTSTRAP_USER.into()],
        limit: 1,
        window: Duration::from_secs(3600),
        ..RecoveryPolicy::default()
    }
}

/// A hub that is also the cluster to manage.
async fn start(recovery: RecoveryPolicy) -> Result<(World, ocm_runtime::Context)> {
    let plane = ControlPlane::builder().audit(true).flag(Part::ControllerManager, "cluster-signing-duration", LIFETIME);
    // Its processes end with this one.
    let plane = &*Box::leak(Box::new(plane.start().await?));
    install_on(plane, Side::Hub, HUB_MANIFESTS).await?;
    install_on(plane, Side::Managed, AGENT_MANIFESTS).await?;
    plane.apply_yaml(RIGHTS).await?;
    let kubeconfig = plane.kubeconfig_for_service_account(namespaces::HUB, HUB_ACCOUNT).await?;
    let hub = run_hub(&kubeconfig, HubConfig { recovery, ..HubConfig::default() }).await?;
    Ok((World::of(plane, plane).await?, hub))
}

fn certificate(agent: &Agent) -> Result<String> {
    Ok(std::fs::read_to_string(agent.hub_dir().join("tls.crt"))?)
}

/// Stops the agent, and starts it again when its certificate has expired; returns that.
#[expect(clippy::disallowed_methods, reason = "certificates expire by the machine's clock")]
async fn sleep_until_expired(agent: &mut Agent) -> Result<String> {
    agent.stop().await?;
    let certificate = certificate(agent)?;
    let bundle = Bundle::parse(certificate.as_bytes())?;
    eventually("its certificate has expired", || async { bundle.is_expired(jiff::Timestamp::now()) }).await?;
    agent.start().await?;
    Ok(certificate)
}

async fn is_renewed(agent: &Agent, former: &str) -> Result<()> {
    eventually("it has a new certificate", || async { anyhow::Ok(certificate(agent)? != former) }).await
}

fn has_proof(request: &CertificateSigningRequest) -> bool {
    request.annotations().contains_key(SIGNATURE_ANNOTATION)
}

/// The requests with a proof, the oldest first.
async fn with_proof(world: &World, cluster: &str) -> Result<Vec<CertificateSigningRequest>> {
    let mut requests = world.requests(cluster).await?;
    requests.retain(has_proof);
    requests.sort_by_key(|request| request.metadata.creation_timestamp.clone());
    Ok(requests)
}

/// The reason for which it was approved.
fn approved(request: &CertificateSigningRequest) -> Option<String> {
    request.status.as_ref()?.conditions.as_ref()?.first()?.reason.clone()
}

/// Waits for an event on the cluster; returns its note.
async fn event(world: &World, cluster: &str, reason: &str) -> Result<String> {
    let events = Api::<Event>::namespaced(world.hub.clone(), cluster);
    eventually(&format!("there is an event {reason}"), || async {
        let events = events.list(&ListParams::default()).await?;
        let found = events.into_iter().find(|event| event.reason.as_deref() == Some(reason));
        anyhow::Ok(found.and_then(|event| event.note))
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_recovers_its_expired_certificate_once_and_then_waits_for_an_administrator() -> Result<()> {
    let (world, hub) = start(policy()).await?;
    let mut agent = world.join().await?;
    let cluster = agent.cluster.clone();

    let first = sleep_until_expired(&mut agent).await?;
    is_renewed(&agent, &first).await?;
    let recovered = with_proof(&world, &cluster).await?;
    assert_eq!(recovered.len(), 1);
    assert_eq!(approved(&recovered[0]).as_deref(), Some("CertificateRecoveredByHub"));
    assert!(event(&world, &cluster, "CertificateRecovered").await?.contains("recovery 1 of 1"));
    let namespace = Api::<Namespace>::all(world.hub.clone()).get(&cluster).await?;
    assert!(namespace.annotations()[RECORD_ANNOTATION].contains(&recovered[0].uid().context("no uid")?));

    let second = sleep_until_expired(&mut agent).await?;
    let note = event(&world, &cluster, "CertificateRecoveryRefused").await?;
    assert!(note.contains("--certificate-recovery-limit") && note.contains("clusteradm accept"), "{note}");
    assert_eq!(certificate(&agent)?, second);
    // What an administrator allows counts at once.
    world.approve_all(&cluster).await?;
    is_renewed(&agent, &second).await?;
    eventually("the cluster is available", || world.cluster_condition(&cluster, AVAILABLE)).await?;
    agent.stop().await?;
    hub.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bootstrap_token_alone_does_not_get_the_identity_of_a_cluster_not_even_with_a_copied_proof() -> Result<()> {
    let (world, hub) = start(RecoveryPolicy { limit: 5, ..policy() }).await?;
    let mut agent = world.join().await?;
    let cluster = agent.cluster.clone();
    let first = sleep_until_expired(&mut agent).await?;
    is_renewed(&agent, &first).await?;
    let recovered = with_proof(&world, &cluster).await?.remove(0);

    let (kubeconfig, _, _) = world.agent_identity().await?;
    let thief: Api<CertificateSigningRequest> = Api::all(client_for(&kubeconfig).await?);
    let copy = |name: &str, signature: bool| {
        let mut copy = CertificateSigningRequest { status: None, ..recovered.clone() };
        copy.metadata = kube::api::ObjectMeta {
            name: Some(name.into()),
            labels: recovered.metadata.labels.clone(),
            annotations: recovered.metadata.annotations.clone(),
            ..Default::default()
        };
        if !signature {
            copy.annotations_mut().retain(|key, _| key == CERTIFICATE_ANNOTATION);
        }
        copy
    };
    let (copied, unsigned) = (unique("copied"), unique("unsigned"));
    for request in [copy(&copied, true), copy(&unsigned, false)] {
        thief.create(&PostParams::default(), &request).await?;
    }
    let notes = async || {
        let events = Api::<Event>::namespaced(world.hub.clone(), &cluster).list(&ListParams::default()).await?;
        anyhow::Ok(events.into_iter().filter_map(|event| event.note).collect::<Vec<_>>().join("\n"))
    };
    eventually("both are refused", || async {
        let notes = notes().await?;
        anyhow::Ok(notes.contains(&copied) && notes.contains(&unsigned))
    })
    .await?;
    for name in [&copied, &unsigned] {
        assert_eq!(approved(&thief.get(name).await?), None, "{name}");
    }
    agent.stop().await?;
    hub.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_policy_or_on_a_denied_cluster_an_expired_certificate_waits_for_an_administrator() -> Result<()> {
    let (world, hub) = start(RecoveryPolicy::default()).await?;
    let mut agent = world.join().await?;
    let cluster = agent.cluster.clone();
    sleep_until_expired(&mut agent).await?;
    let asked = || async { anyhow::Ok(with_proof(&world, &cluster).await?.into_iter().next()) };
    let request = eventually("it has asked with a proof", asked).await?;
    hub.stop().await;
    let api: Api<CertificateSigningRequest> = Api::all(world.hub.clone());
    assert_eq!(approved(&api.get(&request.name_any()).await?), None);

    // A hub with the policy refuses it while the cluster is denied, and approves it once it is accepted.
    let deny = json!({"spec": {"hubAcceptsClient": false}});
    world.clusters().patch(&cluster, &PatchParams::default(), &Patch::Merge(&deny)).await?;
    let kubeconfig = world.hub_identity().await?;
    let hub = run_hub(&kubeconfig, HubConfig { recovery: policy(), ..HubConfig::default() }).await?;
    let note = event(&world, &cluster, "CertificateRecoveryRefused").await?;
    assert!(note.contains("does not accept the cluster"), "{note}");
    world.accept(&cluster).await?;
    eventually("the request is approved", || async { anyhow::Ok(approved(&api.get(&request.name_any()).await?)) })
        .await?;
    eventually("the cluster is available", || world.cluster_condition(&cluster, AVAILABLE)).await?;
    agent.stop().await?;
    hub.stop().await;
    Ok(())
}
