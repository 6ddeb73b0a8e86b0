//! Exponential back-off with jitter, as every retry of this workspace uses it.
//!
//! The delays are backon's. What is added: they never end (nothing here gives up), and jitter shortens a delay instead of
//! lengthening it, so that the longest delay is a promise.

use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBuilder};

/// Delays that double from `first` to `longest`. Each is shortened at random by up to a half, so that many who failed at
/// the same time do not retry at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The longest that the first delay can be.
    pub first: Duration,
    /// The longest that any delay can be.
    pub longest: Duration,
}

impl Backoff {
    /// Delays from `first` to `longest`.
    #[must_use]
    pub const fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest }
    }

    /// The delays after one failure, two failures in a row, and so on.
    #[must_use]
    pub fn delays(self) -> Delays {
        let builder = ExponentialBuilder::new().with_jitter().without_max_times();
        let half = |delay: Duration| delay / 2;
        // backon adds up to the delay itself.
        let builder = builder.with_min_delay(half(self.first)).with_max_delay(half(self.longest));
        Delays { delays: builder.build(), longest: self.longest }
    }

    /// The delay after so many failures in a row, for callers that count them.
    #[must_use]
    pub fn delay_after(self, failures: usize) -> Duration {
        let mut delays = self.delays();
        // Long before that, every delay is the longest one.
        (1..failures.min(64)).for_each(|_| _ = delays.next_delay());
        delays.next_delay()
    }
}

/// The delays of one operation that fails again and again; see [`Backoff::delays`].
#[derive(Debug)]
pub struct Delays {
    delays: <ExponentialBuilder as backon::BackoffBuilder>::Backoff,
    longest: Duration,
}

impl Delays {
    /// The delay after one more failure.
    pub fn next_delay(&mut self) -> Duration {
        self.delays.next().unwrap_or(self.longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_from_the_first_to_the_longest_and_each_is_shortened_by_up_to_half() {
        let mut delays = Backoff::new(Duration::from_millis(100), Duration::from_secs(1)).delays();
        for longest in [100, 200, 400, 800, 1000, 1000, 1000] {
            let delay = delays.next_delay();
            let longest = Duration::from_millis(longest);
            assert!(longest / 2 <= delay && delay <= longest, "{delay:?} where {longest:?} is the longest");
        }
        for _ in 0..10_000 {
            assert!(delays.next_delay() <= Duration::from_secs(1));
        }
    }

    #[test]
    fn the_delay_after_some_failures_is_that_of_the_sequence() {
        let backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(1));
        for (failures, longest) in [(0, 100), (1, 100), (2, 200), (4, 800), (5, 1000), (usize::MAX, 1000)] {
            let (delay, longest) = (backoff.delay_after(failures), Duration::from_millis(longest));
            assert!(longest / 2 <= delay && delay <= longest, "{delay:?} where {longest:?} is the longest");
        }
    }

    #[test]
    fn two_that_fail_at_once_do_not_retry_at_once() {
        let backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));
        let (mut one, mut other) = (backoff.delays(), backoff.delays());
        assert!((0..5).any(|_| one.next_delay() != other.next_delay()));
    }
}
