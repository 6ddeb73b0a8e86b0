//! Label selectors, as anybody may write them into a cluster set.
#![no_main]

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use libfuzzer_sys::fuzz_target;
use ocm_apimachinery::selector::Selector;

fuzz_target!(|data: &[u8]| {
    let Ok((selector, labels)) = serde_json::from_slice::<(LabelSelector, BTreeMap<String, String>)>(data) else { return };
    if let Ok(selector) = Selector::new(Some(&selector)) {
        let _ = selector.matches(&labels);
    }
});
