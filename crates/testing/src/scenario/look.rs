//! Reads and waits for objects with kubectl.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::Secret;
use serde_json::Value;

use crate::{ControlPlane, Seen, eventually};

/// The output of `kubectl get`.
pub async fn get(plane: &ControlPlane, what: &[&str]) -> Result<Value> {
    let args = [&["get"], what, &["-o", "json"]].concat();
    Ok(serde_json::from_str(&plane.kubectl(&args).await?)?)
}

/// Waits until an object has a condition that is True.
pub async fn condition(plane: &ControlPlane, what: &[&str], type_: &str) -> Result<()> {
    eventually(&format!("{} is {type_}", what.join(" ")), || async {
        let object = get(plane, what).await?;
        let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
        let found = conditions.into_iter().find(|condition| condition["type"] == type_);
        anyhow::Ok(match found {
            Some(condition) if condition["status"] == "True" => Seen::Settled(()),
            _ => Seen::NotYet(object["status"].to_string()),
        })
    })
    .await
}

/// Waits until `kubectl get` finds something.
pub async fn is_there(plane: &ControlPlane, what: &[&str]) -> Result<()> {
    let args = [&["get"], what].concat();
    eventually(&format!("{} is there", what.join(" ")), || async { plane.kubectl(&args).await.map(|_| true) }).await
}

/// Waits until `kubectl get` finds nothing.
pub async fn is_gone(plane: &ControlPlane, what: &[&str]) -> Result<()> {
    let args = [&["get", "--ignore-not-found", "-o", "name"], what].concat();
    eventually(&format!("{} is gone", what.join(" ")), || async {
        let found = plane.kubectl(&args).await?;
        anyhow::Ok(if found.trim().is_empty() { Seen::Settled(()) } else { Seen::NotYet(found) })
    })
    .await
}

/// Writes what is in a secret as files into a new folder, as a pod would see it.
pub async fn write_secret(plane: &ControlPlane, what: &[&str], folder: &Path) -> Result<()> {
    let secret: Secret = serde_json::from_value(get(plane, what).await?)?;
    fs::create_dir(folder).with_context(|| format!("failed to create {}", folder.display()))?;
    for (key, value) in secret.data.unwrap_or_default() {
        fs::write(folder.join(&key), value.0).with_context(|| format!("failed to write {key}"))?;
    }
    Ok(())
}
