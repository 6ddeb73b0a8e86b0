//! Where the Kubernetes binaries are.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context as _, Result, bail};

/// The folders that are searched for etcd, kube-apiserver, kubectl and so on.
#[derive(Clone, Debug)]
pub struct Assets {
    folders: Vec<PathBuf>,
}

impl Assets {
    /// `$KUBEBUILDER_ASSETS` first, then the folder that `make testenv` fills.
    ///
    /// Looked up once per process.
    pub fn discover() -> Result<Self> {
        static FOUND: OnceLock<std::result::Result<Assets, String>> = OnceLock::new();
        FOUND.get_or_init(|| discover().map_err(|error| format!("{error:#}"))).clone().map_err(anyhow::Error::msg)
    }

    /// Only these folders, in this order.
    pub fn in_folders<P: Into<PathBuf>>(folders: impl IntoIterator<Item = P>) -> Self {
        Self { folders: folders.into_iter().map(Into::into).collect() }
    }

    /// The first of the folders that holds `binary`.
    pub fn find(&self, binary: &str) -> Result<PathBuf> {
        let places: Vec<_> = self.folders.iter().map(|folder| folder.join(binary)).collect();
        if let Some(found) = places.iter().find(|path| path.is_file()) {
            return Ok(found.clone());
        }
        let looked: Vec<_> = places.iter().map(|path| path.display().to_string()).collect();
        bail!(
            "{binary} is missing; looked for {}. Run `{}` to build it, \
             or set KUBEBUILDER_ASSETS to a folder that holds it",
            looked.join(" and "),
            target(binary)
        )
    }
}

/// The make target that builds a binary: those that only a node needs have a target of their own.
fn target(binary: &str) -> &'static str {
    match binary {
        "kubelet" | "kube-proxy" | "kube-scheduler" => "make testenv-node",
        _ => "make testenv",
    }
}

fn discover() -> Result<Assets> {
    let kubebuilder = std::env::var_os("KUBEBUILDER_ASSETS").filter(|value| !value.is_empty());
    let mut folders: Vec<_> = kubebuilder.into_iter().map(PathBuf::from).collect();
    match testenv_folder() {
        Ok(folder) => folders.push(folder),
        Err(error) if folders.is_empty() => return Err(error),
        Err(_) => {}
    }
    Ok(Assets { folders })
}

fn testenv_folder() -> Result<PathBuf> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testenv/build.sh");
    let output = Command::new("bash")
        .arg(&script)
        .arg("path")
        .output()
        .with_context(|| format!("failed to run {} with bash", script.display()))?;
    if !output.status.success() {
        bail!(
            "{} path failed: {}; set KUBEBUILDER_ASSETS to a folder that holds the Kubernetes binaries",
            script.display(),
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}
