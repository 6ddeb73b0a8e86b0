//! The program under test, for tests that need it as a process.

use std::{ffi::OsString, fs, path::Path};

use anyhow::Result;
use kube::config::Kubeconfig;
use ocm_testing::{Process, ProcessBuilder, write_kubeconfig};

/// The `ocm` binary: the one that `OCM_TESTING_PROGRAM` names, such as that of a release, or else the one that Cargo built for
/// these tests.
pub(crate) fn ocm() -> OsString {
    std::env::var_os("OCM_TESTING_PROGRAM").unwrap_or_else(|| env!("CARGO_BIN_EXE_ocm").into())
}

/// `ocm agent` with its files in this folder: both kubeconfigs, which are written now, its credentials (`hub`) and its log
/// (`log`).
pub(crate) fn agent(
    folder: &Path,
    cluster: &str,
    namespace: &str,
    bootstrap: &Kubeconfig,
    own: &Kubeconfig,
) -> Result<ProcessBuilder> {
    let file = |name: &str| folder.join(name);
    fs::create_dir_all(folder)?;
    write_kubeconfig(bootstrap, file("bootstrap"))?;
    write_kubeconfig(own, file("own"))?;
    Ok(Process::build("ocm agent", ocm(), file("log"))
        .args(["agent", "--listen=127.0.0.1:0", "--spoke-cluster-name", cluster, "--namespace", namespace])
        .arg("--bootstrap-kubeconfig")
        .arg(file("bootstrap"))
        .arg("--kubeconfig")
        .arg(file("own"))
        .arg("--hub-kubeconfig-dir")
        .arg(file("hub"))
        .without_env("RUST_LOG"))
}
