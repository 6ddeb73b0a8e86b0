//! Agents that prove with a former certificate who they are. A certificate that is still valid proves the same as an expired one.

use anyhow::{Context as _, Result};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use k8s_openapi::{
    ByteString,
    api::{
        certificates::v1::{CertificateSigningRequest, CertificateSigningRequestSpec},
        core::v1::Namespace,
        events::v1::Event,
    },
};
use kube::{
    Api, Client, ResourceExt as _,
    api::{ListParams, PostParams},
};
use ocm_api::{
    identities::BOOTSTRAP_GROUP,
    labels,
    recovery::{CERTIFICATE_ANNOTATION, RECORD_ANNOTATION, SIGNATURE_ANNOTATION, statement},
    signers,
};
use ocm_runtime::pki::PrivateKey;
use ocm_testing::{client_for, eventually, unique};

use crate::{
    gated::{RECOVERIES, gated_world},
    requests::{Request, assert_untouched, client_of_agent, wait_for_certificate},
    support::World,
};

/// A certificate of an agent, and its key.
struct Identity {
    cluster: String,
    certificate: String,
    key: PrivateKey,
}

impl Identity {
    /// That of the agent of a new cluster.
    async fn of_new_cluster(world: &World, prefix: &str) -> Result<Self> {
        let cluster = unique(prefix);
        world.accepted(&cluster).await?;
        let key = PrivateKey::generate();
        let renewal = Request::renewal(&cluster, "agent1");
        let pem = key.request(&renewal.subject)?;
        let name = renewal.send_pem(&client_of_agent(world, &cluster, "agent1").await?, pem).await?;
        let issued = wait_for_certificate(world, &name).await?.status.and_then(|status| status.certificate);
        let certificate = String::from_utf8(issued.context("no certificate")?.0)?;
        Ok(Self { cluster, certificate, key })
    }

    /// A request for this identity with a proof.
    fn request(&self) -> Result<CertificateSigningRequest> {
        let (name, wanted) = (unique("recovery"), Request::renewal(&self.cluster, "agent1"));
        let pem = PrivateKey::generate().request(&wanted.subject)?.into_bytes();
        let signature = STANDARD.encode(self.key.sign(&statement(&name, &pem)));
        let mut request = CertificateSigningRequest {
            spec: CertificateSigningRequestSpec {
                request: ByteString(pem),
                signer_name: signers::KUBE_API_SERVER_CLIENT.into(),
                usages: Some(signers::CLIENT_USAGES.map(str::to_owned).to_vec()),
                ..CertificateSigningRequestSpec::default()
            },
            ..CertificateSigningRequest::default()
        };
        request.metadata.name = Some(name);
        request.labels_mut().insert(labels::CLUSTER_NAME.into(), self.cluster.clone());
        request.annotations_mut().insert(CERTIFICATE_ANNOTATION.into(), self.certificate.clone());
        request.annotations_mut().insert(SIGNATURE_ANNOTATION.into(), signature);
        Ok(request)
    }
}

/// Someone with a bootstrap token.
async fn bootstrapper(world: &World, group: &str) -> Result<Client> {
    client_for(&world.plane.kubeconfig_for_user("system:bootstrap:recovery", &[BOOTSTRAP_GROUP, group])?).await
}

async fn send(client: &Client, request: &CertificateSigningRequest) -> Result<String> {
    Ok(Api::all(client.clone()).create(&PostParams::default(), request).await?.name_any())
}

/// Waits until an event on the cluster says why a request was not approved, and checks that.
async fn is_refused(world: &World, cluster: &str, request: &str, because: &str) -> Result<()> {
    let events = Api::<Event>::namespaced(world.client.clone(), cluster);
    let note = eventually("an event reports the refusal", || async {
        let notes = events.list(&ListParams::default()).await?.into_iter().filter_map(|event| event.note);
        Ok::<_, kube::Error>(notes.into_iter().find(|note| note.contains(request)))
    })
    .await?;
    assert!(note.contains(because) && note.contains("clusteradm accept --clusters"), "{note}");
    assert_untouched(world, request).await
}

