//! The hub and the agent under test, as real processes on real control planes.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use kube::Client;
use ocm_testing::{ControlPlane, Process, TempDir};

use crate::{admin, figures::print, megabytes};

pub(crate) const CLUSTER: &str = "cluster1";
const HUB_MANIFESTS: &str = include_str!("../../deploy/hub.yaml");
const AGENT_MANIFESTS: &str = include_str!("../../deploy/agent.yaml");

pub(crate) struct Product {
    pub(crate) hub: ControlPlane,
    pub(crate) managed: ControlPlane,
    folder: TempDir,
    ocm: PathBuf,
    hub_process: Option<Process>,
    agent_process: Option<Process>,
}

impl Product {
    /// Control planes with everything installed, and nothing of ours running.
    pub(crate) async fn start() -> Result<Self> {
        Self::with(false).await
    }

    /// The same, with control planes that log all writes.
    pub(crate) async fn with_audit_logs() -> Result<Self> {
        Self::with(true).await
    }

    async fn with(audit: bool) -> Result<Self> {
        let plane = |name: &'static str| ControlPlane::builder().name(name).audit(audit).start();
        let (hub, managed) = tokio::try_join!(plane("hub"), plane(CLUSTER))?;
        let ocm = ocm_binary()?;
        install_hub(&hub, &ocm).await?;
        install(&managed, &ocm, "--managed", AGENT_MANIFESTS).await?;
        let folder = TempDir::new("bench")?;
        Ok(Self { hub, managed, folder, ocm, hub_process: None, agent_process: None })
    }

    pub(crate) fn binary_sizes(&self) -> Result<Vec<(&'static str, u64)>> {
        let size = |name: &'static str| {
            let path = self.ocm.with_file_name(name);
            let file = std::fs::metadata(&path).with_context(|| format!("failed to look at {}", path.display()))?;
            Ok((name, file.len()))
        };
        ["ocm", "clusteradm"].into_iter().map(size).collect()
    }

    /// Starts the hub, then the agent; how long the agent took until its cluster is available, with
    /// an administrator who approves and accepts at once.
    pub(crate) async fn join(&mut self) -> Result<Duration> {
        self.hub_process = Some(start_hub(&self.hub, &self.ocm, &self.folder).await?);
        let admin = self.hub.client().await?;
        let bootstrap = self.folder.path().join("bootstrap.kubeconfig");
        write_bootstrap(&self.hub, &bootstrap).await?;
        let own = self.folder.path().join("agent.kubeconfig");
        self.managed.write_login("open-cluster-management-agent", "klusterlet-work-sa", &own).await?;
        let accepting = tokio::spawn(admin::accept(admin.clone(), CLUSTER));
        let started = Instant::now();
        self.agent_process = Some(self.start_agent(&bootstrap, &own)?);
        let available = admin::until_available(&admin, CLUSTER).await;
        let took = started.elapsed();
        available.context("the cluster did not become available")?;
        accepting.await??;
        Ok(took)
    }

    fn start_agent(&self, bootstrap: &Path, own: &Path) -> Result<Process> {
        Process::build("ocm agent", &self.ocm, self.folder.path().join("agent.log"))
            .args(["agent", "--disable-leader-election", "--listen", "127.0.0.1:0", "--spoke-cluster-name", CLUSTER])
            .args(["--namespace", "open-cluster-management-agent", "--bootstrap-kubeconfig"])
            .arg(bootstrap)
            .arg("--kubeconfig")
            .arg(own)
            .arg("--hub-kubeconfig-dir")
            .arg(self.folder.path().join("hub-kubeconfig"))
            .start()
    }

    pub(crate) async fn hub_client(&self) -> Result<Client> {
        self.hub.client().await
    }

    /// Waits until what just happened has been digested: memory is measured at rest.
    pub(crate) async fn settle(&self) -> Result<()> {
        tokio::time::sleep(Duration::from_secs(5)).await;
        Ok(())
    }

    pub(crate) fn agent_cpu(&self) -> Result<Duration> {
        self.agent_process.as_ref().context("the agent does not run")?.cpu_time()
    }

    pub(crate) fn print_memory(&self, when: &str) -> Result<()> {
        for process in [&self.hub_process, &self.agent_process].into_iter().flatten() {
            let memory = process.memory()?;
            let name = process.name();
            print(&format!("{name}, resident memory, {when}"), megabytes(memory.resident_kb * 1024), "MB");
            print(&format!("{name}, anonymous memory, {when}"), megabytes(memory.anonymous_kb * 1024), "MB");
        }
        Ok(())
    }
}

/// The `ocm` that was built with this program.
pub(crate) fn ocm_binary() -> Result<PathBuf> {
    let own = std::env::current_exe().context("failed to find this program's own folder")?;
    Ok(own.with_file_name("ocm"))
}

pub(crate) async fn install_hub(hub: &ControlPlane, ocm: &Path) -> Result<()> {
    install(hub, ocm, "--hub", HUB_MANIFESTS).await
}

/// Starts `ocm hub` under its service account.
pub(crate) async fn start_hub(hub: &ControlPlane, ocm: &Path, folder: &TempDir) -> Result<Process> {
    start_hub_with(hub, ocm, folder, &[]).await
}

/// Starts `ocm hub` under its service account, with more arguments.
pub(crate) async fn start_hub_with(
    hub: &ControlPlane,
    ocm: &Path,
    folder: &TempDir,
    arguments: &[&str],
) -> Result<Process> {
    let kubeconfig = folder.path().join("hub.kubeconfig");
    hub.write_login("open-cluster-management-hub", "hub-controller-sa", &kubeconfig).await?;
    let process = Process::build("ocm hub", ocm, folder.path().join("hub.log"))
        // What it logs is waited for.
        .without_env("RUST_LOG")
        .args(["hub", "--disable-leader-election", "--listen", "127.0.0.1:0"])
        .args(["--namespace", "open-cluster-management-hub", "--kubeconfig"])
        .arg(kubeconfig)
        .args(arguments)
        .start()?;
    process.wait_for_log("serving /healthz").await?;
    Ok(process)
}

/// Writes the kubeconfig with which agents ask to join.
pub(crate) async fn write_bootstrap(hub: &ControlPlane, path: &Path) -> Result<()> {
    hub.write_login("open-cluster-management", "agent-registration-bootstrap", path).await
}

async fn install(plane: &ControlPlane, ocm: &Path, side: &str, manifests: &str) -> Result<()> {
    let crds = tokio::process::Command::new(ocm).args(["crds", side]).output().await;
    let crds = crds.with_context(|| format!("failed to start {}", ocm.display()))?;
    plane.install(&String::from_utf8(crds.stdout)?, manifests).await
}
