//! `clusteradm accept` while requests fail, and while others change what it has read.

use std::path::PathBuf;

use anyhow::Result;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::{
    Api,
    api::{DeleteParams, ObjectMeta, PostParams},
};
use ocm_api::{cluster::v1::ManagedCluster, identities};
use ocm_testing::{
    TempDir, eventually,
    fault::{Asked, Fault, FaultyServer, Injection},
    unique, write_kubeconfig,
};

use crate::hub::{bootstrap_client, certificate_request, hub, in_process, register, request_certificate};

/// A hub behind a server that can fail, and the administrator's kubeconfig for it.
struct World {
    server: FaultyServer,
    kubeconfig: PathBuf,
    admin: kube::Client,
    agent: kube::Client,
    _folder: TempDir,
}

async fn world() -> Result<World> {
    let hub = hub().await?;
    let (server, folder) = (FaultyServer::start(hub).await?, TempDir::new("clusteradm")?);
    let kubeconfig = folder.path().join("config");
    write_kubeconfig(&server.reached_through(hub.admin_config()), &kubeconfig)?;
    Ok(World { server, kubeconfig, admin: hub.client().await?, agent: bootstrap_client(hub).await?, _folder: folder })
}

impl World {
    /// A cluster that has registered, and its agent's request.
    async fn registered(&self) -> Result<(String, String)> {
        let cluster = unique("troubled");
        register(&self.agent, &cluster).await?;
        let csr = request_certificate(&self.agent, &cluster, "a").await?;
        Ok((cluster, csr))
    }

    async fn is_accepted(&self, cluster: &str) -> Result<bool> {
        Ok(Api::<ManagedCluster>::all(self.admin.clone()).get(cluster).await?.spec.hub_accepts_client)
    }

    async fn is_undecided(&self, csr: &str) -> Result<bool> {
        let csr = Api::<CertificateSigningRequest>::all(self.admin.clone()).get(csr).await?;
        Ok(csr.status.is_none_or(|status| status.conditions.is_none()))
    }

    async fn until_held(&self) -> Result<()> {
        eventually("the request is held", || async { self.server.outstanding() == 0 }).await
    }
}

fn is_read_of_clusters(asked: &Asked) -> bool {
    asked.is_read() && asked.path.contains("/managedclusters/")
}

fn is_patch_of(asked: &Asked, resource: &str) -> bool {
    asked.method == "PATCH" && asked.is_about(resource)
}

#[tokio::test]
async fn waiting_continues_while_the_hub_does_not_respond() -> Result<()> {
    let world = world().await?;
    let (cluster, csr) = world.registered().await?;
    let is_discovery = |asked: &Asked| asked.path == "/apis/cluster.open-cluster-management.io/v1";
    let faults = [
        Fault::new(Injection::answer(503, "ServiceUnavailable")).when(is_discovery),
        Fault::new(Injection::answer(500, "InternalError")).when(is_read_of_clusters),
        Fault::new(Injection::Cut).when(is_read_of_clusters),
        Fault::new(Injection::answer(503, "ServiceUnavailable")).when(|asked| is_patch_of(asked, "approval")),
        Fault::new(Injection::answer(504, "Timeout")).when(|asked| is_patch_of(asked, "managedclusters")),
    ];
    faults.into_iter().for_each(|fault| world.server.inject(fault));
    let ended = in_process(&world.kubeconfig, &["accept", "--clusters", &cluster, "--wait"]).await;
    assert!(ended.success && world.server.outstanding() == 0, "{ended:?}");
    assert!(ended.stdout.contains(&format!("CSR {csr} approved\n")), "{ended:?}");
    ended.assert_noted(&["trying again"]);
    assert!(world.is_accepted(&cluster).await?);
    Ok(())
}

#[tokio::test]
async fn a_failure_that_waiting_cannot_resolve_ends_the_wait_at_once() -> Result<()> {
    let world = world().await?;
    let (cluster, _) = world.registered().await?;
    world.server.inject(Fault::new(Injection::answer(403, "Forbidden")).when(is_read_of_clusters));
    let ended = in_process(&world.kubeconfig, &["accept", "--clusters", &cluster, "--wait"]).await;
    ended.assert_failed_with(&[&format!("failed to read managed cluster {cluster}")]);
    Ok(())
}

#[tokio::test]
async fn without_wait_a_failure_of_the_hub_is_one_of_the_command() -> Result<()> {
    let world = world().await?;
    let (cluster, _) = world.registered().await?;
    world.server.inject(Fault::new(Injection::answer(500, "InternalError")).when(is_read_of_clusters));
    let ended = in_process(&world.kubeconfig, &["accept", "--clusters", &cluster]).await;
    assert!(!ended.success && ended.stderr.contains("failed to read managed cluster"), "{ended:?}");
    Ok(())
}

#[tokio::test]
async fn a_cluster_that_is_replaced_after_it_was_read_is_read_again() -> Result<()> {
    let world = world().await?;
    let (cluster, csr) = world.registered().await?;
    world.server.inject(Fault::new(Injection::Hold).when(|asked| is_patch_of(asked, "managedclusters")));
    let accept = async { Ok(in_process(&world.kubeconfig, &["accept", "--clusters", &cluster]).await) };
    let replace = async {
        world.until_held().await?;
        Api::<CertificateSigningRequest>::all(world.admin.clone()).delete(&csr, &DeleteParams::default()).await?;
        Api::<ManagedCluster>::all(world.admin.clone()).delete(&cluster, &DeleteParams::default()).await?;
        register(&world.agent, &cluster).await?;
        world.server.release();
        anyhow::Ok(())
    };
    let (ended, ()) = tokio::try_join!(accept, replace)?;
    // The approved request was that of the former cluster.
    ended.assert_failed_with(&[&format!("no csr is approved yet for cluster {cluster}")]);
    Ok(())
}

#[tokio::test]
async fn a_request_that_is_replaced_after_it_was_checked_is_not_approved() -> Result<()> {
    let world = world().await?;
    let (cluster, csr) = world.registered().await?;
    world.server.inject(Fault::new(Injection::Hold).when(|asked| is_patch_of(asked, "approval")));
    let accept = async { Ok(in_process(&world.kubeconfig, &["accept", "--clusters", &cluster]).await) };
    let replace = async {
        world.until_held().await?;
        Api::<CertificateSigningRequest>::all(world.admin.clone()).delete(&csr, &DeleteParams::default()).await?;
        let groups = [identities::cluster_group(&cluster), "system:nodes".to_owned()];
        let mut greedy = certificate_request(&cluster, &identities::cluster_user(&cluster, "a"), &groups)?;
        greedy.metadata = ObjectMeta { name: Some(csr.clone()), generate_name: None, ..greedy.metadata };
        Api::all(world.agent.clone()).create(&PostParams::default(), &greedy).await?;
        world.server.release();
        anyhow::Ok(())
    };
    let (ended, ()) = tokio::try_join!(accept, replace)?;
    ended.assert_noted(&["group system:nodes"]);
    assert!(!ended.success && world.is_undecided(&csr).await?, "{ended:?}");
    Ok(())
}
