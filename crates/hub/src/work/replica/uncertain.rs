//! Creations whose outcome is not known.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use ocm_runtime::ObjectKey;

use super::Replica;

/// The works that may exist without being in the cache: a request to create one got no answer, or a server failed while it
/// answered.
#[derive(Clone, Debug, Default)]
pub(super) struct Uncertain(Arc<Mutex<HashSet<Replica>>>);

impl Uncertain {
    /// A work is about to be created.
    pub(super) fn begin(&self, replica: &Replica) {
        self.lock().insert(replica.clone());
    }

    /// It is known whether it exists.
    pub(super) fn end(&self, replica: &Replica) {
        self.lock().remove(replica);
    }

    /// Forgets those of a set that no longer exists. Before another one of its name gets works, the API server is asked for all.
    pub(super) fn forget(&self, set: &ObjectKey) {
        self.lock().retain(|replica| replica.set != *set);
    }

    pub(super) fn contains(&self, replica: &Replica) -> bool {
        self.lock().contains(replica)
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<Replica>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the API server has answered that it did not carry out a request. After any other failure, it may have.
pub(super) fn is_refusal(error: &ocm_runtime::Error) -> bool {
    const REQUEST_TIMEOUT: u16 = 408;
    error.code().is_some_and(|code| (400..500).contains(&code) && code != REQUEST_TIMEOUT)
}
