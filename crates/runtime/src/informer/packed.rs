//! Objects as a cache keeps them.

use std::{fmt, marker::PhantomData, sync::Arc};

use kube::Resource;
use serde::{Serialize, de::DeserializeOwned};
use tracing::error;

/// An object as JSON text, which takes a third of the memory of its Rust value or less: a value has room for every field
/// of its kind, set or not, and an allocation for every string. Parsing it again takes some ten microseconds, which is
/// little compared to the requests of a reconcile.
pub(super) struct Packed<K> {
    json: Arc<[u8]>,
    uid: Option<Arc<str>>,
    /// Its resource version; 0 where that is not a number.
    version: u64,
    kind: PhantomData<fn() -> K>,
}

impl<K> Clone for Packed<K> {
    fn clone(&self) -> Self {
        Self { json: self.json.clone(), uid: self.uid.clone(), version: self.version, kind: PhantomData }
    }
}

impl<K> fmt::Debug for Packed<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packed").field("bytes", &self.json.len()).finish_non_exhaustive()
    }
}

impl<K: Serialize + Resource> Packed<K> {
    /// Keeps an object, without the fields that nobody reads.
    ///
    /// # Errors
    /// When the object cannot be written as JSON, such as a map whose keys are not strings.
    pub(super) fn new(object: &mut K) -> serde_json::Result<Self> {
        object.meta_mut().managed_fields = None;
        let version = version(object).unwrap_or_default();
        let uid = object.meta().uid.as_deref().map(Into::into);
        Ok(Self { json: serde_json::to_vec(object)?.into(), uid, version, kind: PhantomData })
    }
}

impl<K> Packed<K> {
    /// Its uid, without parsing the object.
    pub(super) fn uid(&self) -> Option<&str> {
        self.uid.as_deref()
    }

    /// Its resource version; 0 where that is not a number.
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    /// The text, for comparison.
    pub(super) fn json(&self) -> &Arc<[u8]> {
        &self.json
    }

    /// Whether both are the same in every field.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.json == other.json
    }
}

impl<K: DeserializeOwned> Packed<K> {
    /// The object. `None`, with an error in the log, when its kind does not read what it has written.
    pub(super) fn open(&self) -> Option<Arc<K>> {
        match serde_json::from_slice(&self.json) {
            Ok(object) => Some(Arc::new(object)),
            Err(error) => {
                error!(kind = std::any::type_name::<K>(), %error, "cannot read an object from the cache, leaving it out");
                None
            }
        }
    }
}

/// Resource versions of one kind grow; that they are numbers is guaranteed since Kubernetes 1.35.
pub(super) fn version<K: Resource>(object: &K) -> Option<u64> {
    object.meta().resource_version.as_deref()?.parse().ok()
}
