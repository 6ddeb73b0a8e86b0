//! What was last written of each object.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use kube::core::DynamicObject;
use ocm_api::work::v1::ResourceIdentifier;
use sha2::{Digest as _, Sha256};

use crate::work::{manifest::DesiredObject, ownership::Ownership};

/// A hash of the manifest, and the resource version that came of writing it. While both are the same nothing is
/// written, whatever defaults the server has added. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct LastWritten {
    entries: Arc<Mutex<HashMap<ResourceIdentifier, Entry>>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    hash: [u8; 32],
    resource_version: String,
}

impl LastWritten {
    pub(super) fn contains(&self, id: &ResourceIdentifier) -> bool {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).contains_key(id)
    }

    /// Whether the object is as it was left when a manifest with this hash was written.
    pub(super) fn is_current(&self, id: &ResourceIdentifier, hash: [u8; 32], object: &DynamicObject) -> bool {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.get(id) == Some(&entry(hash, object))
    }

    pub(super) fn insert(&self, id: ResourceIdentifier, hash: [u8; 32], object: &DynamicObject) {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).insert(id, entry(hash, object));
    }

    pub(super) fn remove(&self, id: &ResourceIdentifier) {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }
}

fn entry(hash: [u8; 32], object: &DynamicObject) -> Entry {
    Entry { hash, resource_version: object.metadata.resource_version.clone().unwrap_or_default() }
}

/// Changes when the manifest or its ownership does.
pub(super) fn hash_of(object: &DesiredObject, ownership: &Ownership) -> [u8; 32] {
    let mut hasher = Sha256::new();
    // Serializing a JSON value does not fail.
    hasher.update(serde_json::to_vec(&object.object).unwrap_or_default());
    hasher.update(format!("{ownership:?}"));
    hasher.finalize().into()
}
