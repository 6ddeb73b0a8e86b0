//! Notices when a server's data is not the continuation of what a watch has seen, as after etcd was restored from a backup.
//!
//! A watch resumes from a revision, and the server sends what came after it. After a restore, revisions count up again
//! from that of the backup. A watch that resumes from a revision that the server has not reached yet waits without an
//! error; one that resumes from a revision that the server has passed meanwhile gets the newer events only, and what the
//! restore undid, or what happened since in between, is never sent. That the server's revision is higher than ours proves
//! nothing, and neither does a bookmark: both are numbers that another history reaches as well. So there are two rules:
//!
//! 1. **A watch resumes only where the server has ended the request in good order and takes the next one at once.** No
//!    backup can be restored in between: API servers are stopped for that, and a stopped one refuses the next request.
//!    (Unless this process was paused in between, which [`crate::pause`] notices; then all kinds are listed.)
//!    After any failure (a broken connection, a refused request, a timeout) a new watch begins with a list, which compares
//!    every object and reports each difference, also at the same or at a lower version. This costs a list where resuming
//!    would have been enough; [`super::retry`] spreads these lists over ten seconds, since a whole fleet may lose its
//!    connections at once. An agent lists the works and add-ons of its namespace, its own cluster by name, and certificate
//!    requests by label. API servers answer such lists from etcd, newer ones from their watch cache. When an API server
//!    restarts, most watches could not resume anyway: its watch cache begins at a revision past those that clients have,
//!    and it answers "too old". When one of several replicas shuts down, it ends its watches in good order, and clients
//!    resume at another.
//!
//!    To ask for the newest object first (see rule 2) and to resume if it is unchanged would not be enough: events after
//!    it, such as deletions, could be of another history.
//! 2. **The server is asked for the newest object of one kind, every [`PERIOD`] and soon after a failure.** This notices
//!    what no failure announces, such as data exchanged under a running API server. The proof of continuity is the object
//!    with the highest version that still exists: if the server has it with the same uid, version and content, both
//!    histories agree up to there. If the server has an older version, or another content at the same version, the
//!    histories differ. If the object is gone or newer, the watch must bring that change. It may lag, so this waits as long
//!    as it brings older changes; if it brings later ones, or none for half a minute, it has lost the change, and the
//!    histories differ too. Then all kinds are listed, since a backup is of all kinds that are kept together. Where the
//!    newest event was a deletion, the newest object that is left is asked for: it proves less, but never too much.
//!
//! Versions of different kinds are never compared: they may be kept in different stores.

use std::{
    future::{Future, pending},
    sync::Arc,
    time::Duration,
};

use futures::{FutureExt as _, future::BoxFuture};
use tokio::{
    sync::{Mutex, Notify, watch as signal},
    time::sleep,
};
use tracing::{debug, warn};

use super::{ObjectKey, Watchable, packed::Packed};
use crate::{
    context::Context,
    error::{Result, chain},
};

/// How often the server is asked, at most; up to a quarter less, so that many do not ask at once.
const PERIOD: Duration = Duration::from_secs(45);
/// A kind that is refused has its next turn after this time at the earliest.
const REFUSED: Duration = Duration::from_secs(60);
/// How soon it is asked, at the latest, after a watch has failed.
const SOON: Duration = Duration::from_secs(5);
/// How often it is checked whether a watch has brought a change that the server has already: API servers answer from etcd
/// before their watch caches have caught up.
const DELIVERY: Duration = Duration::from_secs(10);
/// A watch that brings nothing at all in so many of these times does not lag, but has lost the change.
const STALLED: u32 = 3;

/// What all watches of one server share. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct ContinuityCheck {
    /// Held by the kind that asks.
    turn: Arc<Mutex<()>>,
    soon: Arc<Notify>,
    relist: signal::Sender<u64>,
    /// Changes after each pause of this process.
    pauses: signal::Receiver<u64>,
}

