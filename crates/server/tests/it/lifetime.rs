//! A process reloads renewed credentials while it runs, and exits at once when it is asked to for the second time.

use std::path::Path;

use anyhow::Result;
use ocm_api::namespaces;
use ocm_testing::{
    ControlPlane, Process, Signal, TempDir,
    fault::{Fault, FaultyServer, Injection},
    unique, write_kubeconfig,
};

use crate::world::{AGENT_ACCOUNT, HUB_ACCOUNT, world};

/// Writes a kubeconfig with the token of a new account.
async fn login(plane: &ControlPlane, namespace: &str, account: &str, file: &Path) -> Result<()> {
    write_kubeconfig(&plane.kubeconfig_for_service_account(namespace, account).await?, file)
}

fn start(command: &str, dir: &TempDir, flags: &[&str], kubeconfig: &Path) -> Result<Process> {
    let log = dir.path().join(format!("{command}.log"));
    Process::build(command, crate::program::ocm(), log)
        .args([command, "--listen", "127.0.0.1:0", "--kubeconfig"])
        .arg(kubeconfig)
        .args(flags)
        .without_env("RUST_LOG")
        .start()
}

async fn takes_up(process: &Process, kubeconfig: &Path) -> Result<()> {
    let line = format!("reloaded the credentials kubeconfig={}", kubeconfig.display());
    process.wait_for_log(&line).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn hub_and_agent_reload_the_renewed_tokens_of_their_kubeconfigs_and_refuse_those_for_another_cluster()
-> Result<()> {
    let (world, dir) = (world().await?, TempDir::new("renewed")?);
    let file = |name: &str| dir.path().join(name);
    let (hub_file, own_file, spoke_file) = (file("hub"), file("own"), file("spoke"));
    let write = || async {
        login(world.hub_plane, namespaces::HUB, HUB_ACCOUNT, &hub_file).await?;
        login(world.managed_plane, namespaces::AGENT, AGENT_ACCOUNT, &own_file).await?;
        login(world.managed_plane, namespaces::AGENT, AGENT_ACCOUNT, &spoke_file).await
    };
    write().await?;
    let flags = ["--controllers", "shared-cluster-roles", "--disable-leader-election"];
    let hub = start("hub", &dir, &flags, &hub_file)?;
    let (spoke, hub_dir, bootstrap) = (spoke_file.to_string_lossy(), file("hub-dir"), hub_file.to_string_lossy());
    let namespace = unique("renewed");
    world.managed_plane.kubectl(&["create", "namespace", &namespace]).await?;
    let hub_dir = hub_dir.to_string_lossy();
    let flags = ["--disable-leader-election", "--namespace", &namespace, "--spoke-kubeconfig", &spoke];
    let flags = [&flags[..], &["--bootstrap-kubeconfig", &bootstrap, "--hub-kubeconfig-dir", &hub_dir]].concat();
    let agent = start("agent", &dir, &flags, &own_file)?;
    for process in [&hub, &agent] {
        process.wait_for_log("serving /healthz").await?;
    }
    write().await?;
    takes_up(&hub, &hub_file).await?;
    takes_up(&agent, &own_file).await?;
    takes_up(&agent, &spoke_file).await?;
    login(world.managed_plane, namespaces::AGENT, AGENT_ACCOUNT, &hub_file).await?;
    hub.wait_for_log("using the old").await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_gets_a_second_signal_exits_at_once() -> Result<()> {
    let (world, dir) = (world().await?, TempDir::new("impatient")?);
    let server = FaultyServer::start(world.hub_plane).await?;
    let kubeconfig = world.hub_plane.kubeconfig_for_service_account(namespaces::HUB, HUB_ACCOUNT).await?;
    let file = dir.path().join("kubeconfig");
    write_kubeconfig(&server.reached_through(kubeconfig), &file)?;
    let hub = start("hub", &dir, &["--namespace", &unique("nowhere")], &file)?;
    hub.wait_for_log("serving /healthz").await?;
    // Its request for the lease to release gets no response.
    server.inject(Fault::new(Injection::Hang).times(usize::MAX));
    hub.signal(Signal::TERM)?;
    hub.wait_for_log("asked to end, finishing").await?;
    hub.signal(Signal::TERM)?;
    assert_eq!(hub.wait().await?.code(), Some(1));
    assert!(hub.log()?.contains("asked to end again"), "{}", hub.log_tail());
    Ok(())
}
