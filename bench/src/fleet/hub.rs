//! The hub of a fleet: `ocm hub` on a real control plane.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use kube::{Client, Config, config::KubeConfigOptions};
use ocm_testing::{AuditLog, ControlPlane, Part, Process, TempDir};

use crate::product;

pub(super) struct Hub {
    pub(super) process: Process,
    installed: Installed,
}

/// A control plane with everything that `ocm hub` needs, before it runs.
pub(super) struct Installed {
    pub(super) plane: ControlPlane,
    ocm: PathBuf,
    folder: TempDir,
    bootstrap: PathBuf,
}

impl Installed {
    pub(super) async fn new() -> Result<Self> {
        // By itself it makes 20 requests a second for each of its controllers, so it would be the
        // signing of certificates that is measured.
        let unthrottled =
            |name: &str, builder: ocm_testing::ControlPlaneBuilder| builder.flag(Part::ControllerManager, name, "2000");
        let builder = ControlPlane::builder().name("fleet-hub").audit(true);
        let plane = unthrottled("kube-api-burst", unthrottled("kube-api-qps", builder)).start().await?;
        let ocm = product::ocm_binary()?;
        product::install_hub(&plane, &ocm).await?;
        let folder = TempDir::new("fleet")?;
        let bootstrap = folder.path().join("bootstrap.kubeconfig");
        product::write_bootstrap(&plane, &bootstrap).await?;
        Ok(Self { plane, ocm, folder, bootstrap })
    }

    pub(super) async fn start(self) -> Result<Hub> {
        let process = product::start_hub(&self.plane, &self.ocm, &self.folder).await?;
        Ok(Hub { process, installed: self })
    }

    /// A client of the administrator, over one connection.
    pub(super) async fn client(&self) -> Result<Client> {
        let kubeconfig = self.plane.admin_config();
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        Ok(ocm_runtime::client::connect(&config, "ocm-bench")?)
    }

    pub(super) fn audit(&self) -> Result<AuditLog> {
        AuditLog::of(&self.plane)
    }

    pub(super) fn server(&self, part: Part) -> Result<std::sync::Arc<Process>> {
        self.plane.process(part).with_context(|| format!("{part} does not run"))
    }
}

impl Hub {
    pub(super) async fn start() -> Result<Self> {
        Installed::new().await?.start().await
    }

    pub(super) async fn client(&self) -> Result<Client> {
        self.installed.client().await
    }

    pub(super) fn folder(&self) -> &Path {
        self.installed.folder.path()
    }

    /// The kubeconfig with which agents ask to join.
    pub(super) fn bootstrap(&self) -> &Path {
        &self.installed.bootstrap
    }

    pub(super) fn audit(&self) -> Result<AuditLog> {
        self.installed.audit()
    }

    pub(super) fn server(&self, part: Part) -> Result<std::sync::Arc<Process>> {
        self.installed.server(part)
    }
}
