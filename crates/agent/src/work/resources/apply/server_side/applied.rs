//! Which fields objects had after server-side apply.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use kube::core::ObjectMeta;
use ocm_api::work::v1::ResourceIdentifier;
use serde_json::Value;

/// A hash of the manifest and of the fields that it owned after it was applied, for each object. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(in crate::work::resources) struct AppliedFields {
    hashes: Arc<Mutex<HashMap<ResourceIdentifier, u64>>>,
}

impl AppliedFields {
    pub(super) fn contains(&self, id: &ResourceIdentifier) -> bool {
        self.hashes().contains_key(id)
    }

    /// Whether the object still has all fields of this manifest as they were applied.
    pub(super) fn is_current(
        &self,
        id: &ResourceIdentifier,
        manifest: &Value,
        manager: &str,
        object: &ObjectMeta,
    ) -> bool {
        let known = self.hashes().get(id).copied();
        known.is_some() && known == hash(manifest, manager, object)
    }

    pub(super) fn insert(&self, id: &ResourceIdentifier, manifest: &Value, manager: &str, object: &ObjectMeta) {
        match hash(manifest, manager, object) {
            Some(hash) => _ = self.hashes().insert(id.clone(), hash),
            None => self.remove(id),
        }
    }

    pub(in crate::work::resources) fn remove(&self, id: &ResourceIdentifier) {
        self.hashes().remove(id);
    }

    fn hashes(&self) -> MutexGuard<'_, HashMap<ResourceIdentifier, u64>> {
        self.hashes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `None` if the manager owns no fields of the object. The entry changes when somebody else changes the value of one of its
/// fields, since they own the field then, and when the manager itself does.
fn hash(manifest: &Value, manager: &str, object: &ObjectMeta) -> Option<u64> {
    let entries = object.managed_fields.as_deref().unwrap_or_default();
    let ours = entries.iter().find(|entry| {
        entry.manager.as_deref() == Some(manager)
            && entry.operation.as_deref() == Some("Apply")
            && entry.subresource.as_deref().unwrap_or_default().is_empty()
    })?;
    let mut hasher = DefaultHasher::new();
    let time = ours.time.as_ref().map(|time| time.0);
    let fields = ours.fields_v1.as_ref().map(|fields| fields.0.to_string());
    (manifest.to_string(), &ours.api_version, fields, time, &object.uid).hash(&mut hasher);
    Some(hasher.finish())
}
