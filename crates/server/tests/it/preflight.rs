//! What a process of an agent says at its start when something that it needs is missing: the cause, and the next step.

use anyhow::{Context as _, Result};
use kube::config::Kubeconfig;
use ocm_testing::{Port, Process, TempDir, unique, write_kubeconfig};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use crate::world::{World, world};

/// Starts an agent that bootstraps with this kubeconfig.
async fn start(world: &World, dir: &TempDir, cluster: &str, bootstrap: &Kubeconfig) -> Result<Process> {
    let file = |name: &str| dir.path().join(format!("{cluster}-{name}"));
    let (_, own, namespace) = world.agent_identity().await?;
    write_kubeconfig(bootstrap, file("bootstrap"))?;
    write_kubeconfig(&own, file("own"))?;
    Process::build("ocm agent", crate::program::ocm(), file("log"))
        .args(["agent", "--disable-leader-election", "--listen=127.0.0.1:0", "--namespace", &namespace])
        .args(["--spoke-cluster-name", cluster, "--components=registration", "--bootstrap-kubeconfig"])
        .arg(file("bootstrap"))
        .arg("--kubeconfig")
        .arg(file("own"))
        .arg("--hub-kubeconfig-dir")
        .arg(file("hub"))
        .without_env("RUST_LOG")
        .start()
}

/// Waits until the agent says why it cannot register its cluster, in these words.
async fn says(agent: &Process, words: &[&str]) -> Result<()> {
    let line = agent.wait_for_log("cannot create the ManagedCluster on the hub: ").await?;
    for word in words {
        assert!(line.contains(word), "{word:?} is not in: {line}");
    }
    Ok(())
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
    says(&agent, &["cannot be reached: the connection was refused", "check that the server runs", "curl --insecure"])
        .await?;

    let unresolved = start(&world, &dir, &unique("unresolved"), &at(&good, "https://hub.invalid:6443")?).await?;
    says(&unresolved, &["its host name cannot be resolved", "getent hosts hub.invalid"]).await?;

    let mut untrusted = good.clone();
    let authority = world.managed_plane.admin_config().clusters[0].cluster.clone().context("no cluster")?;
    let trusts = untrusted.clusters[0].cluster.as_mut().context("no cluster")?;
    trusts.certificate_authority_data = authority.certificate_authority_data;
    let agent = start(&world, &dir, &unique("untrusted"), &untrusted).await?;
    says(&agent, &["not issued by the certificate authority that the kubeconfig names", "certificate-authority-data"])
        .await?;

    let mut unknown = good.clone();
    unknown.auth_infos[0].auth_info.as_mut().context("no user")?.token = Some("nonsense".to_owned().into());
    let agent = start(&world, &dir, &unique("unknown"), &unknown).await?;
    says(&agent, &["(401)", "clusteradm get token"]).await?;

    let account = unique("nobody");
    world.hub_plane.kubectl(&["create", "serviceaccount", &account, "--namespace=default"]).await?;
    let nobody = world.hub_plane.kubeconfig_for_service_account("default", &account).await?;
    let agent = start(&world, &dir, &unique("nobody"), &nobody).await?;
    says(&agent, &["cannot get resource \"managedclusters\"", "open-cluster-management:bootstrap"]).await?;

    let agent = start(&world, &dir, &unique("no-hub"), &world.managed_plane.admin_config()).await?;
    says(&agent, &["this server is no hub", "ocm crds --hub"]).await
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
