//! JSONPath, as anybody may write it into a work: what it selects is in the document.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ocm_apimachinery::{budget::Budget, jsonpath::JsonPath};
use serde_json::Value;

fn budget() -> Budget {
    Budget::new(100_000, 100_000)
}

fuzz_target!(|data: &[u8]| {
    let Ok((path, document)) = serde_json::from_slice::<(String, Value)>(data) else { return };
    for parsed in [JsonPath::expression(&path), JsonPath::template(&path)].into_iter().flatten() {
        let path = parsed.allow_missing_keys();
        let _ = path.find(&document, &mut budget());
        for pointer in path.pointers(&document, &mut budget()).unwrap_or_default() {
            assert!(document.pointer(&pointer).is_some(), "{pointer} is not in {document}");
        }
    }
});
