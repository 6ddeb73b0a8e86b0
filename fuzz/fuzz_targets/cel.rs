//! Expressions of users: no text panics, and none costs more than its budget allows.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ocm_cel::{Budget, Environment, Value};

fuzz_target!(|source: &str| {
    let object = serde_json::json!({"a": [1, "x", {"b": null}], "t": "text"});
    if let Ok(program) = Environment::new(["object"]).compile(source) {
        let _ = program.evaluate([Value::from(&object)], &mut Budget::new(100_000, 100_000));
    }
});
