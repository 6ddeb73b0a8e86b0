//! Merge patches between two objects: what is patched is the new object, in which a null counts as an absent key.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ocm_apimachinery::merge;
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    let Ok((old, new)) = serde_json::from_slice::<(Value, Value)>(data) else { return };
    let mut patched = old.clone();
    if let Some(patch) = merge::diff(&old, &new) {
        merge::apply(&mut patched, &patch);
    }
    assert_eq!(without_nulls(patched), without_nulls(new));
});

/// A list is replaced as a whole, nulls included.
fn without_nulls(value: Value) -> Value {
    let Value::Object(fields) = value else { return value };
    let there = fields.into_iter().filter(|(_, value)| !value.is_null());
    Value::Object(there.map(|(key, value)| (key, without_nulls(value))).collect())
}
