//! Certificates, as a hub may issue them.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(bundle) = ocm_runtime::pki::Bundle::parse(data) {
        let remaining = bundle.remaining(bundle.not_before());
        assert!((0.0..=1.0).contains(&remaining));
        let _ = bundle.check_key(&String::from_utf8_lossy(data));
    }
});
