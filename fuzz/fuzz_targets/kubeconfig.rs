//! Kubeconfigs, as secrets hold them.
#![no_main]

use kube::config::Kubeconfig;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(kubeconfig) = Kubeconfig::from_yaml(text) {
        let _ = serde_json::to_value(&kubeconfig);
    }
});
