//! Merges the metadata of a manifest into that of an object.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::work::ownership::{self, Ownership};

/// A key of a manifest with this suffix requests that the key without it is removed.
const REMOVAL: char = '-';

/// Merges labels, annotations and owner references; returns whether anything changed.
pub(super) fn merge(existing: &mut ObjectMeta, manifest: &ObjectMeta, ownership: &Ownership) -> bool {
    let labels = merge_map(&mut existing.labels, manifest.labels.as_ref());
    let annotations = merge_map(&mut existing.annotations, manifest.annotations.as_ref());
    labels | annotations | own(existing, ownership)
}

fn merge_map(existing: &mut Option<BTreeMap<String, String>>, desired: Option<&BTreeMap<String, String>>) -> bool {
    let Some(desired) = desired.filter(|desired| !desired.is_empty()) else { return false };
    let map = existing.get_or_insert_default();
    // Compared as a whole: a manifest may set a key and request its removal.
    let before = map.clone();
    for (key, value) in desired {
        match key.strip_suffix(REMOVAL) {
            Some(removed) => _ = map.remove(removed),
            None => _ = map.insert(key.clone(), value.clone()),
        }
    }
    *map != before
}

/// Removes the keys that request a removal: a new object has nothing to remove.
pub(super) fn strip_removals(metadata: &mut ObjectMeta) {
    for map in [&mut metadata.labels, &mut metadata.annotations].into_iter().flatten() {
        map.retain(|key, _| !key.ends_with(REMOVAL));
    }
}

/// Sets or removes our owner reference; returns whether that changed anything.
pub(super) fn own(metadata: &mut ObjectMeta, ownership: &Ownership) -> bool {
    let existing = metadata.owner_references.clone().unwrap_or_default();
    let owners = ownership::merged(&existing, ownership);
    let changed = owners != existing;
    if changed {
        metadata.owner_references = Some(owners);
    }
    changed
}
