//! Starting a node.

use std::sync::atomic::Ordering;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::config::Files;
use super::{Node, TAKEN, images, isolation, parts, requirements};
use crate::{Assets, ControlPlane, Seen, TempDir, eventually};

const REGISTRY_PORT: u16 = 5000;

/// Settings of a [`Node`] that is to be started.
#[derive(Clone, Debug)]
pub struct NodeBuilder {
    assets: Option<Assets>,
    keep: bool,
}

impl Default for NodeBuilder {
    fn default() -> Self {
        Self { assets: None, keep: std::env::var("OCM_TESTING_KEEP").is_ok_and(|value| value == "1") }
    }
}

impl NodeBuilder {
    /// The folders of the binaries (default: [`Assets::discover`]).
    #[must_use]
    pub fn assets(mut self, assets: Assets) -> Self {
        self.assets = Some(assets);
        self
    }

    /// Keeps the folder with logs in the end (default: `OCM_TESTING_KEEP=1`).
    #[must_use]
    pub fn keep(mut self, keep: bool) -> Self {
        self.keep = keep;
        self
    }

    /// Starts a node for a control plane made by [`control_plane`](super::control_plane), within
    /// [`isolated`](super::isolated), and waits until it is Ready.
    ///
    /// If that fails, the folder with the logs is kept, and the error shows the last lines of each.
    pub async fn start(self, plane: &ControlPlane) -> Result<Node> {
        let cgroup = isolation::cgroup()?;
        if TAKEN.swap(true, Ordering::Relaxed) {
            bail!("these namespaces have had their node; a second one needs a program of its own");
        }
        let dir = TempDir::new("node")?;
        let mut node = Node { dir, cgroup, registry_port: REGISTRY_PORT, processes: Vec::new() };
        if self.keep {
            node.dir.keep()?;
            eprintln!("ocm-testing: the node is kept in {}", node.dir().display());
        }
        let assets = self.assets.map_or_else(Assets::discover, Ok)?;
        if let Err(error) = node.start_all(plane, &assets).await {
            let _ = node.dir.keep();
            let logs =
                format!("failed to start a node; all logs are in {}\n{}", node.dir().display(), node.last_words());
            return Err(error.context(logs));
        }
        Ok(node)
    }
}

impl Node {
    async fn start_all(&mut self, plane: &ControlPlane, assets: &Assets) -> Result<()> {
        for binary in requirements::BINARIES {
            assets.find(binary)?;
        }
        let files = Files::write(self.dir.path(), &self.cgroup, self.registry_port)?;
        self.processes = parts::start_runtime(self.dir.path(), &files)?;
        self.wait_for_runtime().await?;
        self.import_image(&images::pause()?).await?;
        self.processes.extend(parts::start_kubernetes(self.dir.path(), &files, plane, assets)?);
        self.wait_ready(plane).await
    }

    async fn wait_for_runtime(&self) -> Result<()> {
        let look = || async {
            if let Err(ended) = parts::all_run(&self.processes) {
                return Ok(Seen::Settled(Err(ended)));
            }
            self.ctr(&["version"]).await.map(|_| Seen::Settled(Ok(())))
        };
        eventually("containerd answers", look).await?
    }

    async fn wait_ready(&self, plane: &ControlPlane) -> Result<()> {
        let look = || async {
            if let Err(ended) = parts::all_run(&self.processes) {
                return anyhow::Ok(Seen::Settled(Err(ended)));
            }
            let node: Value = serde_json::from_str(&plane.kubectl(&["get", "node", super::NAME, "-o", "json"]).await?)?;
            Ok(if is_ready(&node) {
                Seen::Settled(Ok(()))
            } else {
                Seen::NotYet(node["status"]["conditions"].to_string())
            })
        };
        eventually("the node is Ready and takes pods", look).await?.context("the node did not become Ready")
    }
}

/// Ready, and without the taint of a node that is not.
fn is_ready(node: &Value) -> bool {
    let conditions = node["status"]["conditions"].as_array();
    let ready = conditions.into_iter().flatten().any(|found| found["type"] == "Ready" && found["status"] == "True");
    ready && node["spec"]["taints"].as_array().is_none_or(Vec::is_empty)
}
