//! The sets whose works are known to be complete in the cache.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use ocm_runtime::ObjectKey;

use crate::work::facts::ReplicaSet;

/// The uids of such sets, by key: another set of the same name is verified for itself.
#[derive(Debug, Default)]
pub(super) struct VerifiedSets(Mutex<HashMap<ObjectKey, String>>);

impl VerifiedSets {
    pub(super) fn contains(&self, set: &ReplicaSet) -> bool {
        self.lock().get(&set.key) == Some(&set.uid)
    }

    pub(super) fn insert(&self, set: &ReplicaSet) {
        self.lock().insert(set.key.clone(), set.uid.clone());
    }

    pub(super) fn forget(&self, set: &ObjectKey) {
        self.lock().remove(set);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ObjectKey, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
