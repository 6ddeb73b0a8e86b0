//! Control groups, the one thing of a container that no namespace takes away with it.
//!
//! All containers of a node are in one group that carries the id of the process that made the namespaces. That process
//! removes it in the end; where it was killed, the next one does.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::eventually_within;

const ROOT: &str = "/sys/fs/cgroup";
const PREFIX: &str = "ocm-testing-";
const PATIENCE: Duration = Duration::from_secs(10);

/// The group of the nodes that this process makes namespaces for.
pub(super) fn own() -> String {
    format!("{PREFIX}{}", std::process::id())
}

/// Makes a group in every hierarchy: kubelet wants to find its own.
pub(super) fn create(group: &str) -> Result<()> {
    for hierarchy in hierarchies() {
        let folder = hierarchy.join(group);
        fs::create_dir(&folder).with_context(|| {
            format!(
                "failed to make the control group {}: a node runs on a machine or in a privileged container",
                folder.display()
            )
        })?;
    }
    Ok(())
}

/// Removes a group in every hierarchy, once its processes have ended. What is left after a while is left to the next run.
pub(super) async fn remove(group: &str) {
    let folders: Vec<_> = hierarchies().into_iter().map(|hierarchy| hierarchy.join(group)).collect();
    let gone = || async {
        folders.iter().for_each(|folder| remove_folder(folder));
        folders.iter().all(|folder| !folder.exists())
    };
    let _ = eventually_within(PATIENCE, "the control groups are gone", gone).await;
}

/// Removes the groups of processes that are no more.
pub(super) fn remove_dead() {
    for hierarchy in hierarchies() {
        for folder in folders_in(&hierarchy) {
            let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let dead = |pid: &str| !Path::new("/proc").join(pid).exists();
            if name.strip_prefix(PREFIX).is_some_and(dead) {
                remove_folder(&folder);
            }
        }
    }
}

/// The processes of a container, whose group lies somewhere in that of the node.
pub(super) fn processes(group: &str, container: &str) -> Result<Vec<u32>> {
    let found = hierarchies().into_iter().find_map(|hierarchy| find(&hierarchy.join(group), container));
    let found = found.with_context(|| format!("container {container} has no control group: has it ended?"))?;
    let file = found.join("cgroup.procs");
    let text = fs::read_to_string(&file).with_context(|| format!("failed to read {}", file.display()))?;
    text.lines().map(|line| line.parse().with_context(|| format!("{line:?} is no process id"))).collect()
}

fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    let here = folder.join(name);
    if here.is_dir() { Some(here) } else { folders_in(folder).iter().find_map(|inner| find(inner, name)) }
}

/// Version 2 has one hierarchy, version 1 one for each controller; some systems have both.
fn hierarchies() -> Vec<PathBuf> {
    let root = PathBuf::from(ROOT);
    if root.join("cgroup.controllers").exists() { vec![root] } else { folders_in(&root) }
}

/// Only the folders can be removed, inner ones first, and only when no process is in them.
fn remove_folder(folder: &Path) {
    for inner in folders_in(folder) {
        remove_folder(&inner);
    }
    let _ = fs::remove_dir(folder);
}

fn folders_in(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()).collect()
}
