//! Noticing that a server's data has gone back in time, as after etcd was restored from a backup.
//!
//! Resource versions of one server only grow. A watch that goes on from a version the server has not reached yet gets no
//! error and no events: it waits, perhaps for days. So from time to time the server is asked where it stands; when that
//! is behind what it has said before, every watch is begun anew with a list.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{sync::watch as signal, time::sleep};
use tracing::{debug, warn};

use crate::{
    context::Context,
    error::{Result, chain},
};

/// How often the server is asked, at most; up to a quarter less, so that many do not ask at once.
const PERIOD: Duration = Duration::from_secs(55);

/// Where a server has been, shared by all watches of one identity. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Backstop {
    newest: Arc<AtomicU64>,
    asking: Arc<AtomicBool>,
    anew: signal::Sender<u64>,
}

impl Default for Backstop {
    fn default() -> Self {
        Self { newest: Arc::default(), asking: Arc::default(), anew: signal::Sender::new(0) }
    }
}

impl Backstop {
    /// Takes note of a resource version that the server has given out.
    pub(super) fn saw(&self, version: u64) {
        self.newest.fetch_max(version, Ordering::Relaxed);
    }

    /// Changes when every watch is to be begun anew.
    pub(super) fn anew(&self) -> signal::Receiver<u64> {
        self.anew.subscribe()
    }

    /// Whether the server is being asked already.
    pub(super) fn is_asking(&self) -> bool {
        self.asking.load(Ordering::Relaxed)
    }

    /// Asks the server where it stands until the context ends; `ask` answers with its resource version.
    pub(super) fn run<F>(&self, context: &Context, ask: impl Fn() -> F + Send + 'static)
    where
        F: Future<Output = Result<Option<u64>>> + Send,
    {
        self.asking.store(true, Ordering::Relaxed);
        let backstop = self.clone();
        context.spawn(async move {
            loop {
                sleep(PERIOD.mul_f64(rand::random_range(0.75..=1.0))).await;
                let before = backstop.newest.load(Ordering::Relaxed);
                match ask().await {
                    Ok(Some(now)) => backstop.judge(before, now),
                    Ok(None) => {}
                    // The watches tell of it, and ask again.
                    Err(error) => debug!(error = %chain(&error), "cannot ask the API server where it stands"),
                }
            }
        });
    }

    fn judge(&self, before: u64, now: u64) {
        if now >= before {
            return self.saw(now);
        }
        warn!(
            before,
            now, "the API server's data has gone back in time, as after a restore from a backup: reading it all again"
        );
        self.newest.store(now, Ordering::Relaxed);
        self.anew.send_modify(|times| *times += 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_goes_on_is_believed_and_one_that_goes_back_begins_everything_anew() {
        let backstop = Backstop::default();
        let anew = backstop.anew();
        backstop.saw(7);
        backstop.judge(7, 7);
        backstop.judge(7, 9);
        assert!(!anew.has_changed().unwrap());
        backstop.judge(9, 8);
        assert!(anew.has_changed().unwrap());
        backstop.judge(8, 8);
        assert_eq!(*backstop.anew().borrow(), 1);
    }
}
