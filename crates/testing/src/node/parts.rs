//! The processes of a node.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::config::{Files, login_path};
use super::requirements::find;
use super::{ADDRESS, NAME};
use crate::process::Process;
use crate::{Assets, ControlPlane, write_kubeconfig};

/// What runs the containers, and where their images come from.
pub(super) fn start_runtime(dir: &Path, files: &Files) -> Result<Vec<Process>> {
    let build = |name: &str| anyhow::Ok(Process::build(name, find(name)?, log(dir, name)));
    let registry = build("docker-registry")?.arg("serve").arg(&files.registry).start()?;
    let containerd = build("containerd")?.arg("--config").arg(&files.containerd).start()?;
    Ok(vec![registry, containerd])
}

/// What makes containers of pods, under the identities that Kubernetes has for them.
pub(super) fn start_kubernetes(
    dir: &Path,
    files: &Files,
    plane: &ControlPlane,
    assets: &Assets,
) -> Result<Vec<Process>> {
    let login = |part: &str, user: &str, groups: &[&str]| -> Result<PathBuf> {
        let path = login_path(dir, part);
        write_kubeconfig(&plane.kubeconfig_for_user(user, groups)?, &path)?;
        Ok(path)
    };
    let build = |name: &str| anyhow::Ok(Process::build(name, assets.find(name)?, log(dir, name)));
    let kubelet = build("kubelet")?
        .arg("--config")
        .arg(&files.kubelet)
        .arg("--kubeconfig")
        .arg(login("kubelet", &format!("system:node:{NAME}"), &["system:nodes"])?)
        .args(["--hostname-override", NAME, "--node-ip", ADDRESS])
        .start()?;
    let scheduler = build("kube-scheduler")?
        .arg("--kubeconfig")
        .arg(login("kube-scheduler", "system:kube-scheduler", &[])?)
        .args(["--leader-elect=false", "--bind-address=127.0.0.1", "--authentication-skip-lookup=true"])
        .start()?;
    login("kube-proxy", "system:kube-proxy", &[])?;
    let proxy = build("kube-proxy")?.arg("--config").arg(&files.kube_proxy).start()?;
    Ok(vec![kubelet, scheduler, proxy])
}

fn log(dir: &Path, name: &str) -> PathBuf {
    dir.join(format!("{name}.log"))
}

/// Fails when one of the processes has ended, with its last words.
pub(super) fn all_run(processes: &[Process]) -> Result<()> {
    for process in processes {
        if let Some(status) = process.try_wait()? {
            let words = format!("{} ended ({status}); its last lines:\n{}", process.name(), process.log_tail());
            return Err(anyhow::Error::msg(words)).context("a part of the node does not run");
        }
    }
    Ok(())
}
