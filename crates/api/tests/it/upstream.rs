//! OCM's own CRDs, from its published Go module; and those of Kubernetes that OCM installs, which are in none.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use serde_json::Value;

const MODULE: &str = "open-cluster-management.io/api";
/// Folders of the module that hold CRDs of ours. A definition that is in two of them is meant as in the first.
const FOLDERS: [&str; 9] = [
    "cluster/v1",
    "cluster/v1alpha1",
    "cluster/v1beta1",
    "cluster/v1beta2",
    "work/v1",
    "work/v1alpha1",
    "addon/v1beta1",
    "addon/v1alpha1",
    "operator/v1",
];
/// The definitions of Kubernetes' multicluster interest group, written down.
const FOREIGN: [(&str, &str); 2] = [
    ("clusterprofiles.multicluster.x-k8s.io", include_str!("fixtures/upstream/clusterprofiles.yaml")),
    ("clusterproperties.about.k8s.io", include_str!("fixtures/upstream/clusterproperties.yaml")),
];

static DIRECTORY: LazyLock<Result<PathBuf, String>> = LazyLock::new(download);

/// The definition of this name.
pub(crate) fn crd(name: &str) -> Value {
    if let Some((_, text)) = FOREIGN.iter().find(|(foreign, _)| *foreign == name) {
        return ocm_apimachinery::yaml::from_str(text).unwrap();
    }
    let directory = DIRECTORY.as_ref().unwrap_or_else(|reason| panic!("{reason}"));
    FOLDERS
        .iter()
        .flat_map(|folder| crds_in(&directory.join(folder)))
        .find(|crd| crd["metadata"]["name"] == name)
        .unwrap_or_else(|| panic!("{MODULE} has no CRD {name}"))
}

fn crds_in(folder: &Path) -> Vec<Value> {
    let entries =
        std::fs::read_dir(folder).unwrap_or_else(|error| panic!("failed to list {}: {error}", folder.display()));
    let files = entries.map(|entry| entry.unwrap().path());
    files.filter(|path| path.to_string_lossy().ends_with(".crd.yaml")).map(|path| read(&path)).collect()
}

fn read(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap();
    ocm_apimachinery::yaml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The folder of the module in Go's cache, in the version that `testenv/ocm-api/go.mod` pins; fetched where it is missing.
fn download() -> Result<PathBuf, String> {
    let advice = "The tests of ocm-api compare with OCM's CRDs. Run `make testenv` once, with Go installed and online.";
    let output = Command::new("go")
        .args(["mod", "download", "-json", MODULE])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testenv/ocm-api"))
        .output()
        .map_err(|error| format!("failed to run go: {error}. {advice}"))?;
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    match answer["Dir"].as_str() {
        Some(directory) if output.status.success() => Ok(directory.into()),
        _ => {
            let reason = answer["Error"].as_str().map(str::to_owned);
            let reason = reason.unwrap_or_else(|| String::from_utf8_lossy(&output.stderr).into_owned());
            Err(format!("failed to download {MODULE}: {}. {advice}", reason.trim()))
        }
    }
}
