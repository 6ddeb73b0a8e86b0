//! What a node needs of the machine, and what to do where it is missing.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::images;
use crate::Assets;

/// What is needed, line by line: a program or the path of a file, the Debian package it is in, and what for.
const NEEDS: &str = include_str!("../../../../testenv/node.txt");

/// The parts of Kubernetes that only a node needs.
pub(super) const BINARIES: [&str; 3] = ["kubelet", "kube-proxy", "kube-scheduler"];

const INSTALL: &str = "run `sudo testenv/packages.sh`, which installs what a node needs on Debian and says why";

/// The machine, as far as a node is concerned.
struct Machine {
    root: bool,
    /// Where programs are looked for.
    path: Vec<PathBuf>,
    /// Where `/` is, so that tests can have one of their own.
    top: PathBuf,
}

/// Whether a node can run on this machine; fails with everything that is missing at once, each with its remedy.
///
/// [`isolated`](super::isolated) asks this first.
pub fn check() -> Result<()> {
    let root = rustix::process::geteuid().is_root();
    let machine = Machine { root, path: search_path(), top: PathBuf::from("/") };
    let mut missing = machine.missing();
    missing.extend(packs_busybox().err().map(|error| format!("{error:#}")));
    missing.extend(BINARIES.iter().filter_map(|binary| built(binary).err()).map(|error| format!("{error:#}")));
    // Where the binaries are may be what cannot be found out, and that is one thing, not three.
    missing.dedup();
    if missing.is_empty() {
        return Ok(());
    }
    bail!("a node cannot run here:\n- {}", missing.join("\n- "))
}

/// Names of programs or paths of files, and their packages.
fn needs() -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = NEEDS.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| {
        let mut words = line.split_whitespace();
        Some((words.next()?, words.next()?))
    })
}

/// An error if the busybox that is installed is linked dynamically, and cannot be packed. A missing one is reported elsewhere.
fn packs_busybox() -> Result<()> {
    let Ok(path) = find("busybox") else { return Ok(()) };
    let packed = images::pause()?.write(&mut std::io::sink());
    packed.with_context(|| format!("{} cannot be packed (package busybox-static): {INSTALL}", path.display()))
}

fn built(binary: &str) -> Result<PathBuf> {
    Assets::discover()?.find(binary)
}

/// Where a program of [`NEEDS`] is.
pub(super) fn find(name: &str) -> Result<PathBuf> {
    let found = search_path().into_iter().map(|folder| folder.join(name)).find(|path| path.is_file());
    found.with_context(|| format!("{name} is missing: {INSTALL}"))
}

/// `PATH`, and the folders that only root has there.
fn search_path() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]).collect()
}

impl Machine {
    fn missing(&self) -> Vec<String> {
        let programs = needs()
            .filter(|(name, _)| !self.has(name))
            .map(|(name, package)| format!("{name} is missing (package {package}): {INSTALL}"));
        let kernel = KERNEL.iter().filter(|(file, ..)| !self.holds(Path::new(file)));
        let kernel = kernel.map(|(_, lacks, remedy)| format!("the kernel lacks {lacks}: {remedy}"));
        let root = (!self.root).then(not_root);
        root.into_iter().chain(programs).chain(kernel).collect()
    }

    fn has(&self, program: &str) -> bool {
        if program.starts_with('/') {
            return self.holds(Path::new(program));
        }
        self.path.iter().any(|folder| folder.join(program).is_file())
    }

    fn holds(&self, path: &Path) -> bool {
        self.top.join(path.strip_prefix("/").unwrap_or(path)).exists()
    }
}

/// A file that exists if the kernel has a feature, the feature, and what to do without it.
const KERNEL: &[(&str, &str, &str)] = &[
    ("/proc/self/ns/net", "network namespaces", "use one built with CONFIG_NET_NS"),
    ("/proc/self/ns/pid", "process namespaces", "use one built with CONFIG_PID_NS"),
    ("/sys/fs/cgroup", "control groups", "use one built with CONFIG_CGROUPS, and mount them at /sys/fs/cgroup"),
];

fn not_root() -> String {
    let again = again(std::env::args(), |variable| std::env::var(variable).ok());
    format!("this is not root, who alone may make network namespaces, mounts and packet rules: run\n    {again}")
}

/// The very command again, since what it is started with may have been built by `make` as somebody else, whose binaries of
/// Kubernetes are not where root's would be.
fn again(command: impl Iterator<Item = String>, variable: impl Fn(&str) -> Option<String>) -> String {
    let cache = variable("XDG_CACHE_HOME").or_else(|| Some(format!("{}/.cache", variable("HOME")?)));
    let set = [("KUBEBUILDER_ASSETS", variable("KUBEBUILDER_ASSETS")), ("XDG_CACHE_HOME", cache)];
    let set = set.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", value?)));
    ["sudo", "env"].into_iter().map(str::to_owned).chain(set).chain(command).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TempDir;
    use crate::node::config::CNI_PLUGINS;

    #[test]
    fn everything_that_is_missing_is_named_with_its_remedy() {
        let top = TempDir::new("machine").unwrap();
        let machine = Machine { root: false, path: vec![top.path().to_owned()], top: top.path().to_owned() };
        let missing = machine.missing().join("\n");
        for part in ["sudo", "docker-registry", "iptables", "busybox-static", "/usr/lib/cni/portmap", "CONFIG_CGROUPS"]
        {
            assert!(missing.contains(part), "{part} is not in: {missing}");
        }
        assert!(missing.contains("testenv/packages.sh"), "{missing}");
    }

    #[test]
    fn nothing_is_missing_on_a_machine_that_has_all() {
        let top = TempDir::new("machine").unwrap();
        let bin = top.path().join("bin");
        let put = |path: PathBuf| {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        };
        let place = |name: &str| name.strip_prefix('/').map_or_else(|| bin.join(name), |path| top.path().join(path));
        needs().for_each(|(name, _)| put(place(name)));
        KERNEL.iter().for_each(|(file, ..)| put(top.path().join(file.trim_start_matches('/'))));
        let machine = Machine { root: true, path: vec![bin], top: top.path().to_owned() };
        assert_eq!(machine.missing(), Vec::<String>::new());
    }

    #[test]
    fn another_user_than_root_is_told_the_command_that_finds_their_binaries() {
        let command = || ["ocm-test-node", "all"].map(str::to_owned).into_iter();
        let home = |variable: &str| (variable == "HOME").then(|| "/home/me".to_owned());
        assert_eq!(again(command(), home), "sudo env XDG_CACHE_HOME=/home/me/.cache ocm-test-node all");
        let all = |variable: &str| Some(format!("/{}", variable.to_lowercase()));
        let expected =
            "sudo env KUBEBUILDER_ASSETS=/kubebuilder_assets XDG_CACHE_HOME=/xdg_cache_home ocm-test-node all";
        assert_eq!(again(command(), all), expected);
    }

    #[test]
    fn plugins_are_looked_for_where_containerd_looks_for_them() {
        assert!(needs().any(|(name, _)| Path::new(name).parent() == Some(Path::new(CNI_PLUGINS))));
    }
}
