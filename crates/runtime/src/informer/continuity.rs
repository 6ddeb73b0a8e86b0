//! Noticing that a server's data is not the continuation of what a watch has seen, as after etcd was restored from a backup.
//!
//! A watch resumes from a revision, and the server sends what came after it. After a restore, revisions count up again
//! from that of the backup. A watch that resumes from a revision that the server has not reached yet waits without an
//! error; one that resumes from a revision that the server has passed meanwhile gets the newer events only, and what the
//! restore undid, or what happened since in between, is never sent. That the server's revision is higher than ours proves
//! nothing, and neither does a bookmark: both are numbers that another history reaches as well. So there are two rules:
//!
//! 1. **A watch resumes only where the server has ended the request in good order and takes the next one at once.** No
//!    backup can be restored in between: API servers are stopped for that, and a stopped one refuses the next request.
//!    (Unless this process was paused in between, which its timers show; then all kinds are listed.)
//!    After any failure (a broken connection, a refused request, silence) a new watch begins with a list, which compares
//!    every object and reports each difference, also at the same or at a lower version. This costs a list where resuming
//!    would have been enough. When an API server restarts, it costs nothing more, since its watch cache begins at a
//!    revision past those that clients have and answers "too old" to all of them. When one of several replicas shuts down,
//!    it ends its watches in good order, and clients resume at another. Lists by agents are of their own namespaces, are
//!    answered from the API server's watch cache, and are spread by jitter.
//! 2. **One kind at a time is asked for its newest object, every [`PERIOD`] and soon after a failure.** This notices
//!    what no failure announces, such as data exchanged under a running API server. The proof of continuity is the object
//!    with the highest version that still exists: if the server has it with the same uid, version and content, both
//!    histories agree up to there. If the server has an older version, or another content at the same version, the
//!    histories differ. If the object is gone or newer, the watch must say so before long; if it does not, it has lost
//!    events. In these cases all kinds are listed, since a backup is of all kinds that are kept together. Where the newest
//!    event was a deletion, the newest object that is left is asked for: it proves less, but never too much.
//!
//! Versions of different kinds are never compared: they may be kept in different stores.

use std::{future::Future, sync::Arc, time::Duration};

use futures::{FutureExt as _, future::BoxFuture};
use tokio::{
    sync::{Mutex, Notify, watch as signal},
    time::{Instant, sleep, sleep_until},
};
use tracing::{debug, warn};

use super::{ObjectKey, Watchable, packed::Packed};
use crate::{
    context::Context,
    error::{Result, chain},
};

/// How often the server is asked, at most; up to a quarter less, so that many do not ask at once.
const PERIOD: Duration = Duration::from_secs(45);
/// A timer that fires later than this by as much again says that the process was paused.
const TICK: Duration = Duration::from_secs(5);
/// How soon it is asked, at the latest, after a watch has failed.
const SOON: Duration = Duration::from_secs(5);
/// How long a watch may take to bring a change that the server has already: API servers answer from etcd before their
/// watch caches have caught up.
const DELIVERY: Duration = Duration::from_secs(10);

/// What all watches of one server share. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct ContinuityCheck {
    /// Held by the kind that asks.
    turn: Arc<Mutex<()>>,
    soon: Arc<Notify>,
    relist: signal::Sender<u64>,
}

/// One version of an object, as it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Evidence {
    pub(super) key: ObjectKey,
    pub(super) uid: Option<String>,
    pub(super) version: u64,
    /// All of it.
    pub(super) json: Arc<[u8]>,
}

impl Evidence {
    /// `None` where the object cannot be read, or its version is not a number.
    pub(super) fn new<K: Watchable>(key: ObjectKey, packed: &Packed<K>) -> Option<Self> {
        let uid = packed.open()?.meta().uid.clone();
        let (version, json) = (packed.version(), packed.json().clone());
        (version > 0).then_some(Self { key, uid, version, json })
    }
}

/// What the server answers.
#[derive(Debug)]
pub(super) struct Answer {
    /// The version at which it answers.
    pub(super) version: u64,
    pub(super) found: Found,
}

/// The object that was asked for, as the server has it.
#[derive(Debug)]
pub(super) enum Found {
    Object(Evidence),
    Absent,
    /// It is not valid, so the cache keeps an older version.
    Unreadable,
}

/// A kind by which a server can be asked.
pub(super) trait Kind: Send + Sync + 'static {
    /// The highest version that its watch has brought.
    fn newest(&self) -> u64;
    /// The object with the highest version.
    fn newest_object(&self) -> Option<Evidence>;
    /// Whether the cache still holds exactly this version of the object.
    fn holds(&self, object: &Evidence) -> bool;
    /// Asks the server for an object, or only for its version. `None` where versions are not numbers.
    fn ask(&self, object: Option<&ObjectKey>) -> impl Future<Output = Result<Option<Answer>>> + Send;
}

