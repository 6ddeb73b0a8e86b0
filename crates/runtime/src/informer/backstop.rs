//! Noticing that a server's data has gone back in time, as after etcd was restored from a backup.
//!
//! Resource versions of one kind only grow. A watch that goes on from a version the server has not reached yet gets no
//! error and no events: it waits, perhaps for days. So from time to time the server is asked where one of the kinds
//! stands; when that is behind what it has said of the same kind before, every watch is begun anew with a list. Versions
//! of different kinds are never compared: they may be kept in different stores.

use std::{future::Future, sync::Arc, time::Duration};

use futures::{FutureExt as _, future::BoxFuture};
use tokio::{
    sync::{Mutex, Notify, watch as signal},
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

/// What all watches at one server share. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Backstop {
    /// Held by the one who asks. One kind at a time is enough: a backup is of all kinds that are kept together.
    turn: Arc<Mutex<()>>,
    doubt: Arc<Notify>,
    anew: signal::Sender<u64>,
}

/// A kind by which a server can be asked where it stands.
pub(super) trait Kind: Send + Sync + 'static {
    /// The newest version that its watch has brought.
    fn newest(&self) -> u64;
    /// Asks the server for the version at which it answers now; nothing where that is not a number.
    fn ask(&self) -> impl Future<Output = Result<Option<u64>>> + Send;
}

impl Default for Backstop {
    fn default() -> Self {
        Self { turn: Arc::default(), doubt: Arc::default(), anew: signal::Sender::new(0) }
    }
}

impl Backstop {
    /// Lets the server be asked soon: a watch has failed.
    pub(super) fn doubt(&self) {
        self.doubt.notify_one();
    }

    /// Changes when every watch is to be begun anew.
    pub(super) fn anew(&self) -> signal::Receiver<u64> {
        self.anew.subscribe()
    }

    /// Asks by this kind until the context ends, whenever it is its turn. Those who wait take turns when one that asks
    /// has ended, or is refused.
    pub(super) fn ask_by(&self, context: &Context, kind: impl Kind) {
        let backstop = self.clone();
        context.spawn(async move {
            loop {
                let _turn = backstop.turn.lock().await;
                backstop.turn_of(&kind).await;
                backstop.doubt();
            }
        });
    }

    /// Asks by one kind as long as that is possible. In a box, since most only wait for their turn.
    fn turn_of<'a>(&'a self, kind: &'a impl Kind) -> BoxFuture<'a, ()> {
        async move {
            let mut told = 0;
            loop {
                self.next_time().await;
                let before = kind.newest().max(told);
                match kind.ask().await {
                    Ok(Some(now)) => {
                        self.judge(before, now);
                        told = now;
                    }
                    Ok(None) => return,
                    // The watches tell of it.
                    Err(error) => {
                        debug!(error = %chain(&error), "cannot ask the API server where it stands");
                        if error.is_denied() || error.is_not_found() {
                            return;
                        }
                        self.doubt();
                    }
                }
            }
        }
        .boxed()
    }

    async fn next_time(&self) {
        tokio::select! {
            () = sleep(PERIOD.mul_f64(rand::random_range(0.75..=1.0))) => {}
            () = self.doubt.notified() => sleep(SOON.mul_f64(rand::random_range(0.1..=1.0))).await,
        }
    }

    fn judge(&self, before: u64, now: u64) {
        if now < before {
            warn!(
                before,
                now,
                "the API server's data has gone back in time, as after a restore from a backup: reading it all again"
            );
            self.anew.send_modify(|times| *times += 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use tokio::time::Instant;

    use super::*;
    use crate::error::ResultExt as _;

    /// A kind about which the server gives these answers, the last one again and again: versions, or HTTP codes.
    struct Scripted {
        newest: u64,
        answers: &'static [Result<u64, u16>],
        asked: Arc<AtomicU64>,
        done: Arc<Notify>,
    }

    impl Scripted {
        fn new(newest: u64, answers: &'static [Result<u64, u16>]) -> Self {
            Self { newest, answers, asked: Arc::default(), done: Arc::default() }
        }
    }

    impl Kind for Scripted {
        fn newest(&self) -> u64 {
            self.newest
        }

        async fn ask(&self) -> Result<Option<u64>> {
            let time = self.asked.fetch_add(1, Ordering::Relaxed);
            let last = self.answers.len() - 1;
            if time == last as u64 {
                self.done.notify_one();
            }
            match self.answers[last.min(usize::try_from(time).unwrap())] {
                Ok(version) => Ok(Some(version)),
                Err(code) => {
                    let status = kube::core::Status::failure("no", "").with_code(code).boxed();
                    Err(kube::Error::Api(status)).while_trying_to("ask", || "a server".into())
                }
            }
        }
    }

    /// Asks by these kinds for some minutes; how often everything was begun anew.
    async fn begun_anew(kinds: Vec<Scripted>) -> u64 {
        let (backstop, context) = (Backstop::default(), Context::new());
        for kind in kinds {
            backstop.ask_by(&context, kind);
        }
        sleep(PERIOD * 10).await;
        context.stop().await;
        *backstop.anew().borrow()
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_whose_watch_has_failed_is_asked_soon_and_until_it_answers() {
        let (backstop, context, start) = (Backstop::default(), Context::new(), Instant::now());
        let kind = Scripted::new(0, &[Err(500), Err(503), Err(500), Ok(7)]);
        let done = kind.done.clone();
        backstop.ask_by(&context, kind);
        backstop.doubt();
        done.notified().await;
        assert!(start.elapsed() <= SOON * 4, "{:?}", start.elapsed());
        context.stop().await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_goes_on_is_believed_and_one_that_goes_back_begins_everything_anew() {
        assert_eq!(begun_anew(vec![Scripted::new(7, &[Ok(7), Ok(9)])]).await, 0);
        assert_eq!(begun_anew(vec![Scripted::new(7, &[Ok(7), Ok(9), Ok(8)])]).await, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn kinds_that_are_counted_apart_are_not_compared() {
        let kinds = vec![Scripted::new(3, &[Ok(3), Err(403)]), Scripted::new(900, &[Ok(900), Err(404)])];
        assert_eq!(begun_anew(kinds).await, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn where_one_kind_is_refused_another_is_asked_by() {
        let kinds =
            vec![Scripted::new(3, &[Err(403)]), Scripted::new(3, &[Err(404)]), Scripted::new(3, &[Ok(9), Ok(5)])];
        let asked: Vec<_> = kinds.iter().map(|kind| kind.asked.clone()).collect();
        assert_eq!(begun_anew(kinds).await, 1);
        assert_eq!(asked[0].load(Ordering::Relaxed), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn when_the_one_that_asks_has_ended_another_does() {
        let (backstop, first, second) = (Backstop::default(), Context::new(), Context::new());
        backstop.ask_by(&first, Scripted::new(1, &[Ok(1)]));
        let kind = Scripted::new(1, &[Ok(1)]);
        let done = kind.done.clone();
        sleep(PERIOD).await;
        backstop.ask_by(&second, kind);
        first.stop().await;
        done.notified().await;
        second.stop().await;
    }
}
