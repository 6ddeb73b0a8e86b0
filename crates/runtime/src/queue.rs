//! The work queue of one controller: a key is in it at most once, and processed by one worker at a time. Keys can be
//! added after a delay, and after a failure with exponential back-off.

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

use crate::backoff::{Backoff, Delays};

/// After how long a queue retries a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryDelays {
    /// After a failure that may pass: what was broken is noticed to work again within the longest delay.
    pub failed: Backoff,
    /// After a refusal by the API server. It lasts until a person changes a policy, a quota or the object, so retrying
    /// often would only cost; no event announces such a change, so retrying never would leave the object as it is.
    pub refused: Backoff,
}

impl Default for RetryDelays {
    fn default() -> Self {
        Self {
            failed: Backoff::new(Duration::from_millis(10), Duration::from_secs(60)),
            refused: Backoff::new(Duration::from_secs(90), Duration::from_secs(600)),
        }
    }
}

/// Longer than any delay that a caller of [`Queue::add_failed_within`] asks for.
const NO_LIMIT: Duration = Duration::from_secs(24 * 3600);

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
    /// Keys in work that were added meanwhile, to be processed again.
    again: HashSet<K>,
    /// Keys to be added at a time, and the same by key.
    delayed: BTreeMap<(Instant, K), ()>,
    due: HashMap<K, Instant>,
    failing: HashMap<K, Failing>,
    refused: HashMap<K, Delays>,
    delays: RetryDelays,
}

/// A key that has failed.
#[derive(Debug)]
struct Failing {
    /// How often in a row.
    times: u32,
    delays: Delays,
}

impl<K: Key> Default for Queue<K> {
    fn default() -> Self {
        Self::new(RetryDelays::default())
    }
}

impl<K: Key> Queue<K> {
    /// A queue that retries after these delays.
    #[must_use]
    pub fn new(delays: RetryDelays) -> Self {
        let state = State {
            ready: VecDeque::new(),
            queued: HashSet::new(),
            working: HashSet::new(),
            again: HashSet::new(),
            delayed: BTreeMap::new(),
            due: HashMap::new(),
            failing: HashMap::new(),
            refused: HashMap::new(),
            delays,
        };
        Self { shared: Arc::new(Shared { state: Mutex::new(state), changed: Notify::new() }) }
    }

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

    /// Adds a key with exponential back-off, after at most a minute; returns the delay.
    pub fn add_failed(&self, key: K) -> Duration {
        let longest = self.lock().delays.failed.longest;
        self.add_failed_within(key, longest)
    }

    /// Like [`Queue::add_failed`], but after at most `longest`.
    pub fn add_failed_within(&self, key: K, longest: Duration) -> Duration {
        let mut state = self.lock();
        let delay = state.failed(&key).min(longest.mul_f64(rand::random_range(0.5..=1.0)));
        state.add_at(key, Instant::now() + delay);
        drop(state);
        self.shared.changed.notify_one();
        delay
    }

    /// Adds a key that the API server refused: after about a minute at first, and after up to ten minutes when it is
    /// refused again and again. Returns the time until the retry. A retry that is due earlier stays, and a refusal before
    /// it is due (because the object changed) does not postpone the retries after it.
    pub fn add_refused(&self, key: K) -> Duration {
        let mut state = self.lock();
        let due = state.refused_until(&key);
        state.add_at(key, due);
        drop(state);
        self.shared.changed.notify_one();
        due - Instant::now()
    }

    /// How often in a row a key has failed.
    #[must_use]
    pub fn failures(&self, key: &K) -> u32 {
        self.lock().failing.get(key).map_or(0, |failing| failing.times)
    }

    /// Forgets the failures and refusals of a key, so that the next one is retried after the shortest delay.
    pub fn forget(&self, key: &K) {
        let mut state = self.lock();
        state.failing.remove(key);
        state.refused.remove(key);
    }

    /// How many keys wait for a worker.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.lock().ready.len()
    }

    /// Takes the next key; waits until there is one. A key that was taken must be given back with
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

    /// Marks a key as no longer in work.
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
    /// Counts a failure; the delay until the retry.
    fn failed(&mut self, key: &K) -> Duration {
        let backoff = Backoff { longest: NO_LIMIT, ..self.delays.failed };
        let new = || Failing { times: 0, delays: backoff.delays() };
        let failing = self.failing.entry(key.clone()).or_insert_with(new);
        failing.times += 1;
        failing.delays.next_delay()
    }

    /// Counts a refusal; the time of the retry. The server answered, so failures before it count no longer.
    fn refused_until(&mut self, key: &K) -> Instant {
        self.failing.remove(key);
        if let (Some(due), true) = (self.due.get(key), self.refused.contains_key(key)) {
            return *due;
        }
        let backoff = self.delays.refused;
        let delays = self.refused.entry(key.clone()).or_insert_with(|| backoff.delays());
        Instant::now() + delays.next_delay()
    }

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
        let within = |delay: Duration, longest: u64| {
            let longest = Duration::from_millis(longest);
            assert!(longest / 2 <= delay && delay <= longest, "{delay:?}, which should be up to {longest:?}");
        };
        [10, 20, 40].into_iter().for_each(|longest| within(queue.add_failed("a"), longest));
        assert_eq!(queue.failures(&"a"), 3);
        queue.forget(&"a");
        assert_eq!(queue.failures(&"a"), 0);
        within(queue.add_failed("a"), 10);
        for _ in 0..40 {
            assert!(queue.add_failed("b") <= Duration::from_secs(60));
        }
        within(queue.add_failed("b"), 60_000);
        within(queue.add_failed_within("b", Duration::from_secs(300)), 300_000);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_refused_is_retried_after_minutes_and_not_given_up() {
        let (queue, mut retries) = (Queue::default(), Vec::new());
        for _ in 0..8 {
            queue.add_refused("a");
            let start = Instant::now();
            queue.done(&queue.next().await);
            retries.push(start.elapsed().as_secs());
        }
        assert!((44..=90).contains(&retries[0]), "{retries:?}");
        assert!(retries[5..].iter().all(|seconds| (299..=600).contains(seconds)), "{retries:?}");
        queue.forget(&"a");
        assert!(queue.add_refused("a").as_secs() <= 90);
    }

    #[tokio::test(start_paused = true)]
    async fn refusals_before_a_retry_is_due_do_not_postpone_it() {
        let queue = Queue::default();
        let first = queue.add_refused("a");
        for _ in 0..10 {
            queue.add("a");
            queue.next().await;
            assert!(queue.add_refused("a") <= first);
            queue.done(&"a");
        }
        let start = Instant::now();
        queue.next().await;
        assert!(start.elapsed().as_secs() <= first.as_secs() + 1);
        queue.done(&"a");
        let next = queue.add_refused("a");
        assert!((89..=180).contains(&next.as_secs()), "the second delay, not the tenth: {next:?}");
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
