//! Hands the changes of a cache to those who subscribed, in order and while no cache is locked.
//!
//! Changes are put into a queue while the cache is locked, so their order is that in which the cache took them. They are
//! handed out after unlocking, by one thread at a time. An informer's task hands out some at a time and lets other tasks run
//! in between, since a list may bring thousands. A thread that changes a cache waits until subscribers have seen it, with one
//! exception: a subscriber that changes a cache, its own or another, waits for nobody. So no thread waits for a
//! turn while it has one, and two caches whose subscribers use each other cannot deadlock.

use std::{
    cell::Cell,
    iter,
    ops::ControlFlow,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Mutex, MutexGuard, PoisonError, TryLockError},
};

use serde::de::DeserializeOwned;
use tokio::task::yield_now;
use tracing::error;

use super::{Change, packed::Packed};

/// So many changes are handed out at once by a task: some milliseconds.
const CHUNK: usize = 64;

pub(super) type Subscriber<K> = Box<dyn Fn(Change<'_, K>) -> ControlFlow<()> + Send>;

/// What is to be handed out.
pub(super) enum Notice<K> {
    /// Somebody subscribed when these objects existed.
    Subscribed(Subscriber<K>, Vec<Packed<K>>),
    Added(Packed<K>),
    Updated {
        old: Packed<K>,
        new: Packed<K>,
    },
    Deleted(Packed<K>),
}

/// Those who subscribed, held by the thread whose turn it is.
pub(super) struct Delivery<K> {
    subscribers: Mutex<Vec<Subscriber<K>>>,
}

impl<K> Default for Delivery<K> {
    fn default() -> Self {
        Self { subscribers: Mutex::default() }
    }
}

thread_local! {
    /// Whether this thread is running subscribers.
    static DELIVERS: Cell<bool> = const { Cell::new(false) };
}

impl<K: DeserializeOwned> Delivery<K> {
    /// Hands out what `next` takes from the queue, and returns when that is done. A subscriber that calls may return
    /// earlier, while another thread is about to do it.
    pub(super) fn run(&self, next: impl Fn() -> Option<Notice<K>>, is_done: impl Fn() -> bool) {
        // A subscriber that found the turn taken relies on the thread that had it.
        while self.run_some(usize::MAX, &next) && !is_done() {}
    }

    /// The same for a task, which lets other tasks of its thread run again and again meanwhile.
    pub(super) async fn run_in_chunks(&self, next: impl Fn() -> Option<Notice<K>>, is_done: impl Fn() -> bool) {
        while self.run_some(CHUNK, &next) && !is_done() {
            yield_now().await;
        }
    }

    /// Hands out some of what is in the queue. Returns `false` if it is not this thread's turn.
    fn run_some(&self, most: usize, next: impl Fn() -> Option<Notice<K>>) -> bool {
        let Some(mut subscribers) = self.turn() else { return false };
        let _delivers = Delivers::begin();
        for notice in iter::from_fn(next).take(most) {
            deliver(&mut subscribers, notice);
        }
        true
    }

    /// The turn of this thread. `None` for a subscriber while another thread, or this one, has the turn.
    fn turn(&self) -> Option<MutexGuard<'_, Vec<Subscriber<K>>>> {
        if !DELIVERS.get() {
            return Some(self.subscribers.lock().unwrap_or_else(PoisonError::into_inner));
        }
        match self.subscribers.try_lock() {
            Ok(subscribers) => Some(subscribers),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// Marks this thread as one that runs subscribers.
struct Delivers {
    before: bool,
}

impl Delivers {
    fn begin() -> Self {
        Self { before: DELIVERS.replace(true) }
    }
}

impl Drop for Delivers {
    fn drop(&mut self) {
        DELIVERS.set(self.before);
    }
}

fn deliver<K: DeserializeOwned>(subscribers: &mut Vec<Subscriber<K>>, notice: Notice<K>) {
    match notice {
        Notice::Subscribed(subscriber, objects) => {
            let mut objects = objects.iter().filter_map(Packed::open);
            if objects.all(|object| call(&subscriber, Change::Added(&object))) {
                subscribers.push(subscriber);
            }
        }
        Notice::Added(new) => {
            let Some(new) = new.open() else { return };
            subscribers.retain(|subscriber| call(subscriber, Change::Added(&new)));
        }
        Notice::Updated { old, new } => {
            let (Some(old), Some(new)) = (old.open(), new.open()) else { return };
            subscribers.retain(|subscriber| call(subscriber, Change::Updated { old: &old, new: &new }));
        }
        Notice::Deleted(old) => {
            let Some(old) = old.open() else { return };
            subscribers.retain(|subscriber| call(subscriber, Change::Deleted(&old)));
        }
    }
}

/// Whether the subscriber wants further changes. One that panics does: the next change may be another matter.
fn call<K>(subscriber: &Subscriber<K>, change: Change<'_, K>) -> bool {
    let called = catch_unwind(AssertUnwindSafe(|| subscriber(change)));
    called.map_or_else(
        |_| {
            error!(kind = std::any::type_name::<K>(), "a subscriber of this kind panicked and missed a change");
            true
        },
        |flow| flow.is_continue(),
    )
}

#[cfg(test)]
mod tests;
