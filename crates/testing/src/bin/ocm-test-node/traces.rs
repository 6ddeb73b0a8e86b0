//! What a node could leave on the machine besides processes.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// Folders of the machine that a node would write to without its namespaces.
const FOLDERS: [&str; 7] = [
    "/run/containerd",
    "/run/netns",
    "/var/lib/cni",
    "/var/lib/containerd",
    "/var/lib/kubelet",
    "/var/log/containers",
    "/var/log/pods",
];

/// Kernel settings that kubelet changes and that are in no namespace.
pub(crate) const SETTINGS: [&str; 6] = [
    "/proc/sys/vm/overcommit_memory",
    "/proc/sys/vm/panic_on_oom",
    "/proc/sys/kernel/panic",
    "/proc/sys/kernel/panic_on_oops",
    "/proc/sys/kernel/keys/root_maxkeys",
    "/proc/sys/kernel/keys/root_maxbytes",
];

/// The state of the machine at one time, except control groups.
#[derive(Debug)]
pub(crate) struct Traces {
    links: BTreeSet<String>,
    mounts: BTreeSet<String>,
    folders: Vec<BTreeSet<String>>,
    settings: Vec<Option<String>>,
    rules: String,
}

impl Traces {
    pub(crate) fn now() -> Result<Self> {
        let mounts = fs::read_to_string("/proc/self/mounts").context("failed to read the mounts")?;
        Ok(Self {
            links: names_in("/sys/class/net"),
            mounts: mounts.lines().map(str::to_owned).collect(),
            folders: FOLDERS.map(names_in).into(),
            settings: SETTINGS.map(|file| fs::read_to_string(file).ok()).into(),
            rules: rules()?,
        })
    }

    pub(crate) fn compare_with_now(&self) -> Result<()> {
        let now = Self::now()?;
        let links: Vec<_> = now.links.difference(&self.links).collect();
        ensure!(links.is_empty(), "the machine has new network interfaces: {links:?}");
        let mounts: Vec<_> = now.mounts.difference(&self.mounts).collect();
        ensure!(mounts.is_empty(), "the machine has new mounts: {mounts:?}");
        for (folder, (before, now)) in FOLDERS.iter().zip(self.folders.iter().zip(&now.folders)) {
            let new: Vec<_> = now.difference(before).collect();
            ensure!(new.is_empty(), "{folder} of the machine has new files: {new:?}");
        }
        for (setting, (before, now)) in SETTINGS.iter().zip(self.settings.iter().zip(&now.settings)) {
            ensure!(before == now, "{setting} of the machine was {before:?} and is {now:?}");
        }
        ensure!(now.rules == self.rules, "the machine's packet rules have changed; they are now\n{}", now.rules);
        Ok(())
    }
}

/// The control groups of a node's process, in all hierarchies.
pub(crate) fn control_groups(process: u32) -> Vec<PathBuf> {
    let root = Path::new("/sys/fs/cgroup");
    let group = format!("ocm-testing-{process}");
    let hierarchies = names_in(root).into_iter().map(|name| root.join(name)).chain([root.to_owned()]);
    hierarchies.map(|hierarchy| hierarchy.join(&group)).filter(|folder| folder.exists()).collect()
}

fn rules() -> Result<String> {
    let list = "PATH=$PATH:/usr/sbin:/sbin exec nft --stateless list ruleset";
    let output = Command::new("sh").args(["-c", list]).output().context("failed to run sh")?;
    ensure!(output.status.success(), "failed to list packet rules: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

pub(crate) fn names_in(folder: impl AsRef<Path>) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}