/// When a watch is to begin again with a list, though it has not failed.
#[derive(Debug)]
pub struct Relists {
    check: signal::Receiver<u64>,
    pauses: signal::Receiver<u64>,
    is_due: bool,
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
    /// `None` where its version is not a number.
    pub(super) fn new<K: Watchable>(key: ObjectKey, packed: &Packed<K>) -> Option<Self> {
        let uid = packed.uid().map(str::to_owned);
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
    /// Whether its watch continues from a complete list. If not, it is about to list.
    fn is_watching(&self) -> bool;
    /// Asks the server for an object, or only for its version. `None` where versions are not numbers.
    fn ask(&self, object: Option<&ObjectKey>) -> impl Future<Output = Result<Option<Answer>>> + Send;
}

/// What a response reveals about the server's history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// It may be the history that was observed.
    Continues,
    /// It is another one.
    Differs,
    /// It is ours if the watch brings a change of the object.
    IfDelivered,
}

impl Relists {
    /// Waits until a list is due.
    pub async fn wait(&mut self) {
        tokio::select! {
            () = changed(&mut self.check) => {}
            () = changed(&mut self.pauses) => {}
        }
        self.is_due = true;
    }

    /// Whether a list has become due since the last call: the one that begins now is it.
    pub fn take(&mut self) -> bool {
        let new = [&mut self.check, &mut self.pauses].map(|receiver| {
            let is_new = receiver.has_changed().unwrap_or_default();
            receiver.mark_unchanged();
            is_new
        });
        std::mem::take(&mut self.is_due) || new.contains(&true)
    }
}

/// Waits for ever once nobody can change it.
async fn changed(receiver: &mut signal::Receiver<u64>) {
    if receiver.changed().await.is_err() {
        pending::<()>().await;
    }
}

impl ContinuityCheck {
    /// `pauses` changes after each pause of this process.
    pub(super) fn new(pauses: signal::Receiver<u64>) -> Self {
        Self { turn: Arc::default(), soon: Arc::default(), relist: signal::Sender::new(0), pauses }
    }

    /// Lets the server be asked soon: a watch has failed.
    pub(super) fn check_soon(&self) {
        self.soon.notify_one();
    }

    /// When a watch is to begin again with a list.
    pub(super) fn relists(&self) -> Relists {
        let mut pauses = self.pauses.clone();
        pauses.mark_unchanged();
        Relists { check: self.relist.subscribe(), pauses, is_due: false }
    }

    /// Asks by this kind until the context ends, whenever it is its turn. The next kind takes over when one that asks
    /// has ended, or is refused.
    pub(super) fn check_by(&self, context: &Context, kind: impl Kind) {
        let check = self.clone();
        context.spawn(async move {
            loop {
                let turn = check.turn.lock().await;
                check.turn_of(&kind).await;
                drop(turn);
                check.check_soon();
                sleep(REFUSED).await;
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
        tokio::select! {
            () = sleep(PERIOD.mul_f64(rand::random_range(0.75..=1.0))) => {}
            () = self.soon.notified() => sleep(SOON.mul_f64(rand::random_range(0.1..=1.0))).await,
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
            (Verdict::IfDelivered, Some(object)) => has_lost(kind, object, answer.version).await,
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

/// Whether the watch has lost a change of the object that the server had at version `answered`. Since a watch brings changes
/// in order, it may lag as long as it brings older ones; no change of any object after it proves nothing.
async fn has_lost(kind: &impl Kind, object: &Evidence, answered: u64) -> bool {
    let (mut newest, mut stalled) = (kind.newest(), 0);
    while stalled < STALLED {
        sleep(DELIVERY).await;
        // Read before the object, which it may be newer than.
        let brought = kind.newest();
        if !kind.holds(object) || !kind.is_watching() {
            return false;
        }
        if brought >= answered {
            return true;
        }
        stalled = if brought > newest { 0 } else { stalled + 1 };
        newest = brought;
    }
    true
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
mod tests;
