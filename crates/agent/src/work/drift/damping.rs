//! Limits how often an object is written that others keep changing.
//!
//! Two controllers that disagree about a field would write it without end. The first [`AT_ONCE`] repairs of an object follow
//! at once; each one after that waits twice as long as the one before, and at the most until the regular pass, with which
//! drift would be repaired without any watch.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use ocm_api::limits;

/// So many repairs of an object follow at once.
const AT_ONCE: u32 = 5;
/// The delay after them.
const FIRST_DELAY: Duration = Duration::from_secs(10);
/// Without a repair for this long, or for twice the longest delay, an object counts as quiet.
const QUIET: Duration = Duration::from_secs(600);

/// How long repairs are delayed at the most.
#[derive(Clone, Copy, Debug)]
pub(in crate::work) struct Damping {
    pub(in crate::work) longest: Duration,
}

impl Default for Damping {
    fn default() -> Self {
        Self { longest: limits::WORK_REAPPLY_MIN }
    }
}

/// The repairs of one object, and the checks that found nothing to repair.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct History {
    times: u32,
    last: Option<Timestamp>,
}

impl History {
    /// Counts a repair.
    pub(super) fn count(&mut self, now: Timestamp, damping: Damping) {
        let times = if self.is_recent(now, damping) { self.times } else { 0 };
        *self = Self { times: times.saturating_add(1), last: Some(now) };
    }

    /// How long the next repair has to wait.
    pub(super) fn hold(&self, now: Timestamp, damping: Damping) -> Duration {
        if !self.is_contested(now, damping) {
            return Duration::ZERO;
        }
        let doubled = FIRST_DELAY.saturating_mul(2_u32.saturating_pow(self.times - AT_ONCE));
        doubled.min(damping.longest).saturating_sub(self.since_last(now).unwrap_or_default())
    }

    /// Whether others keep changing the object.
    pub(super) fn is_contested(&self, now: Timestamp, damping: Damping) -> bool {
        self.times >= AT_ONCE && self.is_recent(now, damping)
    }

    /// Whether the last repair was the first one after a quiet time.
    pub(super) fn is_first(&self) -> bool {
        self.times <= 1
    }

    fn is_recent(&self, now: Timestamp, damping: Damping) -> bool {
        self.since_last(now).is_some_and(|since| since < QUIET.max(damping.longest.saturating_mul(2)))
    }

    fn since_last(&self, now: Timestamp) -> Option<Duration> {
        let since: SignedDuration = now.duration_since(self.last?);
        // A clock that was set back must not delay for longer.
        Some(Duration::try_from(since).unwrap_or(Duration::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn holds_after(repairs: u32) -> u64 {
        let (mut history, damping) = (History::default(), Damping::default());
        (0..repairs).for_each(|_| history.count(at(0), damping));
        history.hold(at(0), damping).as_secs()
    }

    #[test]
    fn some_repairs_follow_at_once_and_later_ones_wait_longer_each_time_up_to_the_regular_pass() {
        assert_eq!([0, 1, 4, 5, 6, 7, 8, 9, 10, 1000].map(holds_after), [0, 0, 0, 10, 20, 40, 80, 160, 240, 240]);
    }

    #[test]
    fn a_fight_of_an_hour_costs_few_writes() {
        let (mut history, damping) = (History::default(), Damping::default());
        let mut writes = 0;
        for second in 0..3600 {
            if history.hold(at(second), damping).is_zero() {
                history.count(at(second), damping);
                writes += 1;
            }
        }
        assert!((15..25).contains(&writes), "{writes} writes; the regular pass alone makes 12");
    }

    #[test]
    fn an_object_that_was_left_alone_for_a_while_is_repaired_at_once_again() {
        let (mut history, damping) = (History::default(), Damping::default());
        (0..8).for_each(|_| history.count(at(0), damping));
        assert!(history.is_contested(at(599), damping) && !history.is_contested(at(601), damping));
        history.count(at(601), damping);
        assert!(history.hold(at(601), damping).is_zero());
    }

    #[test]
    fn a_clock_that_is_set_back_delays_nothing() {
        let (mut history, damping) = (History::default(), Damping::default());
        (0..8).for_each(|_| history.count(at(0), damping));
        assert!(history.hold(at(-7200), damping).is_zero());
    }
}
