//! The work queue of one controller: every key at most once in it and at most once in work, delays,
//! and back-off for keys that fail.

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    fmt::Display,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

/// The wait after the first failure of a key; it doubles with every further one.
const FIRST_BACKOFF: Duration = Duration::from_millis(5);
/// The longest wait between two tries of a key that keeps failing: what was broken is noticed to work
/// again within a minute.
const LONGEST_BACKOFF: Duration = Duration::from_secs(60);

/// What a queue holds: a name that finds an object.
pub trait Key: Clone + Eq + Hash + Ord + Display + Send + Sync + 'static {}
impl<K: Clone + Eq + Hash + Ord + Display + Send + Sync + 'static> Key for K {}

/// A queue of keys to reconcile, shared by those who add and the workers that take.
#[derive(Debug)]
pub struct Queue<K> {
    shared: Arc<Shared<K>>,
}

impl<K> Clone for Queue<K> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

#[derive(Debug)]
struct Shared<K> {
    state: Mutex<State<K>>,
    changed: Notify,
}

#[derive(Debug)]
struct State<K> {
    ready: VecDeque<K>,
    /// The same keys as `ready`.
    queued: HashSet<K>,
    working: HashSet<K>,
    /// Keys in work that were added meanwhile, to be taken up again.
    again: HashSet<K>,
    /// Keys to be added at a time, and the same by key.
    delayed: BTreeMap<(Instant, K), ()>,
    due: HashMap<K, Instant>,
    failures: HashMap<K, u32>,
}

impl<K: Key> Default for Queue<K> {
    fn default() -> Self {
        let state = State {
            ready: VecDeque::new(),
            queued: HashSet::new(),
            working: HashSet::new(),
            again: HashSet::new(),
            delayed: BTreeMap::new(),
            due: HashMap::new(),
            failures: HashMap::new(),
        };
        Self { shared: Arc::new(Shared { state: Mutex::new(state), changed: Notify::new() }) }
    }
}

impl<K: Key> Queue<K> {
    /// Adds a key to be worked on as soon as a worker is free.
    pub fn add(&self, key: K) {
        self.lock().add(key);
        self.shared.changed.notify_one();
    }

    /// Adds a key after `delay`. Of several delays for a key the earliest counts.
    pub fn add_after(&self, key: K, delay: Duration) {
        self.lock().add_at(key, Instant::now() + delay);
        self.shared.changed.notify_one();
    }

    /// Adds a key after a delay that doubles with every failure in a row, up to a minute;
    /// returns the delay.
    pub fn add_failed(&self, key: K) -> Duration {
        self.add_failed_within(key, LONGEST_BACKOFF)
    }

    /// Like [`Queue::add_failed`], but after no more than `longest`.
    pub fn add_failed_within(&self, key: K, longest: Duration) -> Duration {
        let mut state = self.lock();
        let failures = state.failures.entry(key.clone()).or_insert(0);
        let delay = FIRST_BACKOFF.saturating_mul(1 << (*failures).min(20)).min(longest);
        *failures += 1;
        state.add_at(key, Instant::now() + delay);
        drop(state);
        self.shared.changed.notify_one();
        delay
    }

    /// How often in a row a key has failed.
    #[must_use]
    pub fn failures(&self, key: &K) -> u32 {
        self.lock().failures.get(key).copied().unwrap_or(0)
    }

    /// Forgets the failures of a key, so that its next one is met with the shortest delay.
    pub fn forget(&self, key: &K) {
        self.lock().failures.remove(key);
    }

    /// How many keys wait for a worker.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.lock().ready.len()
    }

    /// Takes the next key; waits until there is one. Whoever takes a key must give it back with
    /// [`Queue::done`].
    pub async fn next(&self) -> K {
        loop {
            let changed = self.shared.changed.notified();
            let wake = {
                let mut state = self.lock();
                state.move_due(Instant::now());
                if let Some(key) = state.take() {
                    if !state.ready.is_empty() {
                        self.shared.changed.notify_one();
                    }
                    return key;
                }
                state.delayed.keys().next().map(|(at, _)| *at)
            };
            match wake {
                Some(at) => tokio::select! { () = changed => {} () = sleep_until(at) => {} },
                None => changed.await,
            }
        }
    }

    /// Says that a key is no longer in work.
    pub fn done(&self, key: &K) {
        let mut state = self.lock();
        state.working.remove(key);
        if state.again.remove(key) {
            state.add(key.clone());
        }
        drop(state);
        self.shared.changed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Key> State<K> {
    fn add(&mut self, key: K) {
        if self.working.contains(&key) {
            self.again.insert(key);
        } else if self.queued.insert(key.clone()) {
            self.ready.push_back(key);
        }
    }

    fn add_at(&mut self, key: K, at: Instant) {
        if let Some(earlier) = self.due.get(&key) {
            if *earlier <= at {
                return;
            }
            self.delayed.remove(&(*earlier, key.clone()));
        }
        self.due.insert(key.clone(), at);
        self.delayed.insert((at, key), ());
    }

    fn move_due(&mut self, now: Instant) {
        while let Some(entry) = self.delayed.first_entry() {
            if entry.key().0 > now {
                break;
            }
            let ((_, key), ()) = entry.remove_entry();
            self.due.remove(&key);
            self.add(key);
        }
    }

    fn take(&mut self) -> Option<K> {
        let key = self.ready.pop_front()?;
        self.queued.remove(&key);
        self.working.insert(key.clone());
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_key_added_while_in_work_is_worked_on_again_and_never_twice_at_once() {
        let queue = Queue::default();
        queue.add("a");
        queue.add("a");
        assert_eq!(queue.next().await, "a");
        queue.add("a");
        assert_eq!(queue.depth(), 0, "it waits until the first run is done");
        queue.done(&"a");
        assert_eq!(queue.next().await, "a");
        queue.done(&"a");
        assert_eq!(queue.depth(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn of_two_delays_the_earlier_counts() {
        let queue = Queue::default();
        let start = Instant::now();
        queue.add_after("a", Duration::from_secs(60));
        queue.add_after("a", Duration::from_secs(5));
        queue.add_after("a", Duration::from_secs(90));
        queue.next().await;
        queue.done(&"a");
        assert_eq!(start.elapsed().as_secs(), 5);
        let more = tokio::time::timeout(Duration::from_secs(600), queue.next()).await;
        assert!(more.is_err(), "the later delays are gone");
    }

    #[tokio::test(start_paused = true)]
    async fn failures_double_the_delay_until_success_forgets_them() {
        let queue = Queue::default();
        let delays: Vec<_> = (0..3).map(|_| queue.add_failed("a").as_millis()).collect();
        assert_eq!((delays, queue.failures(&"a")), (vec![5, 10, 20], 3));
        queue.forget(&"a");
        assert_eq!(queue.failures(&"a"), 0);
        assert_eq!(queue.add_failed("a").as_millis(), 5);
        for _ in 0..40 {
            assert!(queue.add_failed("b") <= LONGEST_BACKOFF);
        }
    }

    #[tokio::test]
    async fn one_notice_wakes_workers_until_the_queue_is_empty() {
        let queue = Queue::default();
        let workers: Vec<_> = (0..4)
            .map(|_| {
                let queue = queue.clone();
                tokio::spawn(async move { queue.next().await })
            })
            .collect();
        tokio::task::yield_now().await;
        for key in 0..4 {
            queue.add(key);
        }
        for worker in workers {
            worker.await.unwrap();
        }
    }
}
