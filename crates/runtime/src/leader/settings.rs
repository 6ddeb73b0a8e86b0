//! The times of leader election.

use std::time::Duration;

/// A candidate waits for the retry period and up to this much longer, so that candidates drift apart.
pub(super) const JITTER: f64 = 1.2;

/// The times of leader election, checked against each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    lease_duration: Duration,
    renew_deadline: Duration,
    retry_period: Duration,
}

/// Times that contradict each other.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// Leases count in whole seconds.
    #[error("a lease duration of {0:?} is too short, leases count in whole seconds: give at least 1s")]
    TooShort(Duration),
    /// The leader would notice too late that it no longer leads.
    #[error(
        "the lease duration ({lease:?}, in whole seconds) must be longer than the renew deadline ({renew:?}): a leader \
         stops at the deadline, and must have stopped before another one may lead"
    )]
    Deadline {
        /// The lease duration, in whole seconds.
        lease: Duration,
        /// The renew deadline.
        renew: Duration,
    },
    /// The leader would give up before it tried.
    #[error(
        "the renew deadline ({renew:?}) must be longer than {JITTER} times the retry period ({retry:?}): otherwise a \
         leader gives up before it has tried to renew"
    )]
    Retry {
        /// The renew deadline.
        renew: Duration,
        /// The retry period.
        retry: Duration,
    },
    /// The leader would renew without a pause.
    #[error("the retry period must be longer than zero")]
    NoPause,
}

impl Default for Settings {
    /// OCM's: 137 s, 107 s, 26 s.
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { lease_duration: seconds(137), renew_deadline: seconds(107), retry_period: seconds(26) }
    }
}

impl Settings {
    /// Checks the three times.
    ///
    /// # Errors
    /// [`SettingsError`] when no leader could be kept with them.
    pub fn new(
        lease_duration: Duration,
        renew_deadline: Duration,
        retry_period: Duration,
    ) -> Result<Self, SettingsError> {
        let lease = Duration::from_secs(lease_duration.as_secs());
        if lease.is_zero() || i32::try_from(lease.as_secs()).is_err() {
            return Err(SettingsError::TooShort(lease_duration));
        }
        if lease <= renew_deadline {
            return Err(SettingsError::Deadline { lease, renew: renew_deadline });
        }
        if renew_deadline <= retry_period.mul_f64(JITTER) {
            return Err(SettingsError::Retry { renew: renew_deadline, retry: retry_period });
        }
        if retry_period.is_zero() {
            return Err(SettingsError::NoPause);
        }
        Ok(Self { lease_duration: lease, renew_deadline, retry_period })
    }

    /// How long others wait after the last renewal they saw.
    #[must_use]
    pub fn lease_duration(&self) -> Duration {
        self.lease_duration
    }

    /// How long after its last renewal a leader stops leading.
    #[must_use]
    pub fn renew_deadline(&self) -> Duration {
        self.renew_deadline
    }

    /// How often a leader renews, and how often at most a candidate tries to acquire the lease.
    #[must_use]
    pub fn retry_period(&self) -> Duration {
        self.retry_period
    }

    /// How long after its last renewal a leader's work must have ended. Between the renew deadline and
    /// the end of the lease: half of that time is for finishing reconciles in progress, the other half is
    /// for requests that were aborted and may still arrive.
    #[must_use]
    pub fn finish_deadline(&self) -> Duration {
        self.renew_deadline + (self.lease_duration - self.renew_deadline) / 2
    }

    /// How long one attempt to acquire or to renew the lease may take.
    pub(super) fn request_timeout(&self) -> Duration {
        self.renew_deadline / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(lease: u64, renew: u64, retry: u64) -> Result<Settings, SettingsError> {
        let millis = Duration::from_millis;
        Settings::new(millis(lease), millis(renew), millis(retry))
    }

    #[test]
    fn the_defaults_pass_their_own_check() {
        let default = Settings::default();
        let checked = Settings::new(default.lease_duration, default.renew_deadline, default.retry_period);
        assert_eq!(checked, Ok(default));
        assert_eq!(default.finish_deadline(), Duration::from_secs(122));
    }

    #[test]
    fn times_that_contradict_each_other_are_refused() {
        assert!(matches!(settings(900, 500, 100), Err(SettingsError::TooShort(_))));
        assert!(matches!(settings(10_000, 10_000, 1_000), Err(SettingsError::Deadline { .. })));
        assert!(matches!(settings(10_900, 10_500, 1_000), Err(SettingsError::Deadline { .. })));
        assert!(matches!(settings(10_000, 6_000, 5_000), Err(SettingsError::Retry { .. })));
        assert!(matches!(settings(10_000, 6_000, 0), Err(SettingsError::NoPause)));
    }

    #[test]
    fn a_part_of_a_second_does_not_lengthen_a_lease() {
        assert_eq!(settings(2_900, 1_500, 500).unwrap().lease_duration(), Duration::from_secs(2));
    }
}
