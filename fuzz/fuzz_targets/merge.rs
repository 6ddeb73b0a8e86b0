//! Merge patches between two objects.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ocm_apimachinery::merge;
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    let Ok((old, new)) = serde_json::from_slice::<(Value, Value)>(data) else { return };
    if let Some(patch) = merge::diff(&old, &new) {
        let mut patched = old;
        merge::apply(&mut patched, &patch);
        let _ = patched;
    } else {
        assert_eq!(old, new);
    }
});
