//! One hub and one managed cluster, and what an administrator does there.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use anyhow::{Context as _, Result};
use ocm_testing::{
    ControlPlane, Part, Port, ProcessBuilder,
    scenario::{Ours, Running, print_line},
};

use crate::parts::{Addon, Cast, Side};

pub(crate) const CLUSTER: &str = "cluster1";
/// Without them the status of a Deployment can be written by hand.
const CONTROLLERS: &str = "*,-deployment-controller,-replicaset-controller";
const LAST_LINES: usize = 12;

/// See the module.
pub(crate) struct World {
    pub(crate) cast: Cast,
    pub(crate) hub: ControlPlane,
    pub(crate) managed: ControlPlane,
    pub(crate) webhook: Port,
    pub(crate) ours: Ours,
    pub(crate) running: Running,
    peers: PathBuf,
    ports: Mutex<Vec<Port>>,
}

impl World {
    pub(crate) async fn start(peers: &Path, cast: Cast) -> Result<Self> {
        let ports = Mutex::new(fixed_ports(cast)?);
        let hub = ControlPlane::builder().name("hub").start();
        let managed =
            ControlPlane::builder().name(CLUSTER).flag(Part::ControllerManager, "controllers", CONTROLLERS).start();
        let (hub, managed) = tokio::try_join!(hub, managed)?;
        let (webhook, ours, running) = (Port::free()?, Ours::beside_this_program()?, Running::default());
        Ok(Self { cast, hub, managed, webhook, ours, running, peers: peers.to_owned(), ports })
    }

    /// An address for a process to listen on, its own until the story ends.
    pub(crate) fn address(&self) -> Result<String> {
        let port = Port::free()?;
        let address = format!("127.0.0.1:{}", port.number());
        self.ports.lock().unwrap_or_else(PoisonError::into_inner).push(port);
        Ok(address)
    }

    /// Prepares to start a program of ours or of OCM's; `name` is its log's.
    pub(crate) fn process(&self, side: Side, program: &str, name: &str) -> ProcessBuilder {
        let program = match side {
            Side::Ocm => self.peers.join(program),
            Side::Ours => self.ours.program(program),
        };
        self.ours.process(program, name)
    }

    /// YAML that came with OCM's programs: every file of a folder.
    pub(crate) fn manifests(&self, folder: &str) -> Result<Vec<String>> {
        let folder = self.peers.join("manifests").join(folder);
        let entries = fs::read_dir(&folder).with_context(|| format!("failed to list {}", folder.display()))?;
        let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
        paths.sort();
        paths.iter().map(|path| fs::read_to_string(path).with_context(|| path.display().to_string())).collect()
    }

    /// Prints the last lines of every log, and keeps the logs.
    pub(crate) fn evidence(&self) -> Result<()> {
        let logs = fs::read_dir(self.ours.keep()?)?.flatten().map(|entry| entry.path());
        for path in logs.filter(|path| path.extension().is_some_and(|extension| extension == "log")) {
            print_line(&format!("\n{}\n{}", path.display(), last_lines(&path)));
        }
        Ok(())
    }
}

/// The fixed ports of OCM's programs: a port that is in use is reported before anything starts.
fn fixed_ports(cast: Cast) -> Result<Vec<Port>> {
    let webhook: &[u16] = if cast.hub == Side::Ocm { &[8000, 8080] } else { &[] };
    let addon: &[u16] = if cast.addon == Addon::Go { &[8443] } else { &[] };
    let pinned = |number: &u16| Port::pinned(*number).context("OCM's programs listen on no other port");
    webhook.iter().chain(addon).map(pinned).collect()
}

fn last_lines(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap_or_else(|error| error.to_string());
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
}
