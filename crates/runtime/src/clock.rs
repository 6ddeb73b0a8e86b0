//! Time as a value, so that nothing below a binary reads the wall clock and no test sleeps.

use std::sync::{Arc, Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch as signal;

use crate::pause;

/// Where a process gets the time from.
#[derive(Clone, Debug, Default)]
pub enum Clock {
    /// The machine's clock.
    #[default]
    System,
    /// A clock that shows the same time until a test sets it.
    Manual(Arc<Mutex<Timestamp>>),
}

impl Clock {
    /// A clock that shows `start`.
    #[must_use]
    pub fn manual(start: Timestamp) -> Self {
        Self::Manual(Arc::new(Mutex::new(start)))
    }

    /// The time now.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        match self {
            #[expect(clippy::disallowed_methods, reason = "the one place that reads the machine's clock")]
            Self::System => Timestamp::now(),
            Self::Manual(time) => *time.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }

    /// Changes after each pause of this process; never with a manual clock.
    pub(crate) fn pauses(&self) -> signal::Receiver<u64> {
        match self {
            Self::System => pause::of_process(),
            Self::Manual(_) => signal::Sender::new(0).subscribe(),
        }
    }

    /// Moves a manual clock to `time`; the machine's clock is left alone.
    pub fn set(&self, time: Timestamp) {
        if let Self::Manual(current) = self {
            *current.lock().unwrap_or_else(PoisonError::into_inner) = time;
        }
    }
}

/// A length of time in its largest unit, for people; a negative one counts as a positive one.
#[must_use]
pub fn approximate(duration: SignedDuration) -> String {
    match duration.as_secs().unsigned_abs() {
        1 => "1 second".to_owned(),
        seconds @ ..120 => format!("{seconds} seconds"),
        seconds @ ..7200 => format!("{} minutes", seconds / 60),
        seconds @ ..172_800 => format!("{} hours", seconds / 3600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_shown_in_their_largest_unit() {
        let shown = |seconds| approximate(SignedDuration::from_secs(seconds));
        assert_eq!([0, 1, -119].map(shown), ["0 seconds", "1 second", "119 seconds"]);
        assert_eq!([120, 7199, 7200].map(shown), ["2 minutes", "119 minutes", "2 hours"]);
        assert_eq!([172_799, 172_800, -864_000].map(shown), ["47 hours", "2 days", "10 days"]);
    }
}
