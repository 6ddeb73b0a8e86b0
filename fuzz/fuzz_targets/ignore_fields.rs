//! `ignoreFields` of server-side apply, with jq, JSONPath and JSON pointers of a hub: what is left is part of the manifest.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ocm_agent::work::fuzzing::without_ignored;
use ocm_api::work::v1::IgnoreField;
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    let Ok((ignored, manifest)) = serde_json::from_slice::<(Vec<IgnoreField>, Value)>(data) else { return };
    match without_ignored(&manifest, &ignored) {
        Ok(left) => assert!(is_part(&left, &manifest), "{left} is not part of {manifest}"),
        Err(message) => assert!(!message.is_empty()),
    }
});

fn is_part(left: &Value, whole: &Value) -> bool {
    match (left, whole) {
        (Value::Object(left), Value::Object(whole)) => {
            left.iter().all(|(key, left)| whole.get(key).is_some_and(|whole| is_part(left, whole)))
        }
        // In their order, as elements may have been removed.
        (Value::Array(left), Value::Array(whole)) => {
            let mut whole = whole.iter();
            left.iter().all(|left| whole.any(|whole| is_part(left, whole)))
        }
        (left, whole) => left == whole,
    }
}
