//! Manifests, as the author of an add-on gives them: all are in the works, which then stay as they are.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ocm_addon::fuzzing::works;
use ocm_api::work::v1::Manifest;

fuzz_target!(|data: &[u8]| {
    let Ok(manifests) = serde_json::from_slice::<Vec<Manifest>>(data) else { return };
    match works(&manifests, &[]) {
        Ok(written) => {
            let packed: usize = written.iter().map(|work| work.spec.workload.manifests.len()).sum();
            assert_eq!(packed, manifests.len());
            assert_eq!(works(&manifests, &written), Ok(Vec::new()), "{written:?}");
        }
        Err(error) => assert!(!error.is_empty()),
    }
});
