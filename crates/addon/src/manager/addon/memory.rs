//! What rights were set up, and for whom: so that they are not looked at again on every change of the add-on.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use ocm_runtime::ObjectKey;
use tokio::time::Instant;

use crate::Identity;

/// How long what was set up is taken to be there.
pub(super) const CHECK_AGAIN: Duration = Duration::from_secs(10 * 60);

/// What the rights of an add-on's agent on a cluster depend on: the add-on's uid and the identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Granted {
    pub(super) uid: Option<String>,
    pub(super) identity: Option<Identity>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Memory {
    granted: Mutex<HashMap<ObjectKey, (Granted, Instant)>>,
}

impl Memory {
    fn lock(&self) -> MutexGuard<'_, HashMap<ObjectKey, (Granted, Instant)>> {
        self.granted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether these rights were set up not long ago.
    pub(super) fn knows(&self, key: &ObjectKey, granted: &Granted) -> bool {
        self.lock().get(key).is_some_and(|(known, at)| known == granted && at.elapsed() < CHECK_AGAIN)
    }

    /// Remembers what was set up just now.
    pub(super) fn remember(&self, key: &ObjectKey, granted: Granted) {
        self.lock().insert(key.clone(), (granted, Instant::now()));
    }

    /// Forgets an add-on that is gone.
    pub(super) fn forget(&self, key: &ObjectKey) {
        self.lock().remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn rights_are_known_for_ten_minutes_for_this_add_on_and_this_identity() {
        let (memory, key) = (Memory::default(), ObjectKey::new("c1", "hello"));
        let granted = Granted { uid: Some("u".into()), identity: Some(Identity::of_agent("c1", "hello", "a")) };
        assert!(!memory.knows(&key, &granted));
        memory.remember(&key, granted.clone());
        assert!(memory.knows(&key, &granted));
        assert!(!memory.knows(&key, &Granted { uid: Some("another".into()), ..granted.clone() }));
        assert!(!memory.knows(&key, &Granted { identity: None, ..granted.clone() }));
        tokio::time::advance(CHECK_AGAIN).await;
        assert!(!memory.knows(&key, &granted));
        memory.remember(&key, granted.clone());
        memory.forget(&key);
        assert!(!memory.knows(&key, &granted));
    }
}
