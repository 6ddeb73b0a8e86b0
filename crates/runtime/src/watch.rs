//! One watch per kind, shared by every controller that needs it.
//!
//! [`Watches`] belongs to one client identity. Asking it twice for the same kind and scope gives the
//! same [`Cache`]: one watch on the wire, one copy in memory. A controller subscribes whenever it
//! likes: a late subscriber first sees every object that is already there.
//!
//! Guarantees: a subscriber sees every change once and in order, with the object before and after
//! it; after a gap in the watch the difference is worked out and reported like any other change. An
//! object that cannot be read is logged and left out, and never stops the watch.

use std::{
    any::{Any, TypeId},
    collections::{BTreeMap, HashMap},
    fmt::{self, Debug, Display},
    ops::{Bound, ControlFlow},
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::{Stream, StreamExt as _, TryStreamExt as _};
use k8s_openapi::NamespaceResourceScope;
use kube::{
    Api, Client, Resource,
    api::ObjectMeta,
    core::{DeserializeGuard, PartialObjectMeta, error_boundary::InvalidObject},
    runtime::{
        WatchStreamExt as _,
        utils::Backoff,
        watcher::{self, Event},
    },
};
use serde::de::DeserializeOwned;
use tokio::{sync::watch as signal, time::Instant};
use tracing::{debug, warn};

use crate::{context::Context, error::chain};

/// The waits between two tries of a watch that fails.
const RETRY_MIN: Duration = Duration::from_millis(200);
const RETRY_MAX: Duration = Duration::from_secs(5);
/// So many failures in a row are worth a warning.
const LOUD: usize = 4;
/// A watch that held this long starts again with the shortest wait.
const RETRY_RESET: Duration = Duration::from_secs(60);

/// Namespace and name of an object; sorts by namespace first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey {
    /// Empty for cluster-scoped objects.
    pub namespace: String,
    /// The object's name.
    pub name: String,
}

impl ObjectKey {
    /// The key of a namespaced object.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    /// The key of an object.
    pub fn of<K: Resource>(object: &K) -> Self {
        key_of_meta(object.meta())
    }
}

impl Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace.as_str() {
            "" => f.write_str(&self.name),
            namespace => write!(f, "{namespace}/{}", self.name),
        }
    }
}

/// Which objects of a kind to watch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Scope {
    /// Only objects that this label selector matches.
    pub labels: Option<String>,
    /// Only objects that this field selector matches, such as `metadata.name=a`.
    pub fields: Option<String>,
}

impl Scope {
    /// Every object of the kind.
    #[must_use]
    pub fn all() -> Self {
        Self::default()
    }

    /// Only those that the label selector matches.
    pub fn labelled(selector: impl Into<String>) -> Self {
        Self { labels: Some(selector.into()), ..Self::default() }
    }

    /// Only the object of that name.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self { fields: Some(format!("metadata.name={name}")), ..Self::default() }
    }
}

/// A kind that can be watched. Implemented for all that qualify.
pub trait Watchable: Resource<DynamicType = ()> + DeserializeOwned + Clone + Debug + Send + Sync + 'static {}
impl<K: Resource<DynamicType = ()> + DeserializeOwned + Clone + Debug + Send + Sync + 'static> Watchable for K {}

/// What happened to an object.
#[derive(Debug)]
pub enum Change<'a, K> {
    /// It is new, or was there when the subscriber came.
    Added(&'a Arc<K>),
    /// It changed.
    Updated {
        /// As it was.
        old: &'a Arc<K>,
        /// As it is.
        new: &'a Arc<K>,
    },
    /// It is gone; this is how it was last seen.
    Deleted(&'a Arc<K>),
}

impl<K> Clone for Change<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K> Copy for Change<'_, K> {}

impl<'a, K> Change<'a, K> {
    /// The object as it is, or as it was last seen.
    #[must_use]
    pub fn object(self) -> &'a Arc<K> {
        match self {
            Self::Added(object) | Self::Updated { new: object, .. } | Self::Deleted(object) => object,
        }
    }
}

/// Kind, namespace and scope of a cache.
type CacheKey = (TypeId, Option<String>, Scope);

/// The watches of one client identity.
#[derive(Clone)]
pub struct Watches {
    client: Client,
    context: Context,
    caches: Arc<Mutex<HashMap<CacheKey, Box<dyn Any + Send>>>>,
}

impl Debug for Watches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watches").finish_non_exhaustive()
    }
}

impl Watches {
    /// Watches made with `client`, which end with `context`.
    #[must_use]
    pub fn new(client: Client, context: Context) -> Self {
        Self { client, context, caches: Arc::default() }
    }

    /// The client they are made with.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The cache of a kind in all namespaces; started on the first call.
    #[must_use]
    pub fn all<K: Watchable>(&self, scope: Scope) -> Cache<K> {
        self.cache(None, scope, Api::all)
    }

    /// The cache of a kind in one namespace; started on the first call.
    #[must_use]
    pub fn within<K>(&self, namespace: &str, scope: Scope) -> Cache<K>
    where
        K: Watchable + Resource<Scope = NamespaceResourceScope>,
    {
        self.cache(Some(namespace), scope, |client| Api::namespaced(client, namespace))
    }

