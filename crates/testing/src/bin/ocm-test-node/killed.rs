//! A node that is killed leaves nothing behind.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context as _, Result, ensure};
use ocm_testing::node::{self, Node};
use ocm_testing::scenario::{print_line, step};
use ocm_testing::{Process, Seen, Signal, TempDir, eventually};

use crate::traces::{self, Traces, names_in};

/// The argument with which this program starts a node and waits to be killed.
pub(crate) const HOLD: &str = "hold";
const READY: &str = "a pod runs on the node";
const POD: &[&str] = &["run", "hello", "--image=busybox", "--", "sleep", "3600"];

/// Some programs that must run while the node exists; otherwise this test checks the wrong processes.
const EXPECTED: [&str; 5] = ["kube-apiserver", "kubelet", "containerd", "containerd-shim", "sleep"];

/// Starts a node with a pod, and waits to be killed.
pub(crate) async fn hold() -> Result<()> {
    let plane = node::control_plane("held").start().await?;
    let node = Node::builder().start(&plane).await?;
    node.serve_busybox().await?;
    plane.kubectl(POD).await?;
    plane.kubectl(&["wait", "--for=condition=Ready", "pod/hello", "--timeout=60s"]).await?;
    print_line(READY);
    std::future::pending().await
}

pub(crate) fn test() -> Result<()> {
    node::check()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.context("failed to start the Tokio runtime")?.block_on(async {
        print_line("ocm-rs: a node that is killed\n");
        let before = Traces::now()?;
        let (process, _folder) = step("start a node with a pod", start()).await?;
        let processes = descendants(process.pid());
        for name in EXPECTED {
            ensure!(processes.values().any(|process| process.name == name), "{name} is not among {processes:?}");
        }
        step("it has not touched the machine", async { before.compare_with_now() }).await?;
        step("and what kubelet sets is not the machine's", async { settings_are_hidden(&processes) }).await?;
        ensure!(!traces::control_groups(process.pid()).is_empty(), "the node has no control groups");
        step("kill it: its processes are gone", async {
            process.signal(Signal::KILL)?;
            process.wait().await?;
            all_gone(&processes).await
        })
        .await?;
        step("nothing else is left either", async { before.compare_with_now() }).await?;
        step("but control groups, which the next node removes", groups_gone(process.pid())).await
    })
}

/// Also if the machine already has the values that kubelet sets.
fn settings_are_hidden(processes: &BTreeMap<u32, Running>) -> Result<()> {
    let kubelet = processes.iter().find(|(_, process)| process.name == "kubelet").context("kubelet does not run")?;
    let mounts =
        fs::read_to_string(format!("/proc/{}/mounts", kubelet.0)).context("failed to read kubelet's mounts")?;
    for setting in traces::SETTINGS {
        ensure!(mounts.contains(&format!(" {setting} ")), "kubelet writes to {setting} of the machine");
    }
    Ok(())
}

async fn groups_gone(process: u32) -> Result<()> {
    eventually("the control groups are gone", || async {
        node::remove_dead_groups();
        let left = traces::control_groups(process);
        if left.is_empty() { Seen::Settled(()) } else { Seen::NotYet(format!("{left:?}")) }
    })
    .await
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

/// A running process, distinguished from a later one with the same id.
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

/// Only running processes: a zombie may remain until its parent collects it.
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
