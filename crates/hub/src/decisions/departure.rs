//! When something is removed from a cluster that no placement chooses any more.

use jiff::{SignedDuration, Timestamp};

/// How long it stays. A cluster that moves from one PlacementDecision to another is in neither for a moment, and to bring
/// something to a cluster again is much more work than to wait.
pub(crate) const GRACE: SignedDuration = SignedDuration::from_secs(3);

/// When to check again whether everything that may choose a cluster can be read.
pub(crate) const UNREADABLE: SignedDuration = SignedDuration::from_mins(1);

/// How long it stays from now on, if no placement has chosen the cluster `since` then; `None` if it may be removed. With
/// placements or decisions that cannot be read, which may choose the cluster, it always stays.
pub(crate) fn time_left(since: Timestamp, has_unreadable: bool, now: Timestamp) -> Option<SignedDuration> {
    let left = GRACE - now.duration_since(since);
    if has_unreadable { Some(UNREADABLE) } else { Some(left).filter(SignedDuration::is_positive) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::now;

    #[test]
    fn what_no_placement_wants_stays_for_three_seconds_and_as_long_as_something_cannot_be_read() {
        let after = |seconds| now() + SignedDuration::from_secs(seconds);
        assert_eq!(time_left(now(), false, after(1)), Some(SignedDuration::from_secs(2)));
        assert_eq!(time_left(now(), false, after(3)), None);
        assert_eq!(time_left(now(), true, after(3)), Some(UNREADABLE));
    }
}
