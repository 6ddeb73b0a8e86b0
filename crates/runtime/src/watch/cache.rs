//! The objects of a kind as last seen, and those who want to know of changes.

use std::{
    collections::{BTreeMap, HashMap},
    fmt::{self, Debug},
    ops::{Bound, ControlFlow},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use kube::{Resource, runtime::watcher::Event};
use tokio::sync::watch as signal;
use tracing::warn;

use super::{Change, ObjectKey, follow::Read, key_of_meta};
use crate::metrics::WatchState;

/// The objects of a kind as last seen; cheap to clone.
pub struct Cache<K> {
    shared: Arc<Shared<K>>,
}

impl<K> Debug for Cache<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").field("objects", &self.lock().objects.len()).finish_non_exhaustive()
    }
}

impl<K> Clone for Cache<K> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<K> Default for Cache<K> {
    fn default() -> Self {
        let state = State {
            objects: BTreeMap::new(),
            newest: 0,
            forgotten: HashMap::new(),
            listing: None,
            subscribers: Vec::new(),
        };
        Self { shared: Arc::new(Shared { state: Mutex::new(state), synced: signal::Sender::new(false) }) }
    }
}

struct Shared<K> {
    state: Mutex<State<K>>,
    synced: signal::Sender<bool>,
}

type Subscriber<K> = Box<dyn Fn(Change<'_, K>) -> ControlFlow<()> + Send>;

struct State<K> {
    objects: BTreeMap<ObjectKey, Arc<K>>,
    /// The newest resource version the watch has brought.
    newest: u64,
    /// Uids of objects that a write has removed and whose end the watch has not brought yet.
    forgotten: HashMap<ObjectKey, Option<String>>,
    /// What a list in progress has brought so far.
    listing: Option<BTreeMap<ObjectKey, Arc<K>>>,
    subscribers: Vec<Subscriber<K>>,
}

impl<K> Cache<K> {
    fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The object of that key.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<K>> {
        self.lock().objects.get(key).cloned()
    }

    /// The cluster-scoped object of that name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<Arc<K>> {
        self.get(&ObjectKey::new("", name))
    }

    /// All objects, by namespace and name.
    #[must_use]
    pub fn list(&self) -> Vec<Arc<K>> {
        self.lock().objects.values().cloned().collect()
    }

    /// The objects of one namespace, by name.
    #[must_use]
    pub fn in_namespace(&self, namespace: &str) -> Vec<Arc<K>> {
        let first = ObjectKey::new(namespace, "");
        let state = self.lock();
        let from_first = state.objects.range((Bound::Included(first), Bound::Unbounded));
        from_first.take_while(|(key, _)| key.namespace == namespace).map(|(_, object)| object.clone()).collect()
    }

    /// How many objects there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().objects.len()
    }

    /// Whether there are none.
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

    /// Calls `subscriber` for every object that is there, and for every change from now on, until it
    /// breaks. It is called while the cache is locked, so it must be quick and must not read this cache.
    pub fn subscribe(&self, subscriber: impl Fn(Change<'_, K>) -> ControlFlow<()> + Send + 'static) {
        let mut state = self.lock();
        if state.objects.values().all(|object| subscriber(Change::Added(object)).is_continue()) {
            state.subscribers.push(Box::new(subscriber));
        }
    }
}

impl<K: Send + Sync + 'static> Cache<K> {
    /// Answers how the watch stands, and nothing once nobody uses the cache any more.
    pub(super) fn state(&self) -> impl Fn() -> Option<WatchState> + Send + 'static {
        let shared = Arc::downgrade(&self.shared);
        move || {
            let cache = Self { shared: shared.upgrade()? };
            Some(WatchState { synced: cache.is_synced(), objects: cache.len() })
        }
    }
}

impl<K: Resource> Cache<K> {
    /// The newest resource version the watch has brought.
    pub(super) fn newest(&self) -> u64 {
        self.lock().newest
    }

    /// Forgets what it knows of versions: those to come may be older.
    pub(super) fn begin_anew(&self) {
        let mut state = self.lock();
        state.newest = 0;
        state.forgotten.clear();
    }

    pub(super) fn take(&self, event: Event<Read<K>>, plural: &str) {
        let mut state = self.lock();
        match event {
            Event::Apply(read) => state.apply(read, plural),
            Event::Delete(read) => state.delete(&read),
            Event::Init => state.listing = Some(BTreeMap::new()),
            Event::InitApply(read) => state.collect(read, plural),
            Event::InitDone => {
                state.replace();
                drop(state);
                self.shared.synced.send_replace(true);
            }
        }
    }

