//! ManifestWorks, as a hub hands them down: what is read is written back without loss, what is refused says why, and what
//! the agent writes leaves nothing more to write.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ocm_agent::work::fuzzing::{created, refusal, updated};
use ocm_api::work::v1::{Manifest, ManifestWork};

fuzz_target!(|data: &[u8]| {
    let Ok(work) = serde_json::from_slice::<ManifestWork>(data) else { return };
    let written = serde_json::to_value(&work).expect("a work can be written");
    let read_back: ManifestWork = serde_json::from_value(written).expect("what is written can be read");
    assert_eq!(read_back, work);
    assert_ne!(refusal(&work.spec), Some(String::new()));
    check_objects(&work.spec.workload.manifests);
});

fn check_objects(manifests: &[Manifest]) {
    let objects = created(manifests);
    assert_eq!(objects.len(), manifests.len());
    let mut before = None;
    for (meta, object) in objects {
        let object = match object {
            Ok(object) => object,
            Err(error) => {
                assert!(!error.is_empty());
                continue;
            }
        };
        assert_eq!(object.metadata.name.as_ref(), Some(&meta.name));
        assert_eq!(object.metadata.uid, None);
        let manifest = &manifests[usize::try_from(meta.ordinal).expect("a manifest has a place")];
        // Another object may have its name.
        for present in [Some(object.clone()), before.replace(object)].into_iter().flatten() {
            let Some(written) = updated(&present, manifest) else { continue };
            assert_eq!(updated(&written, manifest), None, "{written:?}");
        }
    }
}
