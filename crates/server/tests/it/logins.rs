//! How a process of an agent reaches its hub and its cluster, and logs in there: proxies with logins, tokens in files, exec
//! plugins, a server's own certificate as its authority. On real connections.

use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf};

use anyhow::{Context as _, Result};
use kube::config::{AuthInfo, Cluster, ExecConfig, Kubeconfig};
use ocm_testing::{ConnectProxy, ControlPlane, Process, ProcessBuilder, TempDir, unique};

use crate::world::{World, world};

/// A process of an agent that is to be started: its folder and its kubeconfigs.
struct Login {
    world: World,
    cluster: String,
    namespace: String,
    dir: TempDir,
    bootstrap: Kubeconfig,
    own: Kubeconfig,
}

impl Login {
    async fn new() -> Result<Self> {
        let (world, cluster) = (world().await?, unique("login"));
        let (bootstrap, own, namespace) = world.agent_identity().await?;
        Ok(Self { dir: TempDir::new(&cluster)?, world, cluster, namespace, bootstrap, own })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn build(&self) -> Result<ProcessBuilder> {
        let process =
            crate::program::agent(self.dir.path(), &self.cluster, &self.namespace, &self.bootstrap, &self.own)?;
        Ok(process.args(["--disable-leader-election", "--components=registration"]))
    }

    /// Waits until the cluster is available; an error contains the end of the agent's log.
    async fn joins(&self, agent: &Process) -> Result<()> {
        self.world.admit(&self.cluster).await.with_context(|| agent.log_tail())
    }

    /// The kubeconfig that the agent made for the hub.
    fn for_hub(&self) -> Result<Kubeconfig> {
        Ok(Kubeconfig::read_from(self.file("hub/kubeconfig"))?)
    }
}

fn cluster_of(kubeconfig: &mut Kubeconfig) -> Result<&mut Cluster> {
    kubeconfig.clusters[0].cluster.as_mut().context("no cluster")
}

fn user_of(kubeconfig: &mut Kubeconfig) -> Result<&mut AuthInfo> {
    kubeconfig.auth_infos[0].auth_info.as_mut().context("no user")
}

/// The server under a name that only proxies resolve.
fn reached_as(kubeconfig: &mut Kubeconfig, name: &str) -> Result<String> {
    let cluster = cluster_of(kubeconfig)?;
    let (_, port) = cluster.server.as_ref().and_then(|server| server.rsplit_once(':')).context("no port")?;
    let target = format!("{name}:{port}");
    cluster.server = Some(format!("https://{target}"));
    Ok(target)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_hub_is_reached_through_the_proxy_of_the_environment_and_the_cluster_through_that_of_its_kubeconfig()
-> Result<()> {
    let mut login = Login::new().await?;
    let (certificate, key) = login.world.managed_plane.serving_certificate(&["127.0.0.1"])?;
    let of_hub = ConnectProxy::start("me:p@ss#1").await?;
    let of_cluster = ConnectProxy::start_with_tls("you:p/2", &certificate, &key).await?;
    let hub = reached_as(&mut login.bootstrap, "kubernetes.default.svc")?;
    let cluster = reached_as(&mut login.own, "kubernetes.default")?;
    cluster_of(&mut login.own)?.proxy_url = Some(format!("https://you:p%2F2@{}", of_cluster.address()));
    let environment = format!("http://me:p%40ss%231@{}", of_hub.address());
    // NO_PROXY does not concern the proxy of a kubeconfig.
    let agent = login.build()?.env("HTTPS_PROXY", environment).env("NO_PROXY", "kubernetes.default").start()?;
    login.joins(&agent).await?;
    assert_eq!((of_hub.targets(), of_cluster.targets()), (vec![hub], vec![cluster]));
    assert_eq!((of_hub.refused(), of_cluster.refused()), (0, 0));
    assert_eq!(cluster_of(&mut login.for_hub()?)?.proxy_url, None);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_proxy_of_the_bootstrap_kubeconfig_is_the_hubs_and_stays_with_its_login() -> Result<()> {
    let mut login = Login::new().await?;
    let proxy = ConnectProxy::start("me:p@ss").await?;
    let hub = reached_as(&mut login.bootstrap, "kubernetes.default.svc")?;
    let url = format!("http://me:p%40ss@{}", proxy.address());
    cluster_of(&mut login.bootstrap)?.proxy_url = Some(url.clone());
    let agent = login.build()?.env("NO_PROXY", "*").start()?;
    login.joins(&agent).await?;
    assert_eq!((proxy.targets(), proxy.refused()), (vec![hub], 0));
    assert_eq!(cluster_of(&mut login.for_hub()?)?.proxy_url, Some(url));
    assert!(!agent.log()?.contains("p%40ss") && !agent.log()?.contains("p@ss"), "{}", agent.log_tail());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_that_refuses_the_login_is_named_with_what_to_check() -> Result<()> {
    let mut login = Login::new().await?;
    let proxy = ConnectProxy::start("me:right").await?;
    reached_as(&mut login.bootstrap, "kubernetes.default.svc")?;
    cluster_of(&mut login.bootstrap)?.proxy_url = Some(format!("http://me:SECRET@{}", proxy.address()));
    let agent = login.build()?.start()?;
    let line = agent.wait_for_log("cannot create the ManagedCluster on the hub").await?;
    assert!(line.contains("the proxy does not connect to it") && line.contains("check proxy-url"), "{line}");
    assert!(!agent.log()?.contains("SECRET"), "{}", agent.log_tail());
    assert!(proxy.refused() > 0 && proxy.targets().is_empty());

    cluster_of(&mut login.bootstrap)?.proxy_url = Some("http://me:SECRET#1@proxy:3128".to_owned());
    let agent = login.build()?.start()?;
    let line = agent.wait_for_log("cluster.proxy-url has a user or a password with an unescaped #").await?;
    assert!(line.starts_with("error: ") && line.contains("%23") && !line.contains("SECRET"), "{line}");
    Ok(())
}

/// Trusts the certificate that an API server shows, which is no authority, from a file.
fn trust_only(kubeconfig: &mut Kubeconfig, plane: &ControlPlane) -> Result<String> {
    let (cluster, file) = (cluster_of(kubeconfig)?, plane.dir().join("server.crt").to_string_lossy().into_owned());
    cluster.certificate_authority_data = None;
    cluster.certificate_authority = Some(file.clone());
    Ok(file)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exec_plugin_a_token_in_a_file_and_the_servers_own_certificates_are_enough_to_join() -> Result<()> {
    let mut login = Login::new().await?;
    let token_of = |kubeconfig: &Kubeconfig| -> Result<String> {
        let user = serde_json::to_value(&kubeconfig.auth_infos[0].auth_info)?;
        Ok(user["token"].as_str().context("no token")?.to_owned())
    };
    let plugin = login.file("plugin");
    let credential = serde_json::json!({
        "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
        "status": {"token": token_of(&login.bootstrap)?},
    });
    fs::write(&plugin, format!("#!/bin/sh\necho '{credential}'\n"))?;
    fs::set_permissions(&plugin, fs::Permissions::from_mode(0o700))?;
    *user_of(&mut login.bootstrap)? = AuthInfo {
        exec: Some(ExecConfig {
            api_version: Some("client.authentication.k8s.io/v1".to_owned()),
            command: Some(plugin.to_string_lossy().into_owned()),
            ..serde_json::from_value(serde_json::json!({}))?
        }),
        ..AuthInfo::default()
    };
    // Relative to the kubeconfig, and with a line break at the end.
    fs::write(login.file("token"), format!("{}\n", token_of(&login.own)?))?;
    *user_of(&mut login.own)? = AuthInfo { token_file: Some("token".to_owned()), ..AuthInfo::default() };
    let shown = trust_only(&mut login.bootstrap, login.world.hub_plane)?;
    trust_only(&mut login.own, login.world.managed_plane)?;
    let agent = login.build()?.start()?;
    login.joins(&agent).await?;
    let mut own = login.for_hub()?;
    assert_eq!(cluster_of(&mut own)?.certificate_authority, Some(shown));
    let user = user_of(&mut own)?;
    assert!(user.exec.is_none() && user.client_certificate.is_some());
    Ok(())
}
