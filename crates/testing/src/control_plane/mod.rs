//! One real Kubernetes control plane.

mod backup;
mod builder;
mod files;
mod flags;
mod identities;
mod kubectl;
mod ready;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, Result, bail};
use kube::Client;
use kube::config::Kubeconfig;

pub use backup::Backup;
pub use builder::ControlPlaneBuilder;
use files::Files;

use crate::kubeconfig::client_for;
use crate::ports::Port;
use crate::process::Process;
use crate::{Assets, TempDir};

/// One of the three processes of a control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// etcd, which holds the objects.
    Etcd,
    /// kube-apiserver, which serves all clients.
    ApiServer,
    /// kube-controller-manager, which signs certificates and collects garbage.
    ControllerManager,
}

impl Part {
    /// In the order in which they are started.
    const ALL: [Self; 3] = [Self::Etcd, Self::ApiServer, Self::ControllerManager];

    fn binary(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.binary())
    }
}

/// etcd, kube-apiserver and kube-controller-manager on loopback, with a folder of their own.
///
/// Dropping it kills the processes and removes the folder. The processes also end when this process
/// does, however that happens.
pub struct ControlPlane {
    name: String,
    assets: Assets,
    ports: Ports,
    flags: BTreeMap<Part, Vec<String>>,
    files: Files,
    admin: Kubeconfig,
    parts: Mutex<BTreeMap<Part, Arc<Process>>>,
    dir: TempDir,
}

/// Reserved until the control plane is dropped, so a part that is started again finds its own.
struct Ports {
    etcd: Port,
    etcd_peer: Port,
    api: Port,
    controller_manager: Port,
}

impl ControlPlane {
    /// Starts a control plane with the usual settings.
    pub async fn start() -> Result<Self> {
        Self::builder().start().await
    }

    /// Prepares to start a control plane with other settings.
    pub fn builder() -> ControlPlaneBuilder {
        ControlPlaneBuilder::default()
    }

    /// Its name, also that of its cluster and context in kubeconfigs.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The URL of kube-apiserver.
    pub fn url(&self) -> String {
        url(&self.ports.api)
    }

    /// The folder with keys, kubeconfigs, logs and data.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Keeps the folder when this control plane is dropped.
    pub fn keep(&self) -> Result<()> {
        self.dir.keep()
    }

    /// The audit log of kube-apiserver, one JSON event for each write, if it is enabled.
    ///
    /// The audit event of a request is written before its response is sent.
    pub fn audit_log(&self) -> Option<&Path> {
        self.files.audit_log.as_deref()
    }

    /// The certificate authority of the cluster, PEM.
    pub fn certificate_authority(&self) -> &str {
        self.files.authority.certificate()
    }

    /// The API server's own certificate and key, PEM, for a proxy in front of it.
    pub(crate) fn serving_pair(&self) -> Result<(String, String)> {
        let read =
            |path: &Path| std::fs::read_to_string(path).with_context(|| format!("failed to read {}", path.display()));
        Ok((read(&self.files.serving_certificate)?, read(&self.files.serving_key)?))
    }

    /// The file with the kubeconfig of the administrator (`system:masters`).
    pub fn admin_kubeconfig(&self) -> &Path {
        &self.files.admin_kubeconfig
    }

    /// The kubeconfig of the administrator.
    pub fn admin_config(&self) -> Kubeconfig {
        self.admin.clone()
    }

    /// A client of the administrator for the Tokio runtime this is called on, new on each call:
    /// a client used from another runtime than its own answers `Service(Closed)`.
    pub async fn client(&self) -> Result<Client> {
        client_for(&self.admin).await
    }

    /// Kills a part, as a crash would. Others keep running; data and ports stay.
    pub fn stop(&self, part: Part) -> Result<()> {
        match self.lock().remove(&part) {
            Some(process) => process.kill(),
            None => bail!("{part} of {} is stopped already", self.name),
        }
    }

    /// Starts a part that was stopped or ended, with the same ports and data, and returns at once:
    /// [`wait_ready`](Self::wait_ready) waits until it answers.
    pub fn start_part(&self, part: Part) -> Result<()> {
        if let Some(process) = self.process(part)
            && process.try_wait()?.is_none()
        {
            bail!("{part} of {} is running; stop it first", self.name);
        }
        let process = Process::build(&part.to_string(), self.assets.find(part.binary())?, self.log_path(part))
            .args(self.flags.get(&part).into_iter().flatten())
            .current_dir(self.dir())
            .start()?;
        self.lock().insert(part, Arc::new(process));
        Ok(())
    }

    /// The process of a part, to measure it or read its log; `None` while it is stopped.
    pub fn process(&self, part: Part) -> Option<Arc<Process>> {
        self.lock().get(&part).cloned()
    }

    fn log_path(&self, part: Part) -> PathBuf {
        self.dir().join(format!("{part}.log"))
    }

    /// How a part ended, if it did on its own.
    fn ended(&self, part: Part) -> Result<Option<ExitStatus>> {
        let process = self.process(part);
        let process = process.with_context(|| format!("{part} of {} is stopped: start it first", self.name))?;
        process.try_wait()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Part, Arc<Process>>> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn url(port: &Port) -> String {
    format!("https://127.0.0.1:{}", port.number())
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        // Killed here and not by dropping the map: another owner may hold a process, and the folder
        // must not be removed before its users have ended.
        for process in self.lock().values() {
            let _ = process.kill();
        }
    }
}

impl fmt::Debug for ControlPlane {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = formatter.debug_struct("ControlPlane");
        fields.field("name", &self.name).field("url", &self.url()).field("dir", &self.dir());
        fields.finish_non_exhaustive()
    }
}