    /// The cache of the metadata of a kind in all namespaces, for kinds whose contents nobody reads.
    #[must_use]
    pub fn metadata<K: Watchable>(&self, scope: Scope) -> Cache<PartialObjectMeta<K>> {
        self.entry(None, scope, |cache, plural, config| {
            let api = Api::<PartialObjectMeta<K>>::all(self.client.clone());
            let events = watcher::watcher(api, config).map_ok(|event| map_event(map_event(event, lean), Ok));
            self.follow(events, cache, plural);
        })
    }

    fn cache<K: Watchable>(
        &self,
        namespace: Option<&str>,
        scope: Scope,
        api: impl FnOnce(Client) -> Api<DeserializeGuard<K>>,
    ) -> Cache<K> {
        self.entry(namespace, scope, |cache, plural, config| {
            let events = watcher::watcher(api(self.client.clone()), config);
            let events =
                events.map_ok(|event| map_event(event, |guard: DeserializeGuard<K>| guard.0.map_err(Box::new)));
            self.follow(events, cache, plural);
        })
    }

    fn entry<K: Watchable>(
        &self,
        namespace: Option<&str>,
        scope: Scope,
        start: impl FnOnce(Cache<K>, String, watcher::Config),
    ) -> Cache<K> {
        let mut caches = self.caches.lock().unwrap_or_else(PoisonError::into_inner);
        let mut config = watcher::Config::default();
        config.label_selector.clone_from(&scope.labels);
        config.field_selector.clone_from(&scope.fields);
        let key = (TypeId::of::<K>(), namespace.map(str::to_owned), scope);
        let entry = caches.entry(key).or_insert_with(|| {
            let cache = Cache::<K>::default();
            start(cache.clone(), K::plural(&()).into_owned(), config);
            Box::new(cache)
        });
        // The type is part of the map's key, so the box holds nothing else.
        entry.downcast_ref::<Cache<K>>().cloned().unwrap_or_default()
    }

    fn follow<K: Watchable>(
        &self,
        events: impl Stream<Item = watcher::Result<Event<Read<K>>>> + Send + 'static,
        cache: Cache<K>,
        plural: String,
    ) {
        let ready = self.context.health().awaiting(format!("watch of {plural}"));
        let failing = self.context.metrics().watch_failures(&plural);
        self.context.spawn(async move {
            let mut ready = Some(ready);
            let mut in_a_row = 0;
            let mut events = pin!(events.backoff(Retry::default()));
            while let Some(event) = events.next().await {
                match event {
                    Ok(event) => {
                        in_a_row = 0;
                        cache.take(event, &plural);
                    }
                    Err(error) => {
                        in_a_row += 1;
                        failing.inc();
                        report_failure(&plural, &error, in_a_row);
                    }
                }
                if cache.is_synced() {
                    ready.take();
                }
            }
        });
    }
}

/// An object as read, or why it could not be.
type Read<K> = Result<K, Box<InvalidObject>>;

fn map_event<A, B>(event: Event<A>, map: impl Fn(A) -> B) -> Event<B> {
    match event {
        Event::Apply(object) => Event::Apply(map(object)),
        Event::Delete(object) => Event::Delete(map(object)),
        Event::InitApply(object) => Event::InitApply(map(object)),
        Event::Init => Event::Init,
        Event::InitDone => Event::InitDone,
    }
}

/// Says that a watch failed: loudly once it fails several times in a row, since rights that were just
/// granted and kinds that were just installed take a moment.
fn report_failure(plural: &str, error: &watcher::Error, in_a_row: usize) {
    let is_unknown_kind =
        matches!(error, watcher::Error::InitialListFailed(kube::Error::Api(status)) if status.code == 404);
    let hint = if is_unknown_kind { ": are the CRDs installed?" } else { "" };
    let text = chain(error);
    if in_a_row < LOUD {
        debug!(kind = plural, error = %text, "watch failed, trying again{hint}");
    } else {
        warn!(kind = plural, error = %text, "watch keeps failing, trying again{hint}");
    }
}

/// Waits between two tries of a watch: doubling, with jitter, and short again after it held a while.
#[derive(Debug, Default)]
struct Retry {
    failures: u32,
    last: Option<Instant>,
}

impl Iterator for Retry {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let now = Instant::now();
        if self.last.is_some_and(|last| now - last > RETRY_RESET) {
            self.failures = 0;
        }
        self.last = Some(now);
        let longest = RETRY_MIN.saturating_mul(1 << self.failures.min(10)).min(RETRY_MAX);
        self.failures += 1;
        Some(longest.mul_f64(rand::random_range(0.5..=1.0)))
    }
}

impl Backoff for Retry {
    fn reset(&mut self) {
        self.failures = 0;
    }
}

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

impl<K: Resource> Cache<K> {
    fn take(&self, event: Event<Read<K>>, plural: &str) {
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

/// The annotation in which kubectl keeps the whole object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Metadata without the copy of the contents that kubectl puts there.
fn lean<K>(mut object: PartialObjectMeta<K>) -> PartialObjectMeta<K> {
    if let Some(annotations) = &mut object.metadata.annotations {
        annotations.remove(LAST_APPLIED);
    }
    object
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

fn key_of_meta(meta: &ObjectMeta) -> ObjectKey {
    ObjectKey::new(meta.namespace.clone().unwrap_or_default(), meta.name.clone().unwrap_or_default())
}

#[cfg(test)]
mod tests;