/// What an answer says about the history that the server has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// Nothing speaks against it being ours.
    Continues,
    /// It is another one.
    Differs,
    /// It is ours if the watch brings a change of the object.
    IfDelivered,
}

impl Default for ContinuityCheck {
    fn default() -> Self {
        Self { turn: Arc::default(), soon: Arc::default(), relist: signal::Sender::new(0) }
    }
}

impl ContinuityCheck {
    /// Lets the server be asked soon: a watch has failed.
    pub(super) fn check_soon(&self) {
        self.soon.notify_one();
    }

    /// Changes when every watch is to begin anew with a list.
    pub(super) fn relist(&self) -> signal::Receiver<u64> {
        self.relist.subscribe()
    }

    /// Asks by this kind until the context ends, whenever it is its turn. The next kind takes over when one that asks
    /// has ended, or is refused.
    pub(super) fn check_by(&self, context: &Context, kind: impl Kind) {
        let check = self.clone();
        context.spawn(async move {
            loop {
                let _turn = check.turn.lock().await;
                check.turn_of(&kind).await;
                check.check_soon();
            }
        });
    }

    /// Asks by one kind as long as that is possible. In a box, since most only wait for their turn.
    fn turn_of<'a>(&'a self, kind: &'a impl Kind) -> BoxFuture<'a, ()> {
        async move {
            let mut answered = 0;
            loop {
                self.next_time().await;
                match self.check(kind, answered).await {
                    Ok(Some(version)) => answered = version,
                    Ok(None) => return,
                    // The watches report it.
                    Err(error) => {
                        debug!(error = %chain(&error), "cannot check whether the API server still has the same history");
                        if error.is_denied() || error.is_not_found() {
                            return;
                        }
                        self.check_soon();
                    }
                }
            }
        }
        .boxed()
    }

    async fn next_time(&self) {
        let due = Instant::now() + PERIOD.mul_f64(rand::random_range(0.75..=1.0));
        while Instant::now() < due {
            let tick = due.min(Instant::now() + TICK);
            tokio::select! {
                () = sleep_until(tick) => {}
                () = self.soon.notified() => return sleep(SOON.mul_f64(rand::random_range(0.1..=1.0))).await,
            }
            if Instant::now() - tick > TICK {
                debug!("this process was paused: listing again what it watches");
                self.relist_all();
            }
        }
    }

    fn relist_all(&self) {
        self.relist.send_modify(|times| *times += 1);
    }

    /// Asks once; the version at which the server answered.
    async fn check(&self, kind: &impl Kind, answered: u64) -> Result<Option<u64>> {
        let (before, object) = (kind.newest().max(answered), kind.newest_object());
        let Some(answer) = kind.ask(object.as_ref().map(|object| &object.key)).await? else { return Ok(None) };
        let differs = match (judge(before, object.as_ref(), &answer), &object) {
            (Verdict::IfDelivered, Some(object)) => {
                sleep(DELIVERY).await;
                kind.holds(object)
            }
            (verdict, _) => verdict == Verdict::Differs,
        };
        if differs {
            let object = object.map(|object| object.key.to_string());
            warn!(
                before,
                now = answer.version,
                object,
                "the API server's data does not continue what was watched, as after a restore from a backup: listing all of it"
            );
            self.relist_all();
        }
        Ok(Some(answer.version))
    }
}

