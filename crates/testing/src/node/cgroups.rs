//! Control groups, the only part of a container that does not end with its namespaces.
//!
//! All containers of a node are in one group that carries the id of the process that made the namespaces. That process
//! removes it in the end; where it was killed, the next one does. Controllers that were switched on for it stay so, since others
//! may count with them by then.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::eventually_within;

const ROOT: &str = "/sys/fs/cgroup";
const PREFIX: &str = "ocm-testing-";
/// The controllers that kubelet needs in its group, as far as the machine has them (version 2).
const CONTROLLERS: [&str; 5] = ["cpu", "cpuset", "memory", "hugetlb", "pids"];
const PATIENCE: Duration = Duration::from_secs(10);

/// The group of the nodes in the namespaces of this process.
pub(super) fn own() -> String {
    format!("{PREFIX}{}", std::process::id())
}

/// Makes a group in every hierarchy: kubelet requires its own, with all controllers.
pub(super) fn create(group: &str) -> Result<()> {
    create_in(Path::new(ROOT), group)
}

fn create_in(root: &Path, group: &str) -> Result<()> {
    if is_unified(root) {
        hand_down(root)?;
    }
    for hierarchy in hierarchies_in(root) {
        let folder = hierarchy.join(group);
        // Left by a killed process with our id.
        remove_folder(&folder);
        fs::create_dir(&folder).with_context(|| {
            format!(
                "failed to make the control group {}: a node runs on a machine or in a privileged container",
                folder.display()
            )
        })?;
    }
    Ok(())
}

/// Enables controllers for the groups below.
fn hand_down(root: &Path) -> Result<()> {
    let control = root.join("cgroup.subtree_control");
    let words = |path: &Path| fs::read_to_string(path).with_context(|| format!("failed to read {}", path.display()));
    let (there, on) = (words(&root.join("cgroup.controllers"))?, words(&control)?);
    let has = |words: &str, controller: &str| words.split_whitespace().any(|word| word == controller);
    let missing = CONTROLLERS.iter().filter(|controller| has(&there, controller) && !has(&on, controller));
    let missing: Vec<_> = missing.map(|controller| format!("+{controller}")).collect();
    if missing.is_empty() {
        return Ok(());
    }
    fs::write(&control, missing.join(" ")).with_context(|| {
        let (control, root) = (control.display(), root.display());
        format!(
            "failed to write {missing:?} to {control}; if it is busy, this is a container whose processes are in the group \
             itself: move them to one below with\n    mkdir -p {root}/init && for id in $(cat {root}/cgroup.procs); do \
             echo $id > {root}/init/cgroup.procs; done\nand try again"
        )
    })
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

/// Removes the control groups of processes that have ended. [`isolated`](super::isolated) does this first.
pub fn remove_dead() {
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

fn hierarchies() -> Vec<PathBuf> {
    hierarchies_in(Path::new(ROOT))
}

/// Version 2 has one hierarchy, version 1 one for each controller; some systems have both.
fn hierarchies_in(root: &Path) -> Vec<PathBuf> {
    if is_unified(root) { vec![root.to_owned()] } else { folders_in(root) }
}

fn is_unified(root: &Path) -> bool {
    root.join("cgroup.controllers").exists()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TempDir;

    const GROUP: &str = "ocm-testing-1";

    fn root(controllers: &str, on: &str) -> TempDir {
        let root = TempDir::new("cgroup").unwrap();
        fs::write(root.path().join("cgroup.controllers"), controllers).unwrap();
        fs::write(root.path().join("cgroup.subtree_control"), on).unwrap();
        root
    }

    fn on(root: &TempDir) -> String {
        fs::read_to_string(root.path().join("cgroup.subtree_control")).unwrap()
    }

    #[test]
    fn a_group_of_version_2_gets_the_controllers_that_kubelet_asks_for() {
        let root = root("cpuset cpu io memory hugetlb pids rdma", "cpu memory pids");
        create_in(root.path(), GROUP).unwrap();
        assert_eq!(on(&root), "+cpuset +hugetlb");
        assert!(root.path().join(GROUP).is_dir());
    }

    #[test]
    fn only_missing_controllers_are_enabled() {
        let root = root("cpu memory pids", "cpu memory pids\n");
        create_in(root.path(), GROUP).unwrap();
        assert_eq!(on(&root), "cpu memory pids\n");
    }

    #[test]
    fn every_hierarchy_of_version_1_gets_the_group_also_where_a_dead_process_has_left_it() {
        let root = TempDir::new("cgroup").unwrap();
        for left in ["cpu/ocm-testing-1/kubepods", "memory"] {
            fs::create_dir_all(root.path().join(left)).unwrap();
        }
        create_in(root.path(), GROUP).unwrap();
        assert!(root.path().join("memory").join(GROUP).is_dir());
        assert!(folders_in(&root.path().join("cpu").join(GROUP)).is_empty());
    }
}
