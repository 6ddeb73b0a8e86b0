//! Which certificate requests the hub approves.

use anyhow::Result;
use k8s_openapi::{
    ByteString,
    api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestSpec},
};
use kube::{Api, Client, api::PostParams};
use ocm_api::{
    conditions::cluster::CERTIFICATE_ROTATED,
    identities, labels,
    reasons::cluster::{CLIENT_CERTIFICATE_UPDATE_FAILED, CLIENT_CERTIFICATE_UPDATED},
    signers,
};
use ocm_hub::HubConfig;
use ocm_runtime::pki::{PrivateKey, Subject};
use ocm_testing::{Seen, client_for, eventually, unique};

use crate::support::{World, context, start_hub, world};

/// A request of an agent of `cluster` as a test wants it.
pub(crate) struct Request {
    pub(crate) subject: Subject,
    pub(crate) signer: &'static str,
    pub(crate) label: Option<String>,
}

impl Request {
    pub(crate) fn renewal(cluster: &str, agent: &str) -> Self {
        let groups = vec![identities::cluster_group(cluster), identities::MANAGED_CLUSTERS_GROUP.into()];
        Self {
            subject: Subject::new(identities::cluster_user(cluster, agent), groups),
            signer: signers::KUBE_API_SERVER_CLIENT,
            label: Some(cluster.into()),
        }
    }

    /// Creates it; returns its name.
    pub(crate) async fn send(self, client: &Client) -> Result<String> {
        let pem = PrivateKey::generate().request(&self.subject)?;
        self.send_pem(client, pem).await
    }

    /// Creates it with another content; returns its name.
    pub(crate) async fn send_pem(self, client: &Client, pem: String) -> Result<String> {
        let mut request = CertificateSigningRequest {
            spec: CertificateSigningRequestSpec {
                request: ByteString(pem.into_bytes()),
                signer_name: self.signer.into(),
                usages: Some(signers::CLIENT_USAGES.map(str::to_owned).to_vec()),
                ..CertificateSigningRequestSpec::default()
            },
            ..CertificateSigningRequest::default()
        };
        let name = unique("csr");
        request.metadata.name = Some(name.clone());
        request.metadata.labels = self.label.map(|cluster| [(labels::CLUSTER_NAME.to_owned(), cluster)].into());
        Api::all(client.clone()).create(&PostParams::default(), &request).await?;
        Ok(name)
    }
}

pub(crate) async fn client_of_agent(world: &World, cluster: &str, agent: &str) -> Result<Client> {
    let groups = [identities::cluster_group(cluster), identities::MANAGED_CLUSTERS_GROUP.to_owned()];
    let groups: Vec<_> = groups.iter().map(String::as_str).collect();
    client_for(&world.plane.kubeconfig_for_user(&identities::cluster_user(cluster, agent), &groups)?).await
}

pub(crate) async fn wait_for_certificate(world: &World, name: &str) -> Result<CertificateSigningRequest> {
    let requests: Api<CertificateSigningRequest> = Api::all(world.client.clone());
    eventually("the request has its certificate", || async {
        let request = requests.get(name).await?;
        let has_certificate = request.status.as_ref().is_some_and(|status| status.certificate.is_some());
        Ok::<_, kube::Error>(has_certificate.then_some(request))
    })
    .await
}

/// Nobody has decided on the request.
pub(crate) async fn assert_untouched(world: &World, name: &str) -> Result<()> {
    let requests: Api<CertificateSigningRequest> = Api::all(world.client.clone());
    let conditions = requests.get(name).await?.status.and_then(|status| status.conditions);
    assert!(conditions.is_none_or(|conditions| conditions.is_empty()), "{name}");
    Ok(())
}

#[tokio::test]
async fn clusters_whose_agents_could_not_renew_are_counted() -> Result<()> {
    let (world, context) = (world().await?, context());
    let config = HubConfig { controllers: vec!["csr-approval".into()], ..HubConfig::default() };
    start_hub(world.plane, &context, config).await?;
    let counted = async |expected: u8| {
        let line = format!("{{kind=\"ManagedCluster\",condition=\"{CERTIFICATE_ROTATED}\"}} {expected}");
        eventually("the clusters are counted", || async {
            let metrics = context.metrics().encode();
            if metrics.contains(&line) { Seen::Settled(()) } else { Seen::NotYet(metrics) }
        })
        .await
    };
    counted(0).await?;
    let cluster = unique("unrenewed");
    world.accepted(&cluster).await?;
    let reasons = [("False", CLIENT_CERTIFICATE_UPDATE_FAILED, 1), ("True", CLIENT_CERTIFICATE_UPDATED, 0)];
    for (status, reason, expected) in reasons {
        world.report_condition(&cluster, CERTIFICATE_ROTATED, status, reason).await?;
        counted(expected).await?;
    }
    Ok(())
}

#[tokio::test]
async fn an_agents_renewal_of_its_own_certificate_is_approved() -> Result<()> {
    let world = world().await?;
    let cluster = unique("renewing");
    world.accepted(&cluster).await?;
    let agent = client_of_agent(&world, &cluster, "agent1").await?;
    let name = Request::renewal(&cluster, "agent1").send(&agent).await?;
    let request = wait_for_certificate(&world, &name).await?;
    let conditions = request.status.and_then(|status| status.conditions).unwrap_or_default();
    assert_eq!(conditions.len(), 1);
    assert_eq!((conditions[0].type_.as_str(), conditions[0].status.as_str()), ("Approved", "True"));
    assert_eq!(conditions[0].reason.as_deref(), Some("AutoApprovedByHubCSRApprovingController"));
    Ok(())
}

#[tokio::test]
async fn any_other_request_is_left_untouched() -> Result<()> {
    let world = world().await?;
    let (cluster, victim) = (unique("other"), unique("victim"));
    world.accepted(&cluster).await?;
    world.accepted(&victim).await?;
    let agent = client_of_agent(&world, &cluster, "agent1").await?;
    let own = || Request::renewal(&cluster, "agent1");
    let mut with_group = own();
    with_group.subject.organizations.push("system:authenticated-by-luck".into());
    let mut with_groups_of_victim = own();
    with_groups_of_victim.subject.organizations = vec![identities::cluster_group(&victim)];
    let untouched = [
        Request::renewal(&cluster, "agent2").send(&agent).await?,
        Request::renewal(&victim, "agent1").send(&agent).await?,
        own().send(&world.client).await?,
        with_group.send(&agent).await?,
        with_groups_of_victim.send(&agent).await?,
        Request { signer: "example.com/other", ..own() }.send(&agent).await?,
        Request { label: None, ..own() }.send(&agent).await?,
        Request { label: Some(victim.clone()), ..own() }.send(&agent).await?,
    ];
    // When a later request has its certificate, the hub has processed these.
    let last = own().send(&agent).await?;
    wait_for_certificate(&world, &last).await?;
    for name in &untouched {
        assert_untouched(&world, name).await?;
    }
    Ok(())
}
