//! Time as a value, so that nothing below a binary reads the wall clock and no test sleeps.

use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
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
