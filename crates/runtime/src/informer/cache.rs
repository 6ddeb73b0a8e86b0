//! The objects of a kind as last seen, and those who subscribed to changes.
//!
//! Objects are kept as JSON text and parsed when they are read: a fleet's hub and a cluster with many works spend their
//! memory here. A controller that needs many objects at once keeps a [`View`](super::View) of a few fields.

use std::{
    fmt::{self, Debug},
    ops::ControlFlow,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use kube::runtime::watcher::Event;
use tokio::sync::watch as signal;

use super::{
    Change, ObjectKey, Watchable, continuity::Evidence, delivery::Delivery, packed::Packed, raw::Read, state::State,
};
use crate::metrics::WatchState;

/// The objects of a kind as last seen; cheap to clone.
pub struct Cache<K> {
    shared: Arc<Shared<K>>,
}

impl<K> Debug for Cache<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").field("objects", &self.lock().len()).finish_non_exhaustive()
    }
}

impl<K> Clone for Cache<K> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<K> Default for Cache<K> {
    fn default() -> Self {
        let (state, delivery) = (Mutex::default(), Delivery::default());
        Self { shared: Arc::new(Shared { state, delivery, synced: signal::Sender::new(false) }) }
    }
}

struct Shared<K> {
    /// Never locked while anything is called that is not part of this module.
    state: Mutex<State<K>>,
    delivery: Delivery<K>,
    synced: signal::Sender<bool>,
}

impl<K> Cache<K> {
    fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An object of a namespace that exists and could never be parsed, if any: a controller that deletes what nothing
    /// refers to must not run without it.
    #[must_use]
    pub fn left_out_in(&self, namespace: &str) -> Option<ObjectKey> {
        self.lock().left_out_in(namespace).cloned()
    }

    /// The keys of all objects, none of which is parsed.
    #[must_use]
    pub fn keys(&self) -> Vec<ObjectKey> {
        self.lock().keys()
    }

    /// The number of objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether the cache holds no object.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the first list is complete.
    #[must_use]
    pub fn is_synced(&self) -> bool {
        *self.shared.synced.borrow()
    }

    /// Waits until the first list is complete.
    pub async fn synced(&self) {
        // The sender lives as long as this cache, so the only outcome is that it became true.
        let _ = self.shared.synced.subscribe().wait_for(|synced| *synced).await;
    }
}

impl<K: Watchable> Cache<K> {
    /// The object of that key; `None` if it does not exist.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<K>> {
        let packed = self.lock().get(key);
        packed?.open()
    }

    /// The cluster-scoped object of that name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<Arc<K>> {
        self.get(&ObjectKey::new("", name))
    }

    /// The JSON of the object of that key, which shares the memory of the cache; `None` if it does not exist.
    #[must_use]
    pub fn json(&self, key: &ObjectKey) -> Option<Arc<[u8]>> {
        self.lock().get(key).map(|packed| packed.json().clone())
    }

    /// All objects, by namespace and name. Each is parsed: for few objects, or for rare use.
    #[must_use]
    pub fn list(&self) -> Vec<Arc<K>> {
        let packed = self.lock().all();
        packed.iter().filter_map(Packed::open).collect()
    }

    /// The objects of one namespace, by name. Each is parsed.
    #[must_use]
    pub fn in_namespace(&self, namespace: &str) -> Vec<Arc<K>> {
        let packed = self.lock().within(namespace);
        packed.iter().filter_map(Packed::open).collect()
    }

    /// Calls `subscriber` for every object that exists, and then for every change in order, until it breaks. It may read
    /// every cache, this one included, which may be ahead of the change. It should be quick: all changes wait for it.
    pub fn subscribe(&self, subscriber: impl Fn(Change<'_, K>) -> ControlFlow<()> + Send + 'static) {
        self.change(|state| state.subscribe(Box::new(subscriber)));
    }

    /// Changes what is known, then hands out what that leads to; see [`super::delivery`].
    fn change<R>(&self, change: impl FnOnce(&mut State<K>) -> R) -> R {
        let changed = change(&mut self.lock());
        self.shared.delivery.run(|| self.lock().next_notice(), || self.lock().has_no_notices());
        changed
    }
}

impl<K: Send + Sync + 'static> Cache<K> {
    /// The state of the watch; `None` once nobody uses the cache any more.
    pub(super) fn state(&self) -> impl Fn() -> Option<WatchState> + Send + 'static {
        let shared = Arc::downgrade(&self.shared);
        move || {
            let cache = Self { shared: shared.upgrade()? };
            Some(WatchState { synced: cache.is_synced(), objects: cache.len() })
        }
    }
}

impl<K: Watchable> Cache<K> {
    /// The newest resource version the watch has brought.
    pub(super) fn newest(&self) -> u64 {
        self.lock().newest()
    }

    /// The object with the highest resource version, unless versions are not numbers.
    pub(super) fn newest_object(&self) -> Option<Evidence> {
        let (key, packed) = self.lock().newest_object()?;
        Evidence::new(key, &packed)
    }

    /// Whether it holds exactly this version of the object.
    pub(super) fn holds(&self, object: &Evidence) -> bool {
        self.lock().get(&object.key).is_some_and(|held| *held.json() == object.json)
    }

    /// Whether its watch continues from a complete list.
    pub(super) fn is_watching(&self) -> bool {
        self.lock().is_watching()
    }

    /// Records that the watch has failed: what comes next is a list.
    pub(super) fn lost_watch(&self) {
        self.lock().lost_watch();
    }

    /// Forgets the versions seen: those of the next list may be lower.
    pub(super) fn relist(&self) {
        self.lock().relist();
    }

    /// Takes an event of the watch. What is returned ends when subscribers have seen what has changed; other tasks of the thread
    /// run meanwhile. It does not hold the event, which is large.
    pub(super) fn take(&self, event: Event<Read<K>>, plural: &str) -> impl Future<Output = ()> + Send {
        let is_complete = matches!(event, Event::InitDone);
        self.lock().take(event, plural);
        async move {
            self.shared.delivery.run_in_chunks(|| self.lock().next_notice(), || self.lock().has_no_notices()).await;
            if is_complete {
                self.shared.synced.send_replace(true);
            }
        }
    }

    /// Takes an event in a test that has no runtime.
    #[cfg(test)]
    pub(super) fn take_now(&self, event: Event<Read<K>>) {
        futures::executor::block_on(self.take(event, "configmaps"));
    }

    /// Takes in an object that a write has returned, so that the next run sees it before the watch
    /// brings it. Ignored when the cache already holds a newer one, and when the watch is past that
    /// version without holding one: an object that is gone must not come back. Subscribers have seen
    /// it when this returns, unless one of them calls this.
    pub fn record_write(&self, object: K) {
        let is_synced = self.is_synced();
        self.change(|state| state.record_write(object, is_synced));
    }

    /// Takes in that a write has removed this object, so that nobody removes it again before the
    /// watch brings the deletion. Ignored when the cache holds another object of that name.
    pub fn record_delete(&self, object: &K) {
        self.change(|state| state.record_delete(object));
    }
}
