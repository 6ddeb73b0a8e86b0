//! What is known of some kinds: when they have done what they are for.

use kube::core::GroupVersionKind;
use ocm_api::conditions::manifest;
use serde_json::Value;

/// Whether an object has the condition, with a message; `None` if that is not known of its kind.
pub(super) fn verdict(condition: &str, object: &Value, gvk: &GroupVersionKind) -> Option<(bool, Option<String>)> {
    if condition != manifest::COMPLETE {
        return None;
    }
    match (gvk.group.as_str(), gvk.version.as_str(), gvk.kind.as_str()) {
        ("batch", "v1", "Job") => {
            let is_finished = is_finished(object);
            let message = if is_finished { "The job is finished" } else { "The job is not finished" };
            Some((is_finished, Some(message.to_owned())))
        }
        ("", "v1", "Pod") => {
            let phase = object.pointer("/status/phase").and_then(Value::as_str).unwrap_or("Unknown");
            Some((matches!(phase, "Succeeded" | "Failed"), Some(format!("The phase of the pod is {phase}"))))
        }
        _ => None,
    }
}

/// A job that has failed is finished, too.
fn is_finished(job: &Value) -> bool {
    let conditions = job.pointer("/status/conditions").and_then(Value::as_array);
    let ends = |condition: &Value| {
        matches!(condition["type"].as_str(), Some("Complete" | "Failed")) && condition["status"] == "True"
    };
    conditions.is_some_and(|conditions| conditions.iter().any(ends))
}
