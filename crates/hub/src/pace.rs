//! How often something is done again while its cause keeps changing.
//!
//! When a thousand clusters join, or lose their connection at once, each changes the size of its cluster set and the decisions
//! of placements. To write these for each cluster would cost more than the clusters themselves. So the first change is
//! followed at once, and those after it together.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use ocm_runtime::{Queue, queue::Key};

/// The least time between two rounds of the same key.
const INTERVAL: Duration = Duration::from_secs(1);

/// The rounds of one key take at most one part in so many of the time.
const SHARE: u32 = 20;

/// How long to wait for more changes before the next round, at least `least`, if the last one took that long.
pub(crate) fn pause_after(took: Duration, least: Duration) -> Duration {
    least.max(took.saturating_mul(SHARE))
}

/// When each key was done last. Cheap to clone; all clones share it.
#[derive(Debug)]
pub(crate) struct Pace<K> {
    last: Arc<Mutex<HashMap<K, Instant>>>,
}

impl<K> Clone for Pace<K> {
    fn clone(&self) -> Self {
        Self { last: self.last.clone() }
    }
}

impl<K> Default for Pace<K> {
    fn default() -> Self {
        Self { last: Arc::default() }
    }
}

impl<K: Key> Pace<K> {
    /// Records that a round of the key begins: changes until now are part of it.
    pub(crate) fn begin(&self, key: &K) {
        self.begin_at(key, Instant::now());
    }

    fn begin_at(&self, key: &K, now: Instant) {
        self.lock().insert(key.clone(), now);
    }

    /// Puts the key into the queue of a controller, for when the next round may begin.
    pub(crate) fn add(&self, queue: &Queue<K>, key: K) {
        let pause = self.pause(&key, Instant::now());
        queue.add_after(key, pause);
    }

    /// How long the next round of the key has to wait.
    fn pause(&self, key: &K, now: Instant) -> Duration {
        self.lock().get(key).map_or(Duration::ZERO, |last| (*last + INTERVAL).saturating_duration_since(now))
    }

    /// Forgets a key that no longer exists.
    pub(crate) fn forget(&self, key: &K) {
        self.lock().remove(key);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, Instant>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_change_is_followed_at_once_and_a_thousand_after_it_within_a_second_by_one_round() {
        let (pace, start) = (Pace::default(), Instant::now());
        let at = |millis| start + Duration::from_millis(millis);
        assert_eq!(pace.pause(&"a", start), Duration::ZERO);
        pace.begin_at(&"a", start);
        let due: Vec<_> = (0..1000).map(|millis| at(millis) + pace.pause(&"a", at(millis))).collect();
        assert!(due.iter().all(|due| *due == at(1000)), "a queue keeps one entry for a key");
        assert_eq!(pace.pause(&"a", at(1000)), Duration::ZERO);
    }

    #[test]
    fn keys_do_not_wait_for_each_other_and_a_forgotten_one_does_not_wait() {
        let (pace, now) = (Pace::default(), Instant::now());
        pace.begin_at(&"a", now);
        assert_eq!(pace.pause(&"b", now), Duration::ZERO);
        pace.forget(&"a");
        assert_eq!(pace.pause(&"a", now), Duration::ZERO);
    }
}
