//! The settings of a control plane, and its start.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Mutex;

use anyhow::{Context as _, Result};

use super::files::Files;
use super::flags::{self, Flag};
use super::{ControlPlane, Part, Ports, url};
use crate::kubeconfig::{certificate_login, kubeconfig, write_kubeconfig};
use crate::ports::Port;
use crate::{Assets, TempDir};

/// Settings of a [`ControlPlane`] that is to be started.
#[derive(Clone, Debug)]
pub struct ControlPlaneBuilder {
    name: String,
    assets: Option<Assets>,
    audit: bool,
    fsync: bool,
    keep: bool,
    api_port: Option<u16>,
    names: Vec<String>,
    extra: BTreeMap<Part, Vec<Flag>>,
}

impl Default for ControlPlaneBuilder {
    fn default() -> Self {
        Self {
            name: "cluster".into(),
            assets: None,
            audit: false,
            fsync: false,
            keep: std::env::var("OCM_TESTING_KEEP").is_ok_and(|value| value == "1"),
            api_port: None,
            names: Vec::new(),
            extra: BTreeMap::new(),
        }
    }
}

impl ControlPlaneBuilder {
    /// The name of the folder, and of cluster and context in kubeconfigs (default: `cluster`).
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        self.name = name.into();
        self
    }

    /// The folders of the binaries (default: [`Assets::discover`]).
    #[must_use]
    pub fn assets(mut self, assets: Assets) -> Self {
        self.assets = Some(assets);
        self
    }

    /// Logs every write at level Metadata, see [`ControlPlane::audit_log`] (default: no).
    #[must_use]
    pub fn audit(mut self, audit: bool) -> Self {
        self.audit = audit;
        self
    }

    /// Makes etcd wait for the disk, as in production (default: no). Without it a crash of the machine can
    /// lose data, but the end of a process cannot.
    #[must_use]
    pub fn fsync(mut self, fsync: bool) -> Self {
        self.fsync = fsync;
        self
    }

    /// Keeps the folder with logs and data in the end (default: `OCM_TESTING_KEEP=1`).
    #[must_use]
    pub fn keep(mut self, keep: bool) -> Self {
        self.keep = keep;
        self
    }

    /// The port of kube-apiserver (default: a free one).
    #[must_use]
    pub fn api_port(mut self, port: u16) -> Self {
        self.api_port = Some(port);
        self
    }

    /// One more DNS name or address under which kube-apiserver is reached over TLS.
    #[must_use]
    pub fn reached_as(mut self, name: &str) -> Self {
        self.names.push(name.into());
        self
    }

    /// A flag for one of the parts, without dashes: `flag(Part::ApiServer, "v", "4")`. It replaces the
    /// default flag of that name.
    #[must_use]
    pub fn flag(mut self, part: Part, name: &str, value: &str) -> Self {
        self.extra.entry(part).or_default().push(Flag::new(name, value));
        self
    }

    /// Starts the control plane and waits until it is ready.
    ///
    /// If that fails, the folder with the logs is kept, and the error shows the last lines of the
    /// part that failed.
    pub async fn start(self) -> Result<ControlPlane> {
        let name = self.name.clone();
        let plane = self.prepare().with_context(|| format!("failed to prepare control plane {name}"))?;
        let started = plane.start_all().await;
        if started.is_err() {
            // The logs are kept; tens of megabytes of etcd's data are not.
            let _ = plane.dir.keep();
            let _ = plane.stop(Part::Etcd);
            let _ = fs::remove_dir_all(plane.dir().join(flags::ETCD_DATA));
        }
        started.with_context(|| {
            format!("failed to start control plane {name}; all logs are in {}", plane.dir().display())
        })?;
        Ok(plane)
    }

    fn prepare(self) -> Result<ControlPlane> {
        let assets = self.assets.map_or_else(Assets::discover, Ok)?;
        for binary in Part::ALL.map(Part::binary).iter().chain(&["kubectl"]) {
            assets.find(binary)?;
        }
        let dir = TempDir::new(&self.name)?;
        if self.keep {
            dir.keep()?;
            eprintln!("ocm-testing: {} is kept in {}", self.name, dir.path().display());
        }
        let ports = Ports::reserve(self.api_port)?;
        let server = url(&ports.api);
        let files = Files::write(&dir, &self.name, &server, &self.names, self.audit)?;
        let login = certificate_login(&files.authority.client("admin", &["system:masters"])?);
        let admin = kubeconfig(&self.name, &server, files.authority.certificate(), "admin", login);
        write_kubeconfig(&admin, &files.admin_kubeconfig)?;
        Ok(ControlPlane {
            name: self.name,
            assets,
            flags: flags::all(&ports, &files, self.fsync, &self.extra),
            ports,
            files,
            admin,
            parts: Mutex::default(),
            dir,
        })
    }
}

impl ControlPlane {
    async fn start_all(&self) -> Result<()> {
        self.start_part(Part::Etcd)?;
        self.start_part(Part::ApiServer)?;
        self.wait_api_ready().await?;
        self.start_part(Part::ControllerManager)?;
        self.wait_ready().await
    }
}

impl Ports {
    fn reserve(api: Option<u16>) -> Result<Self> {
        Ok(Self {
            api: api.map_or_else(Port::free, Port::pinned)?,
            etcd: Port::free()?,
            etcd_peer: Port::free()?,
            controller_manager: Port::free()?,
        })
    }
}
