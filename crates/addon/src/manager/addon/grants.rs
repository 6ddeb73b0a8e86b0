//! Which permissions were applied lately, so that they are not read again on every change of the add-on.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use ocm_runtime::ObjectKey;
use tokio::time::Instant;

use crate::Identity;

/// How long granted permissions are expected to exist.
pub(super) const RESYNC: Duration = Duration::from_secs(10 * 60);

/// What the permissions of an add-on's agent on a cluster depend on: the add-on's uid and the identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Grant {
    pub(super) uid: Option<String>,
    pub(super) identity: Option<Identity>,
    /// Whether nothing is granted and only what a former version granted is deleted. Once is enough.
    pub(super) is_withdrawal: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct GrantCache {
    applied: Mutex<HashMap<ObjectKey, (Grant, Instant)>>,
}

impl GrantCache {
    fn lock(&self) -> MutexGuard<'_, HashMap<ObjectKey, (Grant, Instant)>> {
        self.applied.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether these permissions were applied lately.
    pub(super) fn contains(&self, key: &ObjectKey, grant: &Grant) -> bool {
        let is_valid = |at: &Instant| grant.is_withdrawal || at.elapsed() < RESYNC;
        self.lock().get(key).is_some_and(|(known, at)| known == grant && is_valid(at))
    }

    /// Records permissions that were applied just now.
    pub(super) fn insert(&self, key: &ObjectKey, grant: Grant) {
        self.lock().insert(key.clone(), (grant, Instant::now()));
    }

    /// Removes an add-on that was deleted.
    pub(super) fn remove(&self, key: &ObjectKey) {
        self.lock().remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn permissions_are_recorded_for_ten_minutes_for_this_add_on_and_this_identity() {
        let (grants, key) = (GrantCache::default(), ObjectKey::new("c1", "hello"));
        let identity = Some(Identity::of_agent("c1", "hello", "a"));
        let grant = Grant { uid: Some("u".into()), identity, is_withdrawal: false };
        assert!(!grants.contains(&key, &grant));
        grants.insert(&key, grant.clone());
        assert!(grants.contains(&key, &grant));
        assert!(!grants.contains(&key, &Grant { uid: Some("another".into()), ..grant.clone() }));
        assert!(!grants.contains(&key, &Grant { identity: None, ..grant.clone() }));
        tokio::time::advance(RESYNC).await;
        assert!(!grants.contains(&key, &grant));
        grants.insert(&key, grant.clone());
        grants.remove(&key);
        assert!(!grants.contains(&key, &grant));
    }

    #[tokio::test(start_paused = true)]
    async fn permissions_are_withdrawn_once_for_each_add_on() {
        let (grants, key) = (GrantCache::default(), ObjectKey::new("c1", "hello"));
        let withdrawal = Grant { uid: Some("u".into()), identity: None, is_withdrawal: true };
        grants.insert(&key, withdrawal.clone());
        tokio::time::advance(RESYNC * 2).await;
        assert!(grants.contains(&key, &withdrawal));
        assert!(!grants.contains(&key, &Grant { uid: Some("another".into()), ..withdrawal.clone() }));
        assert!(!grants.contains(&key, &Grant { is_withdrawal: false, ..withdrawal }));
    }
}
