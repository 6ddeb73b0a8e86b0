//! Which certificate requests a manager approves.

use anyhow::Result;
use k8s_openapi::{
    ByteString,
    api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestSpec},
};
use kube::{Api, Client, ResourceExt as _, api::PostParams};
use ocm_addon::Identity;
use ocm_api::{identities, labels, signers};
use ocm_runtime::pki::{PrivateKey, Subject};
use ocm_testing::{client_for, eventually, unique};

use crate::{
    scripted::{PLAIN, READER},
    support::{World, world},
};

/// A request for a certificate.
#[derive(Clone)]
struct Request {
    subject: Subject,
    cluster: String,
    addon: String,
    prefix: &'static str,
}

impl Request {
    /// What the agent of `cluster` asks for.
    fn own(cluster: &str) -> Self {
        let Identity { user, groups, .. } = Identity::of_agent(cluster, READER, "agent");
        let subject = Subject::new(user, groups);
        Self { subject, cluster: cluster.into(), addon: READER.into(), prefix: "addon" }
    }

    fn with(&self, change: impl FnOnce(&mut Self)) -> Self {
        let mut changed = self.clone();
        change(&mut changed);
        changed
    }

    /// Creates it; returns its name.
    async fn send(&self, client: &Client) -> Result<String> {
        let mut request = CertificateSigningRequest {
            spec: CertificateSigningRequestSpec {
                request: ByteString(PrivateKey::generate().request(&self.subject)?.into_bytes()),
                signer_name: signers::KUBE_API_SERVER_CLIENT.into(),
                usages: Some(signers::CLIENT_USAGES.map(str::to_owned).to_vec()),
                ..CertificateSigningRequestSpec::default()
            },
            ..CertificateSigningRequest::default()
        };
        request.metadata.name = Some(unique(self.prefix));
        request.labels_mut().insert(labels::CLUSTER_NAME.into(), self.cluster.clone());
        request.labels_mut().insert(labels::ADDON_NAME.into(), self.addon.clone());
        Ok(Api::all(client.clone()).create(&PostParams::default(), &request).await?.name_any())
    }
}

/// A cluster with the add-on, and the client of its agent.
async fn joined(world: &World, cluster: &str) -> Result<Client> {
    world.cluster_named(cluster, None).await?;
    world.enable(cluster, READER).await?;
    let groups = [identities::cluster_group(cluster), identities::MANAGED_CLUSTERS_GROUP.to_owned()];
    let groups: Vec<_> = groups.iter().map(String::as_str).collect();
    client_for(&world.plane.kubeconfig_for_user(&identities::cluster_user(cluster, "agent1"), &groups)?).await
}

async fn wait_for_certificate(world: &World, name: &str) -> Result<CertificateSigningRequest> {
    let requests: Api<CertificateSigningRequest> = Api::all(world.client.clone());
    eventually("the request has its certificate", || async {
        let request = requests.get(name).await?;
        let has_certificate = request.status.as_ref().is_some_and(|status| status.certificate.is_some());
        Ok::<_, kube::Error>(has_certificate.then_some(request))
    })
    .await
}

#[tokio::test]
async fn the_clusters_agent_gets_a_certificate_for_the_add_ons_identity() -> Result<()> {
    let world = world().await?;
    let cluster = unique("asking");
    let agent = joined(&world, &cluster).await?;
    let name = Request::own(&cluster).send(&agent).await?;
    let request = wait_for_certificate(&world, &name).await?;
    let conditions = request.status.and_then(|status| status.conditions).unwrap_or_default();
    assert_eq!(conditions.len(), 1);
    assert_eq!((conditions[0].type_.as_str(), conditions[0].status.as_str()), ("Approved", "True"));
    assert_eq!(conditions[0].reason.as_deref(), Some("AutoApprovedByHubCSRApprovingController"));
    Ok(())
}

#[tokio::test]
async fn an_agent_of_a_cluster_that_is_not_accepted_gets_its_certificate_when_it_is() -> Result<()> {
    let world = world().await?;
    let (cluster, other) = (unique("unaccepted"), unique("accepted"));
    let (agent, agent_of_other) = (joined(&world, &cluster).await?, joined(&world, &other).await?);
    world.accept(&cluster, false).await?;
    world.condition(&cluster, READER, ["RegistrationApplied", "False", "PermissionConfigPending"]).await?;
    let name = Request::own(&cluster).send(&agent).await?;
    wait_for_certificate(&world, &Request::own(&other).send(&agent_of_other).await?).await?;
    world.everything_is_reconciled().await?;
    let request: CertificateSigningRequest = Api::all(world.client.clone()).get(&name).await?;
    assert!(request.status.and_then(|status| status.conditions).is_none());
    world.accept(&cluster, true).await?;
    wait_for_certificate(&world, &name).await.map(|_| ())
}

