//! What a node needs of the machine, and what to do where it is missing.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::config::CNI_PLUGINS;
use crate::Assets;

/// A program and the Debian package it is in.
struct Program {
    name: &'static str,
    package: &'static str,
}

const fn program(name: &'static str, package: &'static str) -> Program {
    Program { name, package }
}

const PROGRAMS: &[Program] = &[
    program("unshare", "util-linux"),
    program("setpriv", "util-linux"),
    program("mount", "mount"),
    program("ip", "iproute2"),
    program("nft", "nftables"),
    program("containerd", "containerd"),
    program("containerd-shim-runc-v2", "containerd"),
    program("ctr", "containerd"),
    program("runc", "runc"),
    program("docker-registry", "docker-registry"),
    program("busybox", "busybox-static"),
];

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
    missing.extend(BINARIES.iter().filter_map(|binary| built(binary).err()).map(|error| format!("{error:#}")));
    // Where the binaries are may be what cannot be found out, and that is one thing, not three.
    missing.dedup();
    if missing.is_empty() {
        return Ok(());
    }
    bail!("a node cannot run here:\n- {}", missing.join("\n- "))
}

fn built(binary: &str) -> Result<PathBuf> {
    Assets::discover()?.find(binary)
}

/// Where a program of [`PROGRAMS`] is.
pub(super) fn find(name: &str) -> Result<PathBuf> {
    let found = search_path().into_iter().map(|folder| folder.join(name)).find(|path| path.is_file());
    found.with_context(|| format!("{name} is not there: {INSTALL}"))
}

/// `PATH`, and the folders that only root has there.
fn search_path() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]).collect()
}

impl Machine {
    fn missing(&self) -> Vec<String> {
        let programs = PROGRAMS
            .iter()
            .filter(|program| !self.has(program.name))
            .map(|program| format!("{} is not there (package {}): {INSTALL}", program.name, program.package));
        let plugins = Path::new(CNI_PLUGINS).join("ptp");
        let plugins = (!self.holds(&plugins))
            .then(|| format!("{} is not there (package containernetworking-plugins): {INSTALL}", plugins.display()));
        let kernel = KERNEL.iter().filter(|(file, ..)| !self.holds(Path::new(file)));
        let kernel = kernel.map(|(_, lacks, remedy)| format!("the kernel lacks {lacks}: {remedy}"));
        let root = (!self.root).then(not_root);
        root.into_iter().chain(programs).chain(plugins).chain(kernel).collect()
    }

    fn has(&self, program: &str) -> bool {
        self.path.iter().any(|folder| folder.join(program).is_file())
    }

    fn holds(&self, path: &Path) -> bool {
        self.top.join(path.strip_prefix("/").unwrap_or(path)).exists()
    }
}

/// A file that is there when the kernel can do something, what that is, and what to do where it cannot.
const KERNEL: &[(&str, &str, &str)] = &[
    ("/proc/self/ns/net", "network namespaces", "use one built with CONFIG_NET_NS"),
    ("/proc/self/ns/pid", "process namespaces", "use one built with CONFIG_PID_NS"),
    ("/sys/fs/cgroup", "control groups", "use one built with CONFIG_CGROUPS, and mount them at /sys/fs/cgroup"),
];

/// The very command again, since what it is started with may have been built by `make` as somebody else.
fn not_root() -> String {
    let words: Vec<_> = std::env::args().collect();
    let again = Assets::discover().and_then(|assets| assets.find(BINARIES[0])).ok();
    let assets =
        again.as_deref().and_then(Path::parent).map(|folder| format!("KUBEBUILDER_ASSETS={} ", folder.display()));
    format!(
        "this is not root, who alone may make network namespaces, mounts and packet rules: run\n    sudo {}{}",
        assets.unwrap_or_default(),
        words.join(" ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TempDir;

    #[test]
    fn everything_that_is_missing_is_named_with_its_remedy() {
        let top = TempDir::new("machine").unwrap();
        let machine = Machine { root: false, path: vec![top.path().to_owned()], top: top.path().to_owned() };
        let missing = machine.missing().join("\n");
        for part in ["sudo", "docker-registry", "busybox-static", "containernetworking-plugins", "CONFIG_CGROUPS"] {
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
        PROGRAMS.iter().for_each(|program| put(bin.join(program.name)));
        KERNEL.iter().for_each(|(file, ..)| put(top.path().join(file.trim_start_matches('/'))));
        put(top.path().join(CNI_PLUGINS.trim_start_matches('/')).join("ptp"));
        let machine = Machine { root: true, path: vec![bin], top: top.path().to_owned() };
        assert_eq!(machine.missing(), Vec::<String>::new());
    }
}
