//! Merging a manifest's metadata into an object's.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::work::ownership::{self, Ownership};

/// A key of a manifest with this ending asks for the key without it to be removed.
const REMOVAL: char = '-';

/// Merges labels, annotations and owner references; returns whether anything changed.
pub(super) fn merge(present: &mut ObjectMeta, manifest: &ObjectMeta, ownership: &Ownership) -> bool {
    let labels = merge_map(&mut present.labels, manifest.labels.as_ref());
    let annotations = merge_map(&mut present.annotations, manifest.annotations.as_ref());
    labels | annotations | own(present, ownership)
}

fn merge_map(present: &mut Option<BTreeMap<String, String>>, wanted: Option<&BTreeMap<String, String>>) -> bool {
    let Some(wanted) = wanted.filter(|wanted| !wanted.is_empty()) else { return false };
    let map = present.get_or_insert_default();
    // Compared as a whole: a manifest may set a key and ask for its removal.
    let before = map.clone();
    for (key, value) in wanted {
        match key.strip_suffix(REMOVAL) {
            Some(removed) => _ = map.remove(removed),
            None => _ = map.insert(key.clone(), value.clone()),
        }
    }
    *map != before
}

/// Takes out the keys that ask for a removal: there is nothing to remove from a new object.
pub(super) fn strip_removals(metadata: &mut ObjectMeta) {
    for map in [&mut metadata.labels, &mut metadata.annotations].into_iter().flatten() {
        map.retain(|key, _| !key.ends_with(REMOVAL));
    }
}

/// Sets or removes our owner reference; returns whether that changed anything.
pub(super) fn own(metadata: &mut ObjectMeta, ownership: &Ownership) -> bool {
    let present = metadata.owner_references.clone().unwrap_or_default();
    let owners = ownership::merged(&present, ownership);
    let changed = owners != present;
    if changed {
        metadata.owner_references = Some(owners);
    }
    changed
}
