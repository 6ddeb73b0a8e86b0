//! Notices that this process was paused: stopped by a signal, frozen with its container, or suspended with its machine.
//!
//! A thread of its own sleeps and compares. A timer of Tokio also fires late when the runtime is busy, which is no pause.
//! Monotonic clocks may stand still while a machine is suspended, so the wall clock is compared as well. If somebody sets
//! that forward, it looks like a pause, which costs a relist.

use std::{
    sync::LazyLock,
    thread,
    time::{Duration, Instant},
};

use jiff::Timestamp;
use tokio::sync::watch as signal;
use tracing::{info, warn};

use crate::Clock;

/// How often the clocks are compared.
const PERIOD: Duration = Duration::from_secs(2);
/// A sleep that takes longer than this by as much more than a [`PERIOD`] was a pause.
const LONGEST_DELAY: Duration = Duration::from_secs(5);

/// Counts the pauses of this process. One for the process, since a pause is one of the whole process.
static PAUSES: LazyLock<signal::Sender<u64>> = LazyLock::new(|| {
    let pauses = signal::Sender::new(0);
    let sender = pauses.clone();
    let thread = thread::Builder::new().name("pauses".into()).spawn(move || compare_clocks(&sender));
    if let Err(error) = thread {
        warn!(%error, "cannot start a thread: pauses of this process will not be noticed");
    }
    pauses
});

/// Changes after each pause of this process.
pub(crate) fn of_process() -> signal::Receiver<u64> {
    PAUSES.subscribe()
}

fn compare_clocks(pauses: &signal::Sender<u64>) {
    loop {
        let before = (Instant::now(), Clock::System.now());
        thread::sleep(PERIOD);
        let late = lateness(before.0.elapsed(), Clock::System.now(), before.1);
        if late > LONGEST_DELAY {
            info!(seconds = late.as_secs(), "this process was paused, listing again what it watches");
            pauses.send_modify(|count| *count += 1);
        }
    }
}

/// By how much a sleep was longer than a [`PERIOD`], by the clock that shows more.
fn lateness(monotonic: Duration, now: Timestamp, before: Timestamp) -> Duration {
    // Negative if the wall clock was set back.
    let wall = Duration::try_from(now.duration_since(before)).unwrap_or_default();
    monotonic.max(wall).saturating_sub(PERIOD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_shows_on_either_clock_and_a_clock_that_was_set_back_is_none() {
        let start: Timestamp = "2026-11-22T12:00:00Z".parse().unwrap();
        let late = |monotonic, wall: i64| {
            let now = start + jiff::SignedDuration::from_secs(wall);
            lateness(Duration::from_secs(monotonic), now, start) > LONGEST_DELAY
        };
        assert!(!late(2, 2) && !late(6, 6), "a busy machine");
        assert!(late(60, 60), "a stopped process");
        assert!(late(2, 3600), "a suspended machine");
        assert!(!late(2, -3600), "a wall clock that was set back");
    }
}