fn judge(before: u64, object: Option<&Evidence>, answer: &Answer) -> Verdict {
    let Some(object) = object else {
        return if answer.version < before { Verdict::Differs } else { Verdict::Continues };
    };
    match &answer.found {
        _ if answer.version < before => Verdict::Differs,
        Found::Unreadable => Verdict::Continues,
        Found::Object(found) if found.uid == object.uid && found.version < object.version => Verdict::Differs,
        Found::Object(found) if found.uid == object.uid && found.version == object.version => {
            if found.json == object.json { Verdict::Continues } else { Verdict::Differs }
        }
        Found::Object(_) | Found::Absent => Verdict::IfDelivered,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::error::ResultExt as _;

    fn seen(uid: &str, version: u64, text: &str) -> Evidence {
        let json = text.as_bytes().into();
        Evidence { key: ObjectKey::new("ns", "a"), uid: Some(uid.into()), version, json }
    }

    #[test]
    fn the_newest_object_proves_that_the_history_continues_and_a_higher_version_alone_does_not() {
        let held = seen("1", 7, "x");
        let verdict = |version, found| judge(9, Some(&held), &Answer { version, found });
        assert_eq!(verdict(9, Found::Object(held.clone())), Verdict::Continues);
        assert_eq!(verdict(900, Found::Object(held.clone())), Verdict::Continues);
        assert_eq!(verdict(8, Found::Object(held.clone())), Verdict::Differs, "the server has gone back");
        assert_eq!(verdict(900, Found::Object(seen("1", 6, "x"))), Verdict::Differs, "the object has gone back");
        assert_eq!(verdict(900, Found::Object(seen("1", 7, "y"))), Verdict::Differs, "version 7 was another one");
        assert_eq!(verdict(900, Found::Object(seen("1", 8, "y"))), Verdict::IfDelivered);
        assert_eq!(verdict(900, Found::Object(seen("2", 8, "x"))), Verdict::IfDelivered);
        assert_eq!(verdict(900, Found::Absent), Verdict::IfDelivered);
        assert_eq!(verdict(900, Found::Unreadable), Verdict::Continues);
    }

    /// A kind about which the server gives these answers, the last one again and again: versions, or HTTP codes.
    struct Scripted {
        newest: u64,
        held: Option<Evidence>,
        answers: &'static [Result<u64, u16>],
        asked: Arc<AtomicU64>,
        done: Arc<Notify>,
    }

    impl Scripted {
        fn new(newest: u64, answers: &'static [Result<u64, u16>]) -> Self {
            Self { newest, held: None, answers, asked: Arc::default(), done: Arc::default() }
        }
    }

    impl Kind for Scripted {
        fn newest(&self) -> u64 {
            self.newest
        }

        fn newest_object(&self) -> Option<Evidence> {
            self.held.clone()
        }

        fn holds(&self, object: &Evidence) -> bool {
            self.held.as_ref() == Some(object)
        }

        async fn ask(&self, _: Option<&ObjectKey>) -> Result<Option<Answer>> {
            let time = self.asked.fetch_add(1, Ordering::Relaxed);
            let last = self.answers.len() - 1;
            if time == last as u64 {
                self.done.notify_one();
            }
            match self.answers[last.min(usize::try_from(time).unwrap())] {
                Ok(version) => Ok(Some(Answer { version, found: Found::Absent })),
                Err(code) => {
                    let status = kube::core::Status::failure("no", "").with_code(code).boxed();
                    Err(kube::Error::Api(status)).while_trying_to("ask", || "a server".into())
                }
            }
        }
    }

    /// Asks by these kinds for some minutes; how often everything was listed again.
    async fn relists(kinds: Vec<Scripted>) -> u64 {
        let (check, context) = (ContinuityCheck::default(), Context::new());
        for kind in kinds {
            check.check_by(&context, kind);
        }
        sleep(PERIOD * 10).await;
        context.stop().await;
        *check.relist().borrow()
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_whose_watch_has_failed_is_asked_soon_and_until_it_answers() {
        let (check, context, start) = (ContinuityCheck::default(), Context::new(), Instant::now());
        let kind = Scripted::new(0, &[Err(500), Err(503), Err(500), Ok(7)]);
        let done = kind.done.clone();
        check.check_by(&context, kind);
        check.check_soon();
        done.notified().await;
        assert!(start.elapsed() <= SOON * 4, "{:?}", start.elapsed());
        context.stop().await;
    }

    #[tokio::test(start_paused = true)]
    async fn what_goes_on_is_left_alone_and_what_goes_back_is_listed_again() {
        assert_eq!(relists(vec![Scripted::new(7, &[Ok(7), Ok(9)])]).await, 0);
        assert_eq!(relists(vec![Scripted::new(7, &[Ok(7), Ok(9), Ok(8)])]).await, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn an_object_that_is_gone_without_a_word_from_the_watch_has_everything_listed() {
        let lost = Scripted { held: Some(seen("1", 7, "x")), ..Scripted::new(7, &[Ok(9), Err(403)]) };
        assert_eq!(relists(vec![lost]).await, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_pause_of_the_process_everything_is_listed() {
        let (check, context) = (ContinuityCheck::default(), Context::new());
        check.check_by(&context, Scripted::new(1, &[Ok(1)]));
        sleep(TICK / 2).await;
        tokio::time::advance(3 * TICK).await;
        sleep(TICK / 2).await;
        assert_eq!(*check.relist().borrow(), 1);
        context.stop().await;
    }

    #[tokio::test(start_paused = true)]
    async fn kinds_that_are_counted_apart_are_not_compared() {
        let kinds = vec![Scripted::new(3, &[Ok(3), Err(403)]), Scripted::new(900, &[Ok(900), Err(404)])];
        assert_eq!(relists(kinds).await, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn where_one_kind_is_refused_another_is_asked_by() {
        let kinds =
            vec![Scripted::new(3, &[Err(403)]), Scripted::new(3, &[Err(404)]), Scripted::new(3, &[Ok(9), Ok(5)])];
        let asked: Vec<_> = kinds.iter().map(|kind| kind.asked.clone()).collect();
        assert_eq!(relists(kinds).await, 1);
        assert_eq!(asked[0].load(Ordering::Relaxed), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn when_the_one_that_asks_has_ended_another_does() {
        let (check, first, second) = (ContinuityCheck::default(), Context::new(), Context::new());
        check.check_by(&first, Scripted::new(1, &[Ok(1)]));
        let kind = Scripted::new(1, &[Ok(1)]);
        let done = kind.done.clone();
        sleep(PERIOD).await;
        check.check_by(&second, kind);
        first.stop().await;
        done.notified().await;
        second.stop().await;
    }
}
