//! Time as a value, so that nothing below a binary reads the wall clock and no test sleeps.

use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;

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

    /// Moves a manual clock to `time`; the machine's clock is left alone.
    pub fn set(&self, time: Timestamp) {
        if let Self::Manual(current) = self {
            *current.lock().unwrap_or_else(PoisonError::into_inner) = time;
        }
    }
}
