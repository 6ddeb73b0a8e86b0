//! Which fields objects had after server-side apply.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use kube::core::ObjectMeta;
use ocm_api::work::v1::ResourceIdentifier;
use serde_json::Value;

/// How each object was left. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(in crate::work::resources) struct AppliedFields {
    objects: Arc<Mutex<HashMap<ResourceIdentifier, Left>>>,
}

/// How an object was left.
#[derive(Debug)]
struct Left {
    /// A hash of the manifest and of the fields that it owned.
    hash: u64,
    version: Option<String>,
    /// Whether the second in which the manager wrote was over. Times of managed fields have whole seconds: another write of the
    /// same fields by the same manager in the same second does not change the hash.
    is_settled: bool,
}

impl AppliedFields {
    pub(super) fn contains(&self, id: &ResourceIdentifier) -> bool {
        self.objects().contains_key(id)
    }

    /// Whether the object still has all fields of this manifest as they were applied.
    pub(super) fn is_current(
        &self,
        id: &ResourceIdentifier,
        manifest: &Value,
        manager: &str,
        object: &ObjectMeta,
    ) -> bool {
        let objects = self.objects();
        let (Some(left), Some(now)) = (objects.get(id), Left::of(manifest, manager, object)) else { return false };
        left.hash == now.hash && (left.is_settled || left.version == now.version)
    }

    pub(super) fn insert(&self, id: &ResourceIdentifier, manifest: &Value, manager: &str, object: &ObjectMeta) {
        match Left::of(manifest, manager, object) {
            Some(left) => _ = self.objects().insert(id.clone(), left),
            None => self.remove(id),
        }
    }

    pub(in crate::work::resources) fn remove(&self, id: &ResourceIdentifier) {
        self.objects().remove(id);
    }

    fn objects(&self) -> MutexGuard<'_, HashMap<ResourceIdentifier, Left>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Left {
    /// `None` if the manager owns no fields of the object. The entry changes when somebody else changes the value of one of its
    /// fields, since they own the field then, and when the manager itself does.
    fn of(manifest: &Value, manager: &str, object: &ObjectMeta) -> Option<Self> {
        let entries = object.managed_fields.as_deref().unwrap_or_default();
        let ours = entries.iter().find(|entry| is_of(manager, entry))?;
        let mut hasher = DefaultHasher::new();
        let time = ours.time.as_ref().map(|time| time.0);
        let fields = ours.fields_v1.as_ref().map(|fields| fields.0.to_string());
        (manifest.to_string(), &ours.api_version, fields, time, &object.uid).hash(&mut hasher);
        let last = entries.iter().filter_map(|entry| entry.time.as_ref()).map(|time| time.0).max();
        Some(Self { hash: hasher.finish(), version: object.resource_version.clone(), is_settled: last > time })
    }
}

fn is_of(manager: &str, entry: &ManagedFieldsEntry) -> bool {
    entry.manager.as_deref() == Some(manager)
        && entry.operation.as_deref() == Some("Apply")
        && entry.subresource.as_deref().unwrap_or_default().is_empty()
}