#[tokio::test]
async fn every_other_request_is_left_untouched() -> Result<()> {
    let world = world().await?;
    let cluster = unique("cluster1");
    // Its name begins like the other's.
    let longer = format!("{cluster}0");
    let agent = joined(&world, &cluster).await?;
    let agent_of_longer = joined(&world, &longer).await?;
    world.enable(&cluster, PLAIN).await?;
    let own = Request::own(&cluster);
    let of_addon = |addon: &str| {
        let Identity { user, groups, .. } = Identity::of_agent(&cluster, addon, "agent");
        Subject::new(user, groups)
    };
    let untouched = [
        // Somebody else asks: an agent of another cluster, an admin.
        own.send(&agent_of_longer).await?,
        own.send(&world.client).await?,
        // For another cluster, with the label of this one or of that.
        Request::own(&longer).send(&agent).await?,
        Request::own(&longer).with(|request| request.cluster.clone_from(&cluster)).send(&agent).await?,
        // For another add-on, or one without registration.
        own.with(|request| request.subject = of_addon("other")).send(&agent).await?,
        own.with(|request| (request.subject, request.addon) = (of_addon(PLAIN), PLAIN.into())).send(&agent).await?,
        // For more groups, or fewer.
        own.with(|request| request.subject.organizations.push("somebody:else".into())).send(&agent).await?,
        own.with(|request| request.subject.organizations.push(identities::cluster_group(&cluster)))
            .send(&agent)
            .await?,
        own.with(|request| request.subject.organizations.truncate(1)).send(&agent).await?,
        // For another agent of the add-on, for the cluster's own agent.
        own.with(|request| request.subject.common_name.push('2')).send(&agent).await?,
        own.with(|request| request.subject.common_name = identities::cluster_user(&cluster, "agent1"))
            .send(&agent)
            .await?,
        // Not named like one of an add-on; for an add-on or a cluster that is not there.
        own.with(|request| request.prefix = "csr").send(&agent).await?,
        own.with(|request| request.cluster = "nowhere".into()).send(&agent).await?,
    ];
    let last = own.send(&agent).await?;
    wait_for_certificate(&world, &last).await?;
    world.everything_is_reconciled().await?;
    let requests: Api<CertificateSigningRequest> = Api::all(world.client.clone());
    for (index, name) in untouched.iter().enumerate() {
        let conditions = requests.get(name).await?.status.and_then(|status| status.conditions);
        assert!(conditions.is_none_or(|conditions| conditions.is_empty()), "request {index}");
    }
    Ok(())
}

#[tokio::test]
async fn a_request_for_a_cluster_without_the_add_on_is_left_untouched() -> Result<()> {
    let world = world().await?;
    let (cluster, other) = (unique("without"), unique("with"));
    let agent = joined(&world, &cluster).await?;
    world.addons(&cluster).delete(READER, &Default::default()).await?;
    eventually("the add-on is gone", || async {
        world.addons(&cluster).get_opt(READER).await.map(|addon| addon.is_none())
    })
    .await?;
    let name = Request::own(&cluster).send(&agent).await?;
    let agent_of_other = joined(&world, &other).await?;
    let last = Request::own(&other).send(&agent_of_other).await?;
    wait_for_certificate(&world, &last).await?;
    world.everything_is_reconciled().await?;
    let request: CertificateSigningRequest = Api::all(world.client.clone()).get(&name).await?;
    assert!(request.status.and_then(|status| status.conditions).is_none());
    Ok(())
}

#[tokio::test]
async fn a_request_that_came_before_its_add_on_is_approved_when_the_add_on_comes() -> Result<()> {
    let world = world().await?;
    let cluster = unique("early");
    let agent = joined(&world, &cluster).await?;
    world.addons(&cluster).delete(READER, &Default::default()).await?;
    eventually("the add-on is gone", || async {
        world.addons(&cluster).get_opt(READER).await.map(|addon| addon.is_none())
    })
    .await?;
    let name = Request::own(&cluster).send(&agent).await?;
    // A later request of another cluster is approved, so this one was considered.
    let other = unique("later");
    let agent_of_other = joined(&world, &other).await?;
    wait_for_certificate(&world, &Request::own(&other).send(&agent_of_other).await?).await?;
    world.enable(&cluster, READER).await?;
    wait_for_certificate(&world, &name).await.map(|_| ())
}
