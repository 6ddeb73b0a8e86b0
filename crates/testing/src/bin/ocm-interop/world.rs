//! One hub and one managed cluster, and what an administrator does there.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use anyhow::{Context as _, Result, bail};
use ocm_testing::{ControlPlane, Part, Port, Process, Seen, TempDir, eventually};
use serde_json::Value;

use crate::{
    parts::{Cast, Side},
    steps::say,
};

pub(crate) const CLUSTER: &str = "cluster1";
pub(crate) const HUB_NAMESPACE: &str = "open-cluster-management-hub";
pub(crate) const AGENT_NAMESPACE: &str = "open-cluster-management-agent";
const BOOTSTRAP: (&str, &str) = ("open-cluster-management", "agent-registration-bootstrap");
/// Without them the status of a Deployment can be written by hand.
const CONTROLLERS: &str = "*,-deployment-controller,-replicaset-controller";
const LAST_LINES: usize = 12;

/// Where the programs are.
#[derive(Clone, Debug)]
pub(crate) struct Programs {
    pub(crate) ours: PathBuf,
    pub(crate) ocm: PathBuf,
}

/// See the module.
pub(crate) struct World {
    pub(crate) cast: Cast,
    pub(crate) hub: ControlPlane,
    pub(crate) managed: ControlPlane,
    pub(crate) webhook: Port,
    programs: Programs,
    folder: TempDir,
    ports: Mutex<Vec<Port>>,
}

impl World {
    pub(crate) async fn start(programs: &Programs, cast: Cast) -> Result<Self> {
        let hub = ControlPlane::builder().name("hub").start();
        let managed =
            ControlPlane::builder().name(CLUSTER).flag(Part::ControllerManager, "controllers", CONTROLLERS).start();
        let (hub, managed) = tokio::try_join!(hub, managed)?;
        let (webhook, folder) = (Port::free()?, TempDir::new("interop")?);
        Ok(Self { cast, hub, managed, webhook, programs: programs.clone(), folder, ports: Mutex::default() })
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// An address for a process to listen on, its own until the story ends.
    pub(crate) fn address(&self) -> Result<String> {
        Ok(format!("127.0.0.1:{}", self.port()?))
    }

    pub(crate) fn port(&self) -> Result<u16> {
        let port = Port::free()?;
        let number = port.number();
        self.ports.lock().unwrap_or_else(PoisonError::into_inner).push(port);
        Ok(number)
    }

    /// A program of ours or of OCM's, and the file with what it says.
    pub(crate) fn program(&self, side: Side, name: &str) -> PathBuf {
        match side {
            Side::Ocm => self.programs.ocm.join(name),
            Side::Ours => self.programs.ours.join(name),
        }
    }

    /// Prepares to start a program; `name` is its log's.
    pub(crate) fn process(&self, side: Side, program: &str, name: &str) -> ocm_testing::ProcessBuilder {
        Process::build(name, self.program(side, program), self.file(&format!("{name}.log")))
    }

    /// YAML that came with OCM's programs: every file of a folder.
    pub(crate) fn manifests(&self, folder: &str) -> Result<Vec<String>> {
        let folder = self.programs.ocm.join("manifests").join(folder);
        let entries = fs::read_dir(&folder).with_context(|| format!("failed to list {}", folder.display()))?;
        let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
        paths.sort();
        paths.iter().map(|path| fs::read_to_string(path).with_context(|| path.display().to_string())).collect()
    }

    /// A kubeconfig with which an agent asks to join the hub.
    pub(crate) async fn bootstrap_kubeconfig(&self) -> Result<PathBuf> {
        let path = self.file("bootstrap.kubeconfig");
        self.hub.write_login(BOOTSTRAP.0, BOOTSTRAP.1, &path).await?;
        Ok(path)
    }

    /// Certificate and key of the webhook, as it reads them.
    pub(crate) fn webhook_certificates(&self) -> Result<PathBuf> {
        let folder = self.file("webhook");
        fs::create_dir_all(&folder)?;
        let (certificate, key) = self.hub.serving_certificate(&["127.0.0.1"])?;
        fs::write(folder.join("tls.crt"), certificate)?;
        fs::write(folder.join("tls.key"), key)?;
        Ok(folder)
    }

    pub(crate) fn webhook_url(&self) -> String {
        format!("https://127.0.0.1:{}", self.webhook.number())
    }

    /// Runs one of our programs to its end, as the hub's administrator; what it printed.
    pub(crate) async fn run(&self, program: &str, args: &[&str]) -> Result<String> {
        let path = self.program(Side::Ours, program);
        let mut command = tokio::process::Command::new(&path);
        let output = command.args(args).env("KUBECONFIG", self.hub.admin_kubeconfig()).output().await;
        let output = output.with_context(|| format!("failed to start {}", path.display()))?;
        if !output.status.success() {
            bail!("{program} {} failed: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Waits until an object on the hub has a condition that is True.
    pub(crate) async fn condition(&self, what: &[&str], type_: &str) -> Result<()> {
        eventually(&format!("{} is {type_}", what.join(" ")), || async {
            let object = get(&self.hub, what).await?;
            let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
            let found = conditions.into_iter().find(|condition| condition["type"] == type_);
            anyhow::Ok(match found {
                Some(condition) if condition["status"] == "True" => Seen::Settled(()),
                _ => Seen::NotYet(object["status"].to_string()),
            })
        })
        .await
    }

    /// What every process said last, and leaves all of it where it is.
    pub(crate) fn evidence(&self) -> Result<()> {
        self.folder.keep()?;
        let logs = fs::read_dir(self.folder.path())?.flatten().map(|entry| entry.path());
        for path in logs.filter(|path| path.extension().is_some_and(|extension| extension == "log")) {
            say(&format!("\n{}\n{}", path.display(), last_lines(&path)));
        }
        Ok(())
    }
}

fn last_lines(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap_or_else(|error| error.to_string());
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
}

/// What `kubectl get` finds.
pub(crate) async fn get(plane: &ControlPlane, what: &[&str]) -> Result<Value> {
    let args = [&["get"], what, &["-o", "json"]].concat();
    Ok(serde_json::from_str(&plane.kubectl(&args).await?)?)
}

/// Waits until `kubectl get` finds something.
pub(crate) async fn is_there(plane: &ControlPlane, what: &[&str]) -> Result<()> {
    let args = [&["get"], what].concat();
    eventually(&format!("{} is there", what.join(" ")), || async { plane.kubectl(&args).await.map(Some) })
        .await
        .map(drop)
}

/// Waits until `kubectl get` finds nothing.
pub(crate) async fn is_gone(plane: &ControlPlane, what: &[&str]) -> Result<()> {
    let args = [&["get", "--ignore-not-found", "-o", "name"], what].concat();
    eventually(&format!("{} is gone", what.join(" ")), || async {
        let found = plane.kubectl(&args).await?;
        anyhow::Ok(if found.trim().is_empty() { Seen::Settled(()) } else { Seen::NotYet(found) })
    })
    .await
}
