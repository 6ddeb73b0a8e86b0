//! `crds/`: one file per CustomResourceDefinition.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use ocm_apimachinery::yaml;

const HEADER: &str = "# Generated from the types of ocm-api by `cargo run -p xtask -- crds`. Do not edit.\n";

/// Makes `crds/` what the types generate; files of definitions that are no more are deleted.
pub(crate) fn write() -> Result<()> {
    let directory = directory();
    let wanted = generate()?;
    fs::create_dir_all(&directory).with_context(|| format!("failed to create {}", directory.display()))?;
    for name in present(&directory)?.iter().filter(|&name| !wanted.contains_key(name)) {
        fs::remove_file(directory.join(name)).with_context(|| format!("failed to delete crds/{name}"))?;
    }
    for (name, text) in &wanted {
        fs::write(directory.join(name), text).with_context(|| format!("failed to write crds/{name}"))?;
    }
    Ok(())
}

/// Fails when `crds/` is not what the types generate, naming each file that differs.
pub(crate) fn check() -> Result<()> {
    let directory = directory();
    let wanted = generate()?;
    let present = present(&directory)?;
    let names: BTreeSet<&String> = wanted.keys().chain(&present).collect();
    let stale: Vec<String> = names
        .into_iter()
        .filter(|&name| fs::read_to_string(directory.join(name)).ok().as_ref() != wanted.get(name))
        .map(|name| format!("crds/{name}"))
        .collect();
    ensure!(
        stale.is_empty(),
        "not what the types of ocm-api generate: {}; run `cargo run -p xtask -- crds` and commit the result",
        stale.join(", ")
    );
    Ok(())
}

fn generate() -> Result<BTreeMap<String, String>> {
    let definitions = [ocm_api::crds::all()?, ocm_api::crds::optional()?];
    definitions
        .iter()
        .flatten()
        .map(|crd| Ok((crd.file_name(), format!("{HEADER}{}", yaml::to_string(&crd.definition)?))))
        .collect()
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crds")
}

/// Names of the YAML files in a folder; none when it does not exist.
fn present(directory: &Path) -> Result<BTreeSet<String>> {
    if !directory.exists() {
        return Ok(BTreeSet::new());
    }
    let entries = fs::read_dir(directory).with_context(|| format!("failed to list {}", directory.display()))?;
    let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    let names: Result<BTreeSet<String>> = names.collect();
    Ok(names?.into_iter().filter(|name| name.ends_with(".yaml")).collect())
}