    /// Takes in an object that a write has returned, so that the next look sees it before the watch
    /// brings it. Ignored when the cache already holds a newer one, and when the watch is past that
    /// version without holding one: an object that is gone must not come back.
    pub fn learn(&self, object: K) {
        let key = ObjectKey::of(&object);
        let mut state = self.lock();
        let news = match state.objects.get(&key) {
            Some(known) => known.meta().uid == object.meta().uid && version(&object) > version(known.as_ref()),
            None => self.is_synced() && version(&object) > state.newest,
        };
        if news {
            state.put(key, object);
        }
    }

    /// Takes in that a write has removed this object, so that nobody removes it again before the
    /// watch tells. Ignored when the cache holds another of that name.
    pub fn forget(&self, object: &K) {
        let key = ObjectKey::of(object);
        let mut state = self.lock();
        if state.objects.get(&key).is_some_and(|known| known.meta().uid == object.meta().uid)
            && let Some(known) = state.objects.remove(&key)
        {
            state.forgotten.insert(key, known.meta().uid.clone());
            state.notify(Change::Deleted(&known));
        }
    }
}

/// Resource versions of one kind grow; that they are numbers is guaranteed since Kubernetes 1.35.
fn version<K: Resource>(object: &K) -> u64 {
    object.meta().resource_version.as_deref().and_then(|version| version.parse().ok()).unwrap_or(0)
}

impl<K: Resource> State<K> {
    fn apply(&mut self, read: Read<K>, plural: &str) {
        if let Some((key, object)) = readable(read, plural) {
            self.newest = self.newest.max(version(&object));
            if self.forgotten.get(&key) != Some(&object.meta().uid) {
                self.put(key, object);
            }
        }
    }

    fn put(&mut self, key: ObjectKey, object: K) {
        let new = Arc::new(object);
        match self.objects.insert(key, new.clone()) {
            // The watch brings again what a write has taught us, or an older state of it.
            Some(old) if version(old.as_ref()) >= version(new.as_ref()) && old.meta().uid == new.meta().uid => {
                self.objects.insert(ObjectKey::of(old.as_ref()), old);
            }
            Some(old) => self.notify(Change::Updated { old: &old, new: &new }),
            None => self.notify(Change::Added(&new)),
        }
    }

    fn delete(&mut self, read: &Read<K>) {
        let key = match read {
            Ok(object) => {
                self.newest = self.newest.max(version(object));
                ObjectKey::of(object)
            }
            Err(invalid) => key_of_meta(&invalid.metadata),
        };
        self.forgotten.remove(&key);
        if let Some(old) = self.objects.remove(&key) {
            self.notify(Change::Deleted(&old));
        }
    }

    fn collect(&mut self, read: Read<K>, plural: &str) {
        if let (Some((key, object)), Some(listing)) = (readable(read, plural), &mut self.listing) {
            listing.insert(key, Arc::new(object));
        }
    }

    fn replace(&mut self) {
        let new = self.listing.take().unwrap_or_default();
        self.forgotten.clear();
        self.newest = new.values().map(|object| version(object.as_ref())).fold(self.newest, u64::max);
        let old = std::mem::replace(&mut self.objects, new.clone());
        for (key, object) in &new {
            match old.get(key) {
                None => self.notify(Change::Added(object)),
                Some(before) if before.meta().resource_version == object.meta().resource_version => {}
                Some(before) => self.notify(Change::Updated { old: before, new: object }),
            }
        }
        for object in old.iter().filter(|(key, _)| !new.contains_key(key)).map(|(_, object)| object) {
            self.notify(Change::Deleted(object));
        }
    }

    fn notify(&mut self, change: Change<'_, K>) {
        self.subscribers.retain(|subscriber| subscriber(change).is_continue());
    }
}

fn readable<K: Resource>(read: Read<K>, plural: &str) -> Option<(ObjectKey, K)> {
    match read {
        Ok(mut object) => {
            object.meta_mut().managed_fields = None;
            Some((ObjectKey::of(&object), object))
        }
        Err(invalid) => {
            let key = key_of_meta(&invalid.metadata);
            warn!(kind = plural, object = %key, error = %invalid.error, "cannot read this object, leaving it out");
            None
        }
    }
}
