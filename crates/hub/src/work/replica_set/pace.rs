//! When the status of a set may be written.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use ocm_runtime::ObjectKey;

/// The least time between two writes, and between a decision that changes works and the write that counts them.
const INTERVAL: Duration = Duration::from_secs(1);

/// When the status of each set was written last, and may be written next.
#[derive(Debug, Default)]
pub(super) struct StatusPace(Mutex<HashMap<ObjectKey, Pace>>);

#[derive(Debug, Default)]
struct Pace {
    last: Option<Instant>,
    due: Option<Instant>,
}

impl StatusPace {
    /// How long the write has to wait; `None` if it is made now. If works are about to be written, as many of them as possible are
    /// counted at once.
    pub(super) fn wait(&self, set: &ObjectKey, is_changed: bool, now: Instant) -> Option<Duration> {
        let mut sets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let pace = sets.entry(set.clone()).or_default();
        let earliest = pace.last.map_or(now, |last| (last + INTERVAL).max(now));
        let due = *pace.due.get_or_insert(if is_changed { now + INTERVAL } else { earliest });
        if due > now {
            return Some(due - now);
        }
        *pace = Pace { last: Some(now), due: None };
        None
    }

    #[cfg(test)]
    pub(super) fn knows(&self, set: &ObjectKey) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains_key(set)
    }

    pub(super) fn forget(&self, set: &ObjectKey) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(set);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_written_at_once_and_then_once_a_second_even_if_works_change_all_the_time() {
        let (pace, set, start) = (StatusPace::default(), ObjectKey::new("n", "s"), Instant::now());
        let wait = |millis, is_changed| pace.wait(&set, is_changed, start + Duration::from_millis(millis));
        let is_written = |millis, is_changed| wait(millis, is_changed).is_none();
        assert!(is_written(0, false));
        let written: Vec<_> = (1..=3500).filter(|millis| is_written(*millis, false)).collect();
        assert_eq!(written, [1000, 2000, 3000]);
        let written: Vec<_> = (4001..=7500).filter(|millis| is_written(*millis, true)).collect();
        assert_eq!(written, [4001, 5002, 6003, 7004], "changes of works postpone no write that is due");
    }

    #[test]
    fn a_status_waits_for_works_that_are_about_to_be_written() {
        let (pace, set, start) = (StatusPace::default(), ObjectKey::new("n", "s"), Instant::now());
        assert_eq!(pace.wait(&set, true, start), Some(INTERVAL));
        assert_eq!(pace.wait(&set, false, start + INTERVAL / 2), Some(INTERVAL / 2));
        assert_eq!(pace.wait(&set, false, start + INTERVAL), None);
        pace.forget(&set);
        assert_eq!(pace.wait(&set, false, start + INTERVAL), None);
    }
}
