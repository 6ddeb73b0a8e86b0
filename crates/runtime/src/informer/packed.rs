//! Objects as a cache keeps them.

use std::{fmt, marker::PhantomData, sync::Arc};

use serde::{Serialize, de::DeserializeOwned};
use tracing::error;

/// An object as JSON text, which takes a third of the memory of its Rust value or less: a value has room for every field
/// of its kind, set or not, and an allocation for every string. Reading it again takes some ten microseconds, which is
/// nothing beside the requests that a look at an object leads to.
pub(super) struct Packed<K> {
    json: Arc<[u8]>,
    kind: PhantomData<fn() -> K>,
}

impl<K> Clone for Packed<K> {
    fn clone(&self) -> Self {
        Self { json: self.json.clone(), kind: PhantomData }
    }
}

impl<K> fmt::Debug for Packed<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packed").field("bytes", &self.json.len()).finish_non_exhaustive()
    }
}

impl<K: Serialize> Packed<K> {
    /// # Errors
    /// When the object cannot be written as JSON, such as a map whose keys are not strings.
    pub(super) fn new(object: &K) -> serde_json::Result<Self> {
        Ok(Self { json: serde_json::to_vec(object)?.into(), kind: PhantomData })
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
