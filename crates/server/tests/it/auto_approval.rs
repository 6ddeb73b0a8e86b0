//! A process of `ocm hub` that accepts clusters automatically.

use anyhow::Result;
use ocm_api::{
    conditions::cluster::{AVAILABLE, HUB_ACCEPTED},
    crds::Side,
};
use ocm_testing::{Process, Seen, TempDir, eventually, unique, write_kubeconfig};
use serde_json::json;

use crate::world::{AGENT_MANIFESTS, World, install_on};

const RIGHTS: &str = include_str!("../../../../deploy/auto-approval.yaml");
const BOOTSTRAP_USER: &str = "system:serviceaccount:open-cluster-management:agent-registration-bootstrap";

/// A hub that has its kubeconfig and its log in this folder.
fn start_hub(dir: &TempDir, log: &str) -> Result<Process> {
    let process = Process::build("hub", crate::program::ocm(), dir.path().join(log)).without_env("RUST_LOG");
    let process = process.args(["hub", "--listen=127.0.0.1:0", "--disable-leader-election"]);
    let process = process.arg("--kubeconfig").arg(dir.path().join("kubeconfig"));
    let process = process.arg("--feature-gates=ManagedClusterAutoApproval=true");
    process.arg(format!("--auto-approved-csr-users={BOOTSTRAP_USER}")).start()
}

/// The numbers of approved requests and of all requests of the cluster.
async fn approved(world: &World, cluster: &str) -> Result<(usize, usize)> {
    let requests = world.requests(cluster).await?;
    let is_approved = |request: &&k8s_openapi::api::certificates::v1::CertificateSigningRequest| {
        request.status.as_ref().is_some_and(|status| status.conditions.is_some())
    };
    Ok((requests.iter().filter(is_approved).count(), requests.len()))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_joins_without_an_administrator_once_the_hub_may_accept_clusters() -> Result<()> {
    let world = World::without_hub().await?;
    install_on(world.hub_plane, Side::Managed, AGENT_MANIFESTS).await?;
    let dir = TempDir::new("auto-approval")?;
    write_kubeconfig(&world.hub_identity().await?, dir.path().join("kubeconfig"))?;

    let hub = start_hub(&dir, "first.log")?;
    let mut agent = world.start_agent(&unique("joining")).await?;
    hub.wait_for_log("kubectl apply --server-side -f deploy/auto-approval.yaml").await?;
    assert!(!world.clusters().get(&agent.cluster).await?.spec.hub_accepts_client);
    assert_eq!(approved(&world, &agent.cluster).await?.0, 0);
    drop(hub);

    world.hub_plane.apply_yaml(RIGHTS).await?;
    let _hub = start_hub(&dir, "second.log")?;
    let cluster = agent.cluster.clone();
    eventually("the cluster is available", || world.cluster_condition(&cluster, AVAILABLE)).await?;
    agent.stop().await?;

    // An agent that bootstraps under the name of a denied cluster gets no certificate.
    let deny = json!({"spec": {"hubAcceptsClient": false}}).to_string();
    world.hub_plane.kubectl(&["patch", "managedcluster", &cluster, "--type=merge", "-p", &deny]).await?;
    eventually("the cluster is denied", || async {
        let seen = world.cluster_condition(&cluster, HUB_ACCEPTED).await?;
        anyhow::Ok(if matches!(seen, Seen::Settled(())) {
            Seen::NotYet("it is accepted".into())
        } else {
            Seen::Settled(())
        })
    })
    .await?;
    let before = approved(&world, &cluster).await?;
    let mut second = world.start_agent(&cluster).await?;
    eventually("the second agent has asked for a certificate", || async {
        anyhow::Ok(approved(&world, &cluster).await?.1 > before.1)
    })
    .await?;
    let mut other = world.start_agent(&unique("other")).await?;
    eventually("another cluster is available", || world.cluster_condition(&other.cluster, AVAILABLE)).await?;
    assert_eq!(approved(&world, &cluster).await?.0, before.0);
    other.stop().await?;
    second.stop().await
}
