//! Fields of a manifest that server-side apply leaves alone: `serverSideApply.ignoreFields`. Pure.
//!
//! What is ignored as soon as the object exists (OnSpokePresent) is removed from what is applied then. What is ignored as
//! long as only the managed cluster changes it (OnSpokeChange) is applied, but only when the manifest has changed: a hash of
//! what was applied last is in an annotation of the object.

mod jq;
mod json_path;
mod pointer;

use ocm_api::work::v1::{IgnoreField, IgnoreFieldsCondition};
use ocm_apimachinery::{budget::Budget, jsonpath};
use ocm_runtime::digest::sha256_hex;
use serde_json::Value;

/// Why fields cannot be ignored. The whole manifest is not applied then: what should be left alone would be overwritten.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum IgnoreFieldsError {
    #[error("condition is {0:?}, which this agent does not know: use OnSpokePresent or OnSpokeChange")]
    Condition(String),
    #[error("JSON path error in '{path}': {cause}")]
    JsonPath { path: String, cause: String },
    #[error("JSON Pointer error in '{pointer}': {cause}")]
    Pointer { pointer: String, cause: String },
    #[error("JQ expression error in '{expression}': {cause}")]
    Jq { expression: String, cause: String },
}

/// What the JSON paths for one object may cost together.
const JSON_PATHS: u64 = 10_000_000;

/// What is left for the expressions of one object.
struct Limits {
    json_paths: Budget,
    jq: jq::Limits,
}

/// The manifest without the fields that are ignored once the object exists.
///
/// # Errors
/// With the entry of `ignoreFields`.
pub(super) fn pruned(manifest: &Value, ignored: &[IgnoreField]) -> Result<Value, (usize, IgnoreFieldsError)> {
    let mut pruned = manifest.clone();
    let mut limits = Limits { json_paths: Budget::new(JSON_PATHS, jsonpath::PER_PATH), jq: jq::Limits::new() };
    for (index, entry) in ignored.iter().enumerate() {
        prune(&mut pruned, entry, &mut limits).map_err(|error| (index, error))?;
    }
    Ok(pruned)
}

fn prune(manifest: &mut Value, entry: &IgnoreField, limits: &mut Limits) -> Result<(), IgnoreFieldsError> {
    match &entry.condition {
        IgnoreFieldsCondition::OnSpokePresent => {}
        IgnoreFieldsCondition::OnSpokeChange => return Ok(()),
        IgnoreFieldsCondition::Other(condition) => return Err(IgnoreFieldsError::Condition(condition.clone())),
    }
    for path in &entry.json_paths {
        let failed = |cause| IgnoreFieldsError::JsonPath { path: path.clone(), cause };
        json_path::delete(path, manifest, &mut limits.json_paths).map_err(failed)?;
    }
    for pointer in &entry.json_pointers {
        let failed = |cause| IgnoreFieldsError::Pointer { pointer: pointer.clone(), cause };
        pointer::delete(pointer, manifest).map_err(failed)?;
    }
    for expression in &entry.jq_path_expressions {
        let failed =
            |cause: jq::JqError| IgnoreFieldsError::Jq { expression: expression.clone(), cause: cause.to_string() };
        jq::delete(expression, manifest, &mut limits.jq).map_err(failed)?;
    }
    Ok(())
}

/// Changes when the manifest does, apart from the fields that are ignored. Only compared with what this made: OCM's agent has
/// another hash, which costs one more request when one agent takes over from the other.
pub(super) fn spec_hash(pruned: &Value) -> String {
    sha256_hex(pruned.to_string().as_bytes())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn deployment() -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "annotations": {"x": "1"}},
            "spec": {"replicas": 3, "template": {"spec": {"containers": [
                {"name": "web", "image": "web:1"}, {"name": "side", "image": "side:1"}]}}}})
    }

    fn pruned_by(entries: Value) -> Result<Value, (usize, IgnoreFieldsError)> {
        let entries: Vec<IgnoreField> = serde_json::from_value(entries).unwrap();
        pruned(&deployment(), &entries)
    }

    #[test]
    fn the_fields_of_each_kind_of_path_are_removed() {
        let mut expected = deployment();
        expected["spec"].as_object_mut().unwrap().remove("replicas");
        expected["metadata"]["annotations"].as_object_mut().unwrap().remove("x");
        expected["spec"]["template"]["spec"]["containers"][1].as_object_mut().unwrap().remove("image");
        let all = json!([{"condition": "OnSpokePresent", "jsonPaths": [".spec.replicas"],
            "jsonPointers": ["/metadata/annotations/x", "/spec/missing"],
            "jqPathExpressions": [".spec.template.spec.containers[] | select(.name == \"side\").image"]}]);
        assert_eq!(pruned_by(all).unwrap(), expected);
    }

    #[test]
    fn what_is_ignored_until_the_manifest_changes_is_not_removed() {
        let entry = json!([{"condition": "OnSpokeChange", "jsonPointers": ["/spec/replicas"]}]);
        assert_eq!(pruned_by(entry).unwrap(), deployment());
    }

    #[test]
    fn an_error_names_the_entry_and_the_path() {
        for (entry, expected) in [
            (json!({"jsonPointers": ["spec"]}), "JSON Pointer error in 'spec': "),
            (json!({"jqPathExpressions": [".spec["]}), "JQ expression error in '.spec[': "),
            (json!({"jsonPaths": [".spec[.replicas"]}), "JSON path error in '.spec[.replicas': "),
            (json!({"condition": "FromTheFuture"}), "condition is \"FromTheFuture\""),
        ] {
            let (index, error) = pruned_by(json!([{"condition": "OnSpokePresent"}, entry])).unwrap_err();
            assert_eq!(index, 1);
            assert!(error.to_string().starts_with(expected), "{error}");
        }
    }

    #[test]
    fn the_expressions_for_an_object_share_what_they_may_take() {
        let manifest = json!({"list": vec![0; 30_000]});
        let pruned_by = |kind: &str, expression: &str, count: usize| {
            let entry = json!({"condition": "OnSpokePresent", kind: vec![expression; count]});
            pruned(&manifest, &[serde_json::from_value(entry).unwrap()])
        };
        for (kind, expression, limit) in [
            ("jsonPaths", "..missing.x", "left of the 10000000 for all"),
            ("jqPathExpressions", ".. | select(false)", "all expressions for an object more than 1000000 steps"),
        ] {
            assert!(pruned_by(kind, expression, 1).is_ok(), "{expression}");
            let (_, error) = pruned_by(kind, expression, 200).unwrap_err();
            assert!(error.to_string().contains(limit), "{error}");
        }
    }

    #[test]
    fn the_hash_changes_with_what_is_not_ignored() {
        let ignored: Vec<IgnoreField> =
            serde_json::from_value(json!([{"condition": "OnSpokePresent", "jsonPointers": ["/spec/replicas"]}]))
                .unwrap();
        let hash = |change: Value| {
            let mut manifest = deployment();
            ocm_apimachinery::merge::apply(&mut manifest, &change);
            spec_hash(&pruned(&manifest, &ignored).unwrap())
        };
        assert_eq!(hash(json!({})), hash(json!({"spec": {"replicas": 5}})));
        assert_ne!(hash(json!({})), hash(json!({"spec": {"paused": true}})));
    }
}
