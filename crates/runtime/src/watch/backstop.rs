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

use tokio::{
    sync::{Notify, watch as signal},
    time::sleep,
};
use tracing::{debug, warn};

use crate::{
    context::Context,
    error::{Result, chain},
};

/// How often the server is asked, at most; up to a quarter less, so that many do not ask at once.
const PERIOD: Duration = Duration::from_secs(45);
/// How soon it is asked, at the latest, after a watch has failed: who restores a backup stops the server first.
const SOON: Duration = Duration::from_secs(5);

/// Where a server has been, shared by all watches of one identity. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Backstop {
    newest: Arc<AtomicU64>,
    asking: Arc<AtomicBool>,
    doubt: Arc<Notify>,
    anew: signal::Sender<u64>,
}

impl Default for Backstop {
    fn default() -> Self {
        Self { newest: Arc::default(), asking: Arc::default(), doubt: Arc::default(), anew: signal::Sender::new(0) }
    }
}

impl Backstop {
    /// Takes note of a resource version that the server has given out.
    pub(super) fn saw(&self, version: u64) {
        self.newest.fetch_max(version, Ordering::Relaxed);
    }

    /// Lets the server be asked soon: a watch has failed.
    pub(super) fn doubt(&self) {
        self.doubt.notify_one();
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
                backstop.next_time().await;
                let before = backstop.newest.load(Ordering::Relaxed);
                match ask().await {
                    Ok(Some(now)) => backstop.judge(before, now),
                    Ok(None) => {}
                    // The watches tell of it.
                    Err(error) => {
                        debug!(error = %chain(&error), "cannot ask the API server where it stands");
                        if !error.is_denied() {
                            backstop.doubt();
                        }
                    }
                }
            }
        });
    }

    async fn next_time(&self) {
        tokio::select! {
            () = sleep(PERIOD.mul_f64(rand::random_range(0.75..=1.0))) => {}
            () = self.doubt.notified() => sleep(SOON.mul_f64(rand::random_range(0.1..=1.0))).await,
        }
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
    use tokio::time::Instant;

    use super::*;
    use crate::error::ResultExt as _;

    #[tokio::test(start_paused = true)]
    async fn a_server_whose_watch_has_failed_is_asked_soon_and_until_it_answers() {
        let (backstop, context) = (Backstop::default(), Context::new());
        let (asked, start) = (Arc::new(AtomicU64::new(0)), Instant::now());
        let (times, answered) = (asked.clone(), Arc::new(Notify::new()));
        let done = answered.clone();
        backstop.run(&context, move || {
            let (time, done) = (times.fetch_add(1, Ordering::Relaxed), done.clone());
            async move {
                if time < 3 {
                    let down = || kube::Error::Service("down".into());
                    return Err(down()).while_trying_to("ask", || "a server".into());
                }
                done.notify_one();
                Ok(Some(7))
            }
        });
        backstop.doubt();
        answered.notified().await;
        assert_eq!(asked.load(Ordering::Relaxed), 4);
        assert!(start.elapsed() <= SOON * 4, "{:?}", start.elapsed());
        context.stop().await;
    }

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
