//! ManifestWorks, as a hub hands them down: what is read is written back without loss.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ocm_api::work::v1::ManifestWork;

fuzz_target!(|data: &[u8]| {
    let Ok(work) = serde_json::from_slice::<ManifestWork>(data) else { return };
    let written = serde_json::to_value(&work).expect("a work can be written");
    let read_back: ManifestWork = serde_json::from_value(written).expect("what is written can be read");
    assert_eq!(read_back, work);
});