#[tokio::test]
async fn an_agent_recovers_as_often_as_the_policy_allows_and_its_namespace_on_the_hub_records_it() -> Result<()> {
    let world = gated_world().await?;
    let (agent, client) = (Identity::of_new_cluster(&world, "back").await?, bootstrapper(&world, "recoverers").await?);
    for _ in 0..RECOVERIES {
        let approved = wait_for_certificate(&world, &send(&client, &agent.request()?).await?).await?;
        let conditions = approved.status.and_then(|status| status.conditions).unwrap_or_default();
        assert_eq!(conditions[0].reason.as_deref(), Some("CertificateRecoveredByHub"));
        let message = conditions[0].message.clone().unwrap_or_default();
        assert!(message.contains("system:bootstrap:recovery"), "{message}");
    }
    let one_more = send(&client, &agent.request()?).await?;
    is_refused(&world, &agent.cluster, &one_more, "--certificate-recovery-limit").await?;
    let namespace = Api::<Namespace>::all(world.client.clone()).get(&agent.cluster).await?;
    let record: serde_json::Value = serde_json::from_str(&namespace.annotations()[RECORD_ANNOTATION])?;
    assert_eq!(record.as_array().map(Vec::len), Some(RECOVERIES));
    Ok(())
}

#[tokio::test]
async fn neither_a_bootstrap_token_nor_a_copied_or_forged_proof_gets_the_identity_of_a_cluster() -> Result<()> {
    let world = gated_world().await?;
    let (agent, client) =
        (Identity::of_new_cluster(&world, "victim").await?, bootstrapper(&world, "recoverers").await?);
    let other = Identity::of_new_cluster(&world, "thief").await?;
    let genuine = agent.request()?;

    let mut copied = genuine.clone();
    copied.metadata.name = Some(unique("copied"));
    let mut unsigned = agent.request()?;
    unsigned.annotations_mut().remove(SIGNATURE_ANNOTATION);
    let stolen = Identity { key: PrivateKey::generate(), cluster: agent.cluster.clone(), ..agent.copy() };
    let of_other = Identity { cluster: agent.cluster.clone(), ..other.copy() };
    for (request, because) in [
        (copied, "has not signed this request"),
        (unsigned, "is missing"),
        (stolen.request()?, "has not signed this request"),
        (of_other.request()?, "another user or in other groups"),
    ] {
        is_refused(&world, &agent.cluster, &send(&client, &request).await?, because).await?;
    }
    let mut bare = agent.request()?;
    bare.metadata.annotations = None;
    let bare = send(&client, &bare).await?;
    let unnamed = send(&bootstrapper(&world, "others").await?, &agent.request()?).await?;
    is_refused(&world, &agent.cluster, &unnamed, "names its requester system:bootstrap:recovery").await?;
    wait_for_certificate(&world, &send(&client, &genuine).await?).await?;
    assert_untouched(&world, &bare).await
}

#[tokio::test]
async fn a_denied_cluster_recovers_when_it_is_accepted_again() -> Result<()> {
    let world = gated_world().await?;
    let (agent, client) = (Identity::of_new_cluster(&world, "out").await?, bootstrapper(&world, "recoverers").await?);
    world.set_accepted(&agent.cluster, false).await?;
    world.wait_for_condition(&agent.cluster, "HubAcceptedManagedCluster", "False").await?;
    let request = send(&client, &agent.request()?).await?;
    is_refused(&world, &agent.cluster, &request, "does not accept the cluster").await?;
    world.set_accepted(&agent.cluster, true).await?;
    wait_for_certificate(&world, &request).await.map(drop)
}

impl Identity {
    fn copy(&self) -> Self {
        Self { cluster: self.cluster.clone(), certificate: self.certificate.clone(), key: self.key.clone() }
    }
}
