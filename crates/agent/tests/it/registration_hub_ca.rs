//! A hub whose API server gets a certificate of another authority.

use anyhow::{Context as _, Result};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use k8s_openapi::api::{certificates::v1::CertificateSigningRequest, core::v1::ConfigMap};
use kube::{
    Api, Client,
    api::{ListParams, Patch, PatchParams},
};
use ocm_api::{labels, secrets::KEY_FOLLOWED_CA};
use ocm_testing::{ControlPlane, Part, client_for, eventually};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use serde_json::json;

use crate::registration_world::World;

fn authority() -> Result<CertifiedIssuer<'static, KeyPair>> {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "the next authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    Ok(CertifiedIssuer::self_signed(params, KeyPair::generate()?)?)
}

/// Publishes the authorities as kube-controller-manager does, which is stopped so that it does not undo that.
async fn publish(hub: &ControlPlane, client: &Client, authorities: &str) -> Result<()> {
    hub.stop(Part::ControllerManager)?;
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), "kube-public");
    let patch = Patch::Merge(json!({"data": {"ca.crt": authorities}}));
    api.patch("kube-root-ca.crt", &PatchParams::default(), &patch).await?;
    Ok(())
}

/// Gives the API server a certificate of the authority, and returns a client that trusts no other.
async fn serve_with(hub: &ControlPlane, authority: &CertifiedIssuer<'static, KeyPair>) -> Result<Client> {
    let key = KeyPair::generate()?;
    let certificate = CertificateParams::new(["127.0.0.1".to_owned()])?.signed_by(&key, authority)?;
    std::fs::write(hub.dir().join("server.key"), key.serialize_pem())?;
    std::fs::write(hub.dir().join("server.crt"), certificate.pem())?;
    let mut kubeconfig = hub.admin_config();
    let cluster = kubeconfig.clusters[0].cluster.as_mut().context("no cluster")?;
    cluster.certificate_authority_data = Some(STANDARD.encode(authority.pem()));
    let client = client_for(&kubeconfig).await?;
    eventually("the API server has its new certificate", || async { client.apiserver_version().await.is_ok() }).await?;
    Ok(client)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_follows_its_hub_to_another_certificate_authority_without_bootstrapping_again() -> Result<()> {
    let world = World::with_own_hub().await?;
    let agent = world.join(world.config(), ocm_runtime::Clock::System).await?;
    eventually("the agent has read what the hub publishes", || async { agent.reconciles("hub-ca") > 0 }).await?;
    assert!(!world.secret().await?.context("no secret")?.contains_key(KEY_FOLLOWED_CA), "nothing is new");

    let next = authority()?;
    let both = format!("{}{}", world.hub.certificate_authority(), next.pem());
    publish(world.hub, &world.hub_client, &both).await?;
    world.touch_secret("looked-at").await?;
    eventually("the kubeconfig trusts both", || async {
        let text = std::fs::read_to_string(world.hub_dir().join("kubeconfig"))?;
        let data = text.lines().find_map(|line| line.trim().strip_prefix("certificate-authority-data: "));
        let trusted = String::from_utf8(STANDARD.decode(data.context("no authority")?)?)?;
        anyhow::Ok(trusted.matches("BEGIN CERTIFICATE").count() == 2)
    })
    .await?;
    let connected = agent.reconciles("cluster-lease");
    eventually("the agent is connected", || async { agent.reconciles("cluster-lease") > connected }).await?;
    agent.stop().await?;

    let client = serve_with(world.hub, &next).await?;
    let agent = world.start().await?;
    eventually("the agent is connected again", || async { agent.reconciles("cluster-lease") > 0 }).await?;
    let of_cluster = ListParams::default().labels(&format!("{}={}", labels::CLUSTER_NAME, world.cluster));
    let requests = Api::<CertificateSigningRequest>::all(client).list(&of_cluster).await?;
    assert_eq!(requests.items.len(), 1, "neither a new certificate nor a bootstrap was needed");
    agent.stop().await
}
