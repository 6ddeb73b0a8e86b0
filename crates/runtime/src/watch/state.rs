//! What a cache knows, and what a change of it means for those who subscribed.

use std::{
    collections::{BTreeMap, HashMap},
    ops::{Bound, ControlFlow},
    sync::Arc,
};

use kube::Resource;
use tracing::warn;

use super::{Change, ObjectKey, Watchable, follow::Read, key_of_meta, packed::Packed};

type Subscriber<K> = Box<dyn Fn(Change<'_, K>) -> ControlFlow<()> + Send>;
type Objects<K> = BTreeMap<ObjectKey, Packed<K>>;

pub(super) struct State<K> {
    objects: Objects<K>,
    /// The newest resource version the watch has brought.
    newest: u64,
    /// Uids of objects that a write has removed and whose end the watch has not brought yet.
    forgotten: HashMap<ObjectKey, Option<String>>,
    /// What a list in progress has brought so far.
    listing: Option<Objects<K>>,
    subscribers: Vec<Subscriber<K>>,
}

impl<K> Default for State<K> {
    fn default() -> Self {
        Self { objects: BTreeMap::new(), newest: 0, forgotten: HashMap::new(), listing: None, subscribers: Vec::new() }
    }
}

impl<K> State<K> {
    pub(super) fn get(&self, key: &ObjectKey) -> Option<Packed<K>> {
        self.objects.get(key).cloned()
    }

    pub(super) fn all(&self) -> Vec<Packed<K>> {
        self.objects.values().cloned().collect()
    }

    pub(super) fn within(&self, namespace: &str) -> Vec<Packed<K>> {
        let from_first = self.objects.range((Bound::Included(ObjectKey::new(namespace, "")), Bound::Unbounded));
        from_first.take_while(|(key, _)| key.namespace == namespace).map(|(_, packed)| packed.clone()).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }

    pub(super) fn newest(&self) -> u64 {
        self.newest
    }

    pub(super) fn begin_anew(&mut self) {
        self.newest = 0;
        self.forgotten.clear();
    }

    pub(super) fn begin_list(&mut self) {
        self.listing = Some(BTreeMap::new());
    }
}

impl<K: Watchable> State<K> {
    pub(super) fn subscribe(&mut self, subscriber: Subscriber<K>) {
        let mut objects = self.objects.values().filter_map(Packed::open);
        if objects.all(|object| subscriber(Change::Added(&object)).is_continue()) {
            self.subscribers.push(subscriber);
        }
    }

    pub(super) fn apply(&mut self, read: Read<K>, plural: &str) {
        if let Some((key, object)) = readable(read, plural) {
            self.newest = self.newest.max(version(&object));
            if self.forgotten.get(&key) != Some(&object.meta().uid) {
                self.put(key, object);
            }
        }
    }

    pub(super) fn delete(&mut self, read: &Read<K>) {
        let key = match read {
            Ok(object) => {
                self.newest = self.newest.max(version(object));
                ObjectKey::of(object)
            }
            Err(invalid) => key_of_meta(&invalid.metadata),
        };
        self.forgotten.remove(&key);
        self.remove(&key);
    }

    pub(super) fn learn(&mut self, object: K, synced: bool) {
        let key = ObjectKey::of(&object);
        let news = match self.open(&key) {
            Some(known) => known.meta().uid == object.meta().uid,
            None => synced && version(&object) > self.newest,
        };
        if news {
            self.put(key, object);
        }
    }

    pub(super) fn forget(&mut self, object: &K) {
        let key = ObjectKey::of(object);
        let uid = &object.meta().uid;
        if self.open(&key).is_some_and(|known| known.meta().uid == *uid) {
            self.remove(&key);
            self.forgotten.insert(key, uid.clone());
        }
    }

    pub(super) fn collect(&mut self, read: Read<K>, plural: &str) {
        let Some((key, mut object)) = readable(read, plural) else { return };
        self.newest = self.newest.max(version(&object));
        if let (Some(packed), Some(listing)) = (pack(&key, &mut object), &mut self.listing) {
            listing.insert(key, packed);
        }
    }

    /// What the list has brought takes the place of what was known, and the difference is told.
    pub(super) fn end_list(&mut self) {
        self.forgotten.clear();
        let new = self.listing.take().unwrap_or_default();
        let mut old = std::mem::replace(&mut self.objects, new);
        for (key, packed) in &self.objects {
            let before = old.remove(key).and_then(|packed| packed.open());
            if let Some(now) = packed.open() {
                tell_difference(&mut self.subscribers, before, &now);
            }
        }
        for gone in old.values().filter_map(Packed::open) {
            tell(&mut self.subscribers, Change::Deleted(&gone));
        }
    }

    fn open(&self, key: &ObjectKey) -> Option<Arc<K>> {
        self.objects.get(key)?.open()
    }

    fn put(&mut self, key: ObjectKey, mut object: K) {
        let old = self.open(&key);
        // The watch brings again what a write has taught us, or an older state of it.
        if old.as_ref().is_some_and(|old| old.meta().uid == object.meta().uid && version(&**old) >= version(&object)) {
            return;
        }
        let Some(packed) = pack(&key, &mut object) else { return };
        self.objects.insert(key, packed);
        tell_difference(&mut self.subscribers, old, &Arc::new(object));
    }

    fn remove(&mut self, key: &ObjectKey) {
        if let Some(old) = self.objects.remove(key).and_then(|packed| packed.open()) {
            tell(&mut self.subscribers, Change::Deleted(&old));
        }
    }
}

fn tell_difference<K: Resource>(subscribers: &mut Vec<Subscriber<K>>, old: Option<Arc<K>>, new: &Arc<K>) {
    match old {
        None => tell(subscribers, Change::Added(new)),
        Some(old) if old.meta().resource_version == new.meta().resource_version => {}
        Some(old) => tell(subscribers, Change::Updated { old: &old, new }),
    }
}

fn tell<K>(subscribers: &mut Vec<Subscriber<K>>, change: Change<'_, K>) {
    subscribers.retain(|subscriber| subscriber(change).is_continue());
}

/// Resource versions of one kind grow; that they are numbers is guaranteed since Kubernetes 1.35.
fn version<K: Resource>(object: &K) -> u64 {
    object.meta().resource_version.as_deref().and_then(|version| version.parse().ok()).unwrap_or(0)
}

/// The object of an event.
fn readable<K: Watchable>(read: Read<K>, plural: &str) -> Option<(ObjectKey, K)> {
    match read {
        Ok(object) => Some((ObjectKey::of(&object), object)),
        Err(invalid) => {
            let key = key_of_meta(&invalid.metadata);
            warn!(kind = plural, object = %key, error = %invalid.error, "cannot read this object, leaving it out");
            None
        }
    }
}

/// The object as it is kept, without what nobody reads.
fn pack<K: Watchable>(key: &ObjectKey, object: &mut K) -> Option<Packed<K>> {
    object.meta_mut().managed_fields = None;
    let packed = Packed::new(object);
    packed.inspect_err(|error| warn!(object = %key, %error, "cannot keep this object, leaving it out")).ok()
}
