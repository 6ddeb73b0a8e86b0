//! The log of an agent that cannot start because something is missing: the cause, and the next step.

use anyhow::{Context as _, Result};
use kube::config::Kubeconfig;
use ocm_testing::{Port, Process, Seen, TempDir, eventually, unique};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use crate::world::{World, world};

/// Starts an agent that bootstraps with this kubeconfig.
async fn start(world: &World, dir: &TempDir, cluster: &str, bootstrap: &Kubeconfig) -> Result<Process> {
    let (_, own, namespace) = world.agent_identity().await?;
    let process = crate::program::agent(&dir.path().join(cluster), cluster, &namespace, bootstrap, &own)?;
    process.args(["--disable-leader-election", "--components=registration"]).start()
}

/// Waits until the agent logs why it cannot register its cluster, with these words. An API server that does not know a user closes
/// the connection, which the client may notice before the answer: then the next attempt says why.
async fn logs(agent: &Process, words: &[&str]) -> Result<()> {
    let is_expected = |line: &&str| {
        line.contains("cannot create the ManagedCluster on the hub: ") && words.iter().all(|word| line.contains(word))
    };
    eventually(&format!("the agent logs {words:?}"), || async {
        let log = agent.log()?;
        let found = log.lines().any(|line| is_expected(&line));
        anyhow::Ok(if found { Seen::Settled(()) } else { Seen::NotYet(log) })
    })
    .await
}

fn at(kubeconfig: &Kubeconfig, server: &str) -> Result<Kubeconfig> {
    let mut changed = kubeconfig.clone();
    changed.clusters[0].cluster.as_mut().context("no cluster")?.server = Some(server.to_owned());
    Ok(changed)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_cannot_join_says_why_and_what_to_do() -> Result<()> {
    let (world, dir) = (world().await?, TempDir::new("preflight")?);
    let (good, _, _) = world.agent_identity().await?;

    let port = Port::free()?;
    let closed = at(&good, &format!("https://127.0.0.1:{}", port.number()))?;
    let agent = start(&world, &dir, &unique("closed"), &closed).await?;
    logs(&agent, &["cannot be reached: the connection was refused", "check that the server runs", "curl --insecure"])
        .await?;

    let unresolved = start(&world, &dir, &unique("unresolved"), &at(&good, "https://hub.invalid:6443")?).await?;
    logs(&unresolved, &["its host name cannot be resolved", "getent hosts hub.invalid"]).await?;

    let mut untrusted = good.clone();
    let authority = world.managed_plane.admin_config().clusters[0].cluster.clone().context("no cluster")?;
    let trusts = untrusted.clusters[0].cluster.as_mut().context("no cluster")?;
    trusts.certificate_authority_data = authority.certificate_authority_data;
    let agent = start(&world, &dir, &unique("untrusted"), &untrusted).await?;
    logs(&agent, &["not issued by the certificate authority that the kubeconfig names", "certificate-authority-data"])
        .await?;

    let mut unknown = good.clone();
    unknown.auth_infos[0].auth_info.as_mut().context("no user")?.token = Some("nonsense".to_owned().into());
    let agent = start(&world, &dir, &unique("unknown"), &unknown).await?;
    logs(&agent, &["(401)", "clusteradm get token"]).await?;

    let account = unique("nobody");
    world.hub_plane.kubectl(&["create", "serviceaccount", &account, "--namespace=default"]).await?;
    let nobody = world.hub_plane.kubeconfig_for_service_account("default", &account).await?;
    let agent = start(&world, &dir, &unique("nobody"), &nobody).await?;
    logs(&agent, &["cannot get resource \"managedclusters\"", "open-cluster-management:bootstrap"]).await?;

    let agent = start(&world, &dir, &unique("no-hub"), &world.managed_plane.admin_config()).await?;
    logs(&agent, &["this server is no hub", "ocm crds --hub"]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_may_not_read_certificate_requests_names_the_right() -> Result<()> {
    let (world, dir, name) = (world().await?, TempDir::new("right")?, unique("right"));
    let kubectl = async |args: &[&str]| world.hub_plane.kubectl(args).await;
    kubectl(&["create", "serviceaccount", &name, "--namespace=default"]).await?;
    kubectl(&["create", "clusterrole", &name, "--verb=get,create", "--resource=managedclusters"]).await?;
    let (role, account) = (format!("--clusterrole={name}"), format!("--serviceaccount=default:{name}"));
    kubectl(&["create", "clusterrolebinding", &name, &role, &account]).await?;
    let kubeconfig = world.hub_plane.kubeconfig_for_service_account("default", &name).await?;
    let agent = start(&world, &dir, &name, &kubeconfig).await?;
    let line = agent.wait_for_log("cannot request a certificate from the hub").await?;
    assert!(
        line.contains("cannot list resource \"certificatesigningrequests\"") && line.contains("deploy/hub.yaml"),
        "{line}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_under_the_name_of_another_one_that_is_connected_says_that_the_name_is_taken() -> Result<()> {
    let (world, dir) = (world().await?, TempDir::new("taken")?);
    let mut first = world.join().await?;
    let (bootstrap, _, _) = world.agent_identity().await?;
    let second = start(&world, &dir, &first.cluster, &bootstrap).await?;
    let line = second.wait_for_log("choose another name with --spoke-cluster-name").await?;
    assert!(line.contains(&format!("is connected to the hub as cluster {}", first.cluster)), "{line}");
    first.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_whose_clock_shows_another_time_is_named() -> Result<()> {
    let (world, dir) = (world().await?, TempDir::new("clock")?);
    let (good, _, _) = world.agent_identity().await?;
    let agent = start(&world, &dir, &unique("clock"), &at(&good, &server_of_the_past().await?)?).await?;
    let line = agent.wait_for_log("the clock of this machine is").await?;
    assert!(line.contains("ahead of that of the API server: set both clocks"), "{line}");
    Ok(())
}

/// A server that answers every request, in 2020.
async fn server_of_the_past() -> Result<String> {
    const ANSWER: &[u8] = b"HTTP/1.1 404 Not Found\r\nDate: Wed, 01 Jan 2020 00:00:00 GMT\r\nContent-Length: 0\r\n\r\n";
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                while stream.read(&mut [0; 4096]).await.is_ok_and(|count| count > 0) {
                    stream.write_all(ANSWER).await?;
                }
                std::io::Result::Ok(())
            });
        }
    });
    Ok(format!("http://{address}"))
}
