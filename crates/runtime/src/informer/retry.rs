//! How long an informer waits before it lists again, after its watch has failed.
//!
//! Many processes lose their connections at the same time, for instance when an API server restarts. A cache that is synced
//! can be used meanwhile, so its relist waits for a time that is chosen at random. A cache that has never been synced lists
//! at once, since its process cannot work without it.

use std::time::Duration;

use kube::runtime::watcher;
use tokio::time::Instant;

use crate::{Backoff, error::status_of_watch};

/// The first relist of a synced cache starts within this time.
const SPREAD: Duration = Duration::from_secs(10);
/// The longest that the first delay of a cache that has never been synced can be.
const FIRST: Duration = Duration::from_millis(200);
/// The longest delay after a failure that may end by itself.
const LONGEST: Duration = Duration::from_secs(30);
/// The longest delay after an answer that lasts until somebody grants a right or installs the kind.
const LONGEST_REFUSED: Duration = Duration::from_secs(60);
/// The failures before that of a watch that worked for this long no longer count.
const WORKED: Duration = Duration::from_secs(20);
/// So many failures in a row are logged as a warning.
const LOUD: usize = 4;
/// So many are, of a cache that is synced: its rights have been granted and its kind is installed.
const LOUD_SYNCED: usize = 2;

/// Counts the failures in a row of one watch.
#[derive(Debug, Default)]
pub(super) struct Retry {
    failures: usize,
    /// When the last list was complete, unless its watch has failed since.
    listed: Option<Instant>,
}

/// What is known about the last failure.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failure {
    /// Whether the cache was synced before.
    pub(super) synced: bool,
    /// Whether the server refused the request.
    pub(super) refused: bool,
}

impl Retry {
    /// Records that a list is complete.
    pub(super) fn listed(&mut self) {
        self.listed = Some(Instant::now());
    }

    /// Records that the watch, or the list before it, has failed.
    pub(super) fn failed(&mut self) {
        if self.listed.take().is_some_and(|listed| listed.elapsed() >= WORKED) {
            self.failures = 0;
        }
        self.failures += 1;
    }

    /// Whether the failures so far are worth a warning: rights that were just granted and kinds that were just installed
    /// take a moment, and connections are lost now and then.
    pub(super) fn is_loud(&self, synced: bool) -> bool {
        self.failures >= if synced { LOUD_SYNCED } else { LOUD }
    }

    /// How long to wait before the next list.
    pub(super) fn delay(&self, failure: Failure) -> Duration {
        let longest = if failure.refused { LONGEST_REFUSED } else { LONGEST };
        match (failure.synced, self.failures) {
            (true, 0 | 1) => SPREAD.mul_f64(rand::random_range(0.0..=1.0)),
            (true, failures) => Backoff::new(SPREAD, longest).delay_after(failures - 1),
            (false, failures) => Backoff::new(FIRST, longest).delay_after(failures),
        }
    }
}

/// Whether the server refuses the request, and is likely to refuse the next one: a right is missing, the kind is not
/// installed, or it does not support the request.
#[must_use]
pub fn is_refused(error: &watcher::Error) -> bool {
    status_of_watch(error).is_some_and(|status| matches!(status.code, 400 | 403..=406))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOST: Failure = Failure { synced: true, refused: false };

    fn after(failures: usize) -> Retry {
        let mut retry = Retry::default();
        (0..failures).for_each(|_| retry.failed());
        retry
    }

    #[test]
    fn a_cache_that_was_never_synced_is_listed_again_at_once_and_a_synced_one_within_ten_seconds() {
        let first = |synced| after(1).delay(Failure { synced, refused: false });
        for _ in 0..1000 {
            assert!(first(false) <= FIRST);
            assert!(first(true) <= SPREAD);
        }
        let half = (0..1000).filter(|_| first(true) < SPREAD / 2).count();
        assert!((400..600).contains(&half), "{half} of 1000 in the first half");
    }

    #[test]
    fn what_fails_for_long_is_tried_every_half_minute_and_what_is_refused_every_minute() {
        for synced in [false, true] {
            let delay = |refused| after(50).delay(Failure { synced, refused });
            assert!((LONGEST / 2..=LONGEST).contains(&delay(false)));
            assert!((LONGEST_REFUSED / 2..=LONGEST_REFUSED).contains(&delay(true)));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn failures_before_a_watch_that_worked_do_not_count_and_a_list_alone_is_no_such_watch() {
        let mut retry = after(50);
        retry.listed();
        retry.failed();
        assert!(retry.delay(LOST) > SPREAD);
        retry.listed();
        tokio::time::sleep(WORKED).await;
        retry.failed();
        assert!(retry.delay(LOST) <= SPREAD && !retry.is_loud(true));
        tokio::time::sleep(2 * WORKED).await;
        retry.failed();
        assert!(retry.is_loud(true), "time without a watch does not count");
    }

    #[test]
    fn missing_rights_and_kinds_are_refusals_and_expired_versions_and_busy_servers_are_not() {
        let refused = |code| {
            let status = kube::core::Status::failure("no", "").with_code(code).boxed();
            let listed = is_refused(&watcher::Error::InitialListFailed(kube::Error::Api(status.clone())));
            assert_eq!(listed, is_refused(&watcher::Error::WatchError(status)));
            listed
        };
        assert_eq!([400, 403, 404, 405].map(refused), [true; 4]);
        assert_eq!([401, 410, 429, 500, 503].map(refused), [false; 5]);
    }
}
