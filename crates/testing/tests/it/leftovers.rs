//! Nothing is left behind, however the process that started a control plane ends.
//!
//! The tests run this binary again with `HELPER` set: the ignored test at the end of this file then
//! starts a control plane, logs its process ids and folder, and ends in the requested way.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use ocm_testing::{ControlPlane, Part, Process, Seen, Signal, TempDir, eventually};

const HELPER: &str = "OCM_TESTING_HELPER";
const PARTS: [Part; 3] = [Part::Etcd, Part::ApiServer, Part::ControllerManager];

struct Helper {
    process: Process,
    children: Vec<u32>,
    folder: PathBuf,
    _dir: TempDir,
}

async fn helper(end: &str) -> Result<Helper> {
    let dir = TempDir::new("helper")?;
    let process = Process::build("helper", std::env::current_exe()?, dir.path().join("helper.log"))
        .args(["--exact", "leftovers::helper_process", "--ignored", "--nocapture"])
        .env(HELPER, end)
        .start()?;
    let line = process.wait_for_log("started: ").await?;
    let (_, facts) = line.split_once("started: ").context("no facts")?;
    let (children, folder) = facts.split_once(" in ").context("no folder")?;
    Ok(Helper {
        children: children.split(' ').map(str::parse).collect::<Result<_, _>>()?,
        folder: folder.into(),
        process,
        _dir: dir,
    })
}

/// The machine's init reaps orphans; a zombie holds no memory, port or file.
fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

async fn children_go(helper: &Helper) -> Result<()> {
    assert_eq!(helper.children.len(), PARTS.len());
    eventually("the control plane's processes are gone", || async {
        let left: Vec<_> = helper.children.iter().filter(|pid| is_alive(**pid)).collect();
        if left.is_empty() { Seen::Settled(()) } else { Seen::NotYet(format!("{left:?}")) }
    })
    .await
}

#[tokio::test]
async fn no_process_is_left_when_the_parent_is_killed() -> Result<()> {
    let helper = helper("wait").await?;
    assert!(helper.children.iter().all(|pid| is_alive(*pid)));
    helper.process.signal(Signal::KILL)?;
    helper.process.wait().await?;
    children_go(&helper).await
}

#[tokio::test]
async fn the_folder_of_a_killed_process_is_removed_by_the_next_one() -> Result<()> {
    let killed = helper("wait").await?;
    killed.process.signal(Signal::KILL)?;
    killed.process.wait().await?;
    assert!(killed.folder.exists());
    let next = helper("panic").await?;
    next.process.wait().await?;
    assert!(!killed.folder.exists());
    Ok(())
}

#[tokio::test]
async fn nothing_is_left_after_a_panic() -> Result<()> {
    let helper = helper("panic").await?;
    assert!(!helper.process.wait().await?.success());
    children_go(&helper).await?;
    assert!(!helper.folder.exists());
    Ok(())
}

#[tokio::test]
async fn no_process_is_left_when_the_parent_aborts() -> Result<()> {
    let helper = helper("abort").await?;
    helper.process.wait().await?;
    children_go(&helper).await
}

#[tokio::test]
async fn nothing_is_left_when_a_control_plane_is_dropped() -> Result<()> {
    let plane = ControlPlane::builder().name("dropped").keep(false).start().await?;
    let (pids, folder) = (pids(&plane), plane.dir().to_owned());
    drop(plane);
    assert!(!pids.into_iter().any(is_alive));
    assert!(!folder.exists());
    Ok(())
}

fn pids(plane: &ControlPlane) -> Vec<u32> {
    PARTS.iter().filter_map(|part| Some(plane.process(*part)?.pid())).collect()
}

#[tokio::test]
#[ignore = "started by the other tests of this module as a process of its own"]
async fn helper_process() {
    let Ok(end) = std::env::var(HELPER) else {
        return;
    };
    let plane = ControlPlane::builder().name("helper").start().await.unwrap();
    let pids: Vec<_> = pids(&plane).iter().map(u32::to_string).collect();
    println!("started: {} in {}", pids.join(" "), plane.dir().display());
    match end.as_str() {
        "panic" => panic!("as told"),
        "abort" => std::process::abort(),
        _ => std::future::pending().await,
    }
}
