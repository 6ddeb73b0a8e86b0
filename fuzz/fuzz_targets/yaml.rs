//! YAML, as files and secrets hold it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ocm_apimachinery::yaml;
use serde_json::Value;

fuzz_target!(|text: &str| {
    let Ok(value) = yaml::from_str::<Value>(text) else { return };
    let written = yaml::to_string(&value).expect("a value can be written");
    let read_back: Value = yaml::from_str(&written).expect("what is written can be read");
    assert_eq!(read_back, value, "{written}");
});
