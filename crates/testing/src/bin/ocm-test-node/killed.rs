//! A node that is killed leaves nothing behind.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use ocm_testing::node::{self, Node};
use ocm_testing::{Process, Seen, Signal, TempDir, eventually};

use crate::steps::{say, step};

/// The argument with which this program starts a node and waits to be killed.
pub(crate) const HOLD: &str = "hold";
const READY: &str = "a pod runs on the node";
const POD: &[&str] = &["run", "hello", "--image=busybox", "--", "sleep", "3600"];

/// Some of what must be running while the node is there, or this test would look at the wrong processes.
const EXPECTED: [&str; 5] = ["kube-apiserver", "kubelet", "containerd", "containerd-shim", "sleep"];

/// Folders of the machine that a node writes to, were it not for its namespaces.
const FOLDERS: [&str; 7] = [
    "/run/containerd",
    "/run/netns",
    "/var/lib/cni",
    "/var/lib/containerd",
    "/var/lib/kubelet",
    "/var/log/containers",
    "/var/log/pods",
];

/// Starts a node with a pod, and stays.
pub(crate) async fn hold() -> Result<()> {
    let plane = node::control_plane("held").start().await?;
    let node = Node::builder().start(&plane).await?;
    node.serve_busybox().await?;
    plane.kubectl(POD).await?;
    plane.kubectl(&["wait", "--for=condition=Ready", "pod/hello", "--timeout=60s"]).await?;
    say(READY);
    std::future::pending().await
}

pub(crate) fn test() -> Result<()> {
    node::check()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.context("failed to start the Tokio runtime")?.block_on(async {
        say("ocm-rs: a node that is killed\n");
        let before = Traces::now()?;
        let (process, _folder) = step("start a node with a pod", start()).await?;
        let processes = descendants(process.pid());
        for name in EXPECTED {
            ensure!(processes.values().any(|process| process.name == name), "{name} is not among {processes:?}");
        }
        step("it has not touched the machine", async { before.compare_with_now() }).await?;
        step("kill it: its processes are gone", async {
            process.signal(Signal::KILL)?;
            process.wait().await?;
            all_gone(&processes).await
        })
        .await?;
        step("nothing else is left either", async { before.compare_with_now() }).await
    })
}

async fn start() -> Result<(Process, TempDir)> {
    let folder = TempDir::new("killed")?;
    let own = std::env::current_exe().context("failed to find this program")?;
    let process = Process::build("ocm-test-node hold", own, folder.path().join("hold.log")).arg(HOLD).start()?;
    process.wait_for_log(READY).await?;
    Ok((process, folder))
}

async fn all_gone(processes: &BTreeMap<u32, Running>) -> Result<()> {
    eventually("the node's processes are gone", || async {
        let now = running();
        let left: Vec<_> = processes.iter().filter(|(id, process)| now.get(id) == Some(process)).collect();
        if left.is_empty() { Seen::Settled(()) } else { Seen::NotYet(format!("{left:?}")) }
    })
    .await
}

/// What a node could leave on the machine besides processes.
#[derive(Debug)]
struct Traces {
    links: BTreeSet<String>,
    mounts: BTreeSet<String>,
    folders: Vec<BTreeSet<String>>,
}

impl Traces {
    fn now() -> Result<Self> {
        let mounts = fs::read_to_string("/proc/self/mounts").context("failed to read the mounts")?;
        Ok(Self {
            links: names_in("/sys/class/net"),
            mounts: mounts.lines().map(str::to_owned).collect(),
            folders: FOLDERS.map(names_in).into(),
        })
    }

    fn compare_with_now(&self) -> Result<()> {
        let now = Self::now()?;
        let links: Vec<_> = now.links.difference(&self.links).collect();
        ensure!(links.is_empty(), "the machine has new network interfaces: {links:?}");
        let mounts: Vec<_> = now.mounts.difference(&self.mounts).collect();
        ensure!(mounts.is_empty(), "the machine has new mounts: {mounts:?}");
        for (folder, (before, now)) in FOLDERS.iter().zip(self.folders.iter().zip(&now.folders)) {
            let new: Vec<_> = now.difference(before).collect();
            ensure!(new.is_empty(), "{folder} of the machine has new files: {new:?}");
        }
        Ok(())
    }
}

/// A process that runs, told from a later one of the same id.
#[derive(Debug, PartialEq, Eq)]
struct Running {
    name: String,
    parent: u32,
    started: String,
}

/// A process, its children, theirs and so on.
fn descendants(ancestor: u32) -> BTreeMap<u32, Running> {
    let all = running();
    let descends = |mut id: u32| {
        while let Some(process) = all.get(&id) {
            if id == ancestor {
                return true;
            }
            id = process.parent;
        }
        false
    };
    let found: BTreeSet<u32> = all.keys().copied().filter(|id| descends(*id)).collect();
    all.into_iter().filter(|(id, _)| found.contains(id)).collect()
}

fn running() -> BTreeMap<u32, Running> {
    let ids = names_in("/proc").into_iter().filter_map(|name| name.parse().ok());
    ids.filter_map(|id| Some((id, read(id)?))).collect()
}

/// Only what runs: whoever is to collect a dead process may take his time.
fn read(id: u32) -> Option<Running> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let (head, rest) = stat.rsplit_once(')')?;
    let (_, name) = head.split_once('(')?;
    let fields: Vec<_> = rest.split_whitespace().collect();
    let runs = !matches!(*fields.first()?, "Z" | "X");
    let process =
        Running { name: name.to_owned(), parent: fields.get(1)?.parse().ok()?, started: (*fields.get(19)?).to_owned() };
    runs.then_some(process)
}

fn names_in(folder: impl AsRef<Path>) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}
