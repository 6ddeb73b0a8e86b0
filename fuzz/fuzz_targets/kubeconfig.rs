//! Kubeconfigs, as secrets hold them: what the agent makes of one leads to the same hub.
#![no_main]

use kube::config::Kubeconfig;
use libfuzzer_sys::fuzz_target;
use ocm_agent::agent::fuzzing::{check_hub, hub_kubeconfig};

fuzz_target!(|text: &str| {
    let Ok(bootstrap) = Kubeconfig::from_yaml(text) else { return };
    let _ = serde_json::to_value(&bootstrap);
    match hub_kubeconfig(&bootstrap) {
        Ok(written) => {
            let own = Kubeconfig::from_yaml(&written).expect("what the agent writes can be read");
            assert_eq!(check_hub(&own, &bootstrap), Ok(()), "{written}");
            assert_eq!(hub_kubeconfig(&own), Ok(written));
        }
        Err(missing) => assert!(!missing.is_empty()),
    }
});
