//! The objects of a cache, and what an event, a list or a write changes in it.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    ops::Bound,
};

use kube::{core::error_boundary::InvalidObject, runtime::watcher::Event};
use tracing::{error, warn};

use super::{
    ObjectKey, Watchable,
    delivery::{Notice, Subscriber},
    key_of_meta,
    packed::{Packed, version},
    raw::Read,
};

type Objects<K> = BTreeMap<ObjectKey, Packed<K>>;
type Uid = Option<String>;

pub(super) struct State<K> {
    objects: Objects<K>,
    /// The newest resource version the watch has brought.
    newest: u64,
    /// Uids of objects that we have deleted, and whose deletion the watch has not brought yet.
    deleted_by_us: HashMap<ObjectKey, Uid>,
    listing: Option<Listing<K>>,
    /// Whether the watch continues from a complete list.
    watching: bool,
    /// Objects that exist and could never be parsed.
    left_out: BTreeSet<ObjectKey>,
    /// What has changed and was not handed out yet.
    notices: VecDeque<Notice<K>>,
}

/// A list in progress.
struct Listing<K> {
    /// What it has brought so far.
    objects: Objects<K>,
    left_out: BTreeSet<ObjectKey>,
    /// What was written since it began, and whether that created it: the list may have been read before or after.
    written: HashMap<ObjectKey, bool>,
}

impl<K> Default for State<K> {
    fn default() -> Self {
        Self {
            objects: BTreeMap::new(),
            newest: 0,
            deleted_by_us: HashMap::new(),
            listing: None,
            watching: false,
            left_out: BTreeSet::new(),
            notices: VecDeque::new(),
        }
    }
}

impl<K> State<K> {
    pub(super) fn get(&self, key: &ObjectKey) -> Option<Packed<K>> {
        self.objects.get(key).cloned()
    }

    pub(super) fn all(&self) -> Vec<Packed<K>> {
        self.objects.values().cloned().collect()
    }

    pub(super) fn keys(&self) -> Vec<ObjectKey> {
        self.objects.keys().cloned().collect()
    }

    pub(super) fn within(&self, namespace: &str) -> Vec<Packed<K>> {
        let from_first = self.objects.range((Bound::Included(ObjectKey::new(namespace, "")), Bound::Unbounded));
        from_first.take_while(|(key, _)| key.namespace == namespace).map(|(_, packed)| packed.clone()).collect()
    }

    pub(super) fn left_out_in(&self, namespace: &str) -> Option<&ObjectKey> {
        let mut from_first = self.left_out.range(ObjectKey::new(namespace, "")..);
        from_first.next().filter(|key| key.namespace == namespace)
    }

    pub(super) fn subscribe(&mut self, subscriber: Subscriber<K>) {
        self.notices.push_back(Notice::Subscribed(subscriber, self.all()));
    }

    /// The next change to hand out.
    pub(super) fn next_notice(&mut self) -> Option<Notice<K>> {
        self.notices.pop_front()
    }

    /// Whether every change is handed out, or about to be.
    pub(super) fn has_no_notices(&self) -> bool {
        self.notices.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }

    pub(super) fn newest(&self) -> u64 {
        self.newest
    }

    /// The object with the highest resource version, unless versions are not numbers.
    pub(super) fn newest_object(&self) -> Option<(ObjectKey, Packed<K>)> {
        let numbered = self.objects.iter().filter(|(_, packed)| packed.version() > 0);
        let (key, packed) = numbered.max_by_key(|(_, packed)| packed.version())?;
        Some((key.clone(), packed.clone()))
    }

    pub(super) fn is_watching(&self) -> bool {
        self.watching
    }

    pub(super) fn lost_watch(&mut self) {
        self.watching = false;
    }

    pub(super) fn relist(&mut self) {
        self.lost_watch();
        self.newest = 0;
        self.deleted_by_us.clear();
    }

    /// What was deleted before a list began is not in it.
    fn begin_list(&mut self) {
        self.deleted_by_us.clear();
        self.listing = Some(Listing { objects: BTreeMap::new(), left_out: BTreeSet::new(), written: HashMap::new() });
    }
}

impl<K: Watchable> State<K> {
    pub(super) fn take(&mut self, event: Event<Read<K>>, plural: &str) {
        match event {
            Event::Apply(read) => self.apply(read, plural),
            Event::Delete(read) => self.delete(&read),
            Event::Init => self.begin_list(),
            Event::InitApply(read) => self.collect(read, plural),
            Event::InitDone => self.end_list(),
        }
    }

    fn apply(&mut self, read: Read<K>, plural: &str) {
        match read {
            Ok(object) => {
                let key = ObjectKey::of(&object);
                self.saw(&object);
                if self.deleted_by_us.get(&key) != Some(&object.meta().uid) {
                    self.put(key, object);
                }
            }
            Err(invalid) => {
                if let (key, None) = self.last_readable(&invalid, plural) {
                    self.left_out.insert(key);
                }
            }
        }
    }

    fn delete(&mut self, read: &Read<K>) {
        let meta = match read {
            Ok(object) => {
                self.saw(object);
                object.meta()
            }
            Err(invalid) => &invalid.metadata,
        };
        let key = key_of_meta(meta);
        self.left_out.remove(&key);
        if self.deleted_by_us.get(&key) == Some(&meta.uid) {
            self.deleted_by_us.remove(&key);
        }
        self.remove(&key, &meta.uid);
    }

    pub(super) fn record_write(&mut self, object: K, synced: bool) {
        let key = ObjectKey::of(&object);
        let known = self.objects.get(&key);
        let was_known = known.is_some();
        if (synced || was_known) && self.is_news(known, object.meta().uid.as_deref(), version(&object)) {
            if let Some(listing) = &mut self.listing {
                listing.written.entry(key.clone()).or_insert(!was_known);
            }
            self.put(key, object);
        }
    }

    pub(super) fn record_delete(&mut self, object: &K) {
        let (key, uid) = (ObjectKey::of(object), &object.meta().uid);
        if self.remove(&key, uid) {
            self.deleted_by_us.insert(key, uid.clone());
        }
    }

    fn collect(&mut self, read: Read<K>, plural: &str) {
        let (key, listed) = match read {
            Ok(mut object) => {
                self.saw(&object);
                let key = ObjectKey::of(&object);
                let packed = pack(&key, &mut object);
                (key, packed)
            }
            Err(invalid) => self.last_readable(&invalid, plural),
        };
        match (listed, &mut self.listing) {
            (Some(packed), Some(listing)) => _ = listing.objects.insert(key, packed),
            (None, Some(listing)) => _ = listing.left_out.insert(key),
            (_, None) => {}
        }
    }

    /// Replaces what was known by what the list has brought, and reports the difference to subscribers.
    fn end_list(&mut self) {
        let Some(mut listing) = self.listing.take() else { return };
        self.watching = true;
        self.left_out = std::mem::take(&mut listing.left_out);
        let new = self.with_later_writes(listing);
        let mut old = std::mem::replace(&mut self.objects, new);
        for (key, new) in &self.objects {
            self.notices.extend(difference(old.remove(key), new));
        }
        self.notices.extend(old.into_values().map(Notice::Deleted));
    }

    /// A list without what was removed, and with what was written, after it was taken.
    fn with_later_writes(&mut self, Listing { mut objects, written, .. }: Listing<K>) -> Objects<K> {
        self.deleted_by_us.retain(|key, uid| {
            let is_listed = objects.get(key).is_some_and(|listed| listed.uid() == uid.as_deref());
            if is_listed {
                objects.remove(key);
            }
            is_listed
        });
        for (key, is_creation) in written {
            let Some(packed) = self.objects.get(&key) else { continue };
            let listed = objects.get(&key);
            // An object that existed before the list and is not in it was deleted, whatever was written to it meanwhile.
            if (listed.is_some() || is_creation) && self.is_news(listed, packed.uid(), number(packed)) {
                objects.insert(key, packed.clone());
            }
        }
        objects
    }

    /// Whether what a write has returned is newer than what is known: an object that is gone must not come back. Where
    /// versions are not numbers, whatever comes later counts.
    fn is_news(&self, known: Option<&Packed<K>>, uid: Option<&str>, version: Option<u64>) -> bool {
        match known {
            Some(known) => {
                let is_as_new = number(known).zip(version).is_some_and(|(known, version)| known >= version);
                known.uid() == uid && !is_as_new
            }
            None => version > Some(self.newest),
        }
    }

    fn saw(&mut self, object: &K) {
        self.newest = self.newest.max(version(object).unwrap_or_default());
    }

    /// What is kept of an object that cannot be read: the object as it was last read. Without it, it would look deleted.
    fn last_readable(&self, invalid: &InvalidObject, plural: &str) -> (ObjectKey, Option<Packed<K>>) {
        let key = key_of_meta(&invalid.metadata);
        let known = self.get(&key).filter(|known| known.uid() == invalid.metadata.uid.as_deref());
        let instead = if known.is_some() { "keeping it as it was before" } else { "leaving it out" };
        error!(kind = plural, object = %key, error = %invalid.error, "cannot read this object, {instead}");
        (key, known)
    }

    fn put(&mut self, key: ObjectKey, mut object: K) {
        let Some(packed) = pack(&key, &mut object) else { return };
        // The watch brings again what a write has returned, or an older state of it.
        let is_older = |old: &Packed<K>| old.uid() == packed.uid() && number(old) > number(&packed);
        if number(&packed).is_some() && self.objects.get(&key).is_some_and(is_older) {
            return;
        }
        self.left_out.remove(&key);
        let old = self.objects.insert(key, packed.clone());
        self.notices.extend(difference(old, &packed));
    }

    /// Removes the object of that key, unless it is another one of that name. Returns whether it did.
    fn remove(&mut self, key: &ObjectKey, uid: &Uid) -> bool {
        let is_it = self.objects.get(key).is_some_and(|known| known.uid() == uid.as_deref());
        let removed = is_it.then(|| self.objects.remove(key)).flatten();
        self.notices.extend(removed.map(Notice::Deleted));
        is_it
    }
}

fn difference<K>(old: Option<Packed<K>>, new: &Packed<K>) -> Option<Notice<K>> {
    match old {
        None => Some(Notice::Added(new.clone())),
        Some(old) if old.is_same(new) => None,
        Some(old) => Some(Notice::Updated { old, new: new.clone() }),
    }
}

/// Its resource version, if that is a number.
fn number<K>(packed: &Packed<K>) -> Option<u64> {
    Some(packed.version()).filter(|version| *version > 0)
}

/// The object as it is kept, without what nobody reads.
fn pack<K: Watchable>(key: &ObjectKey, object: &mut K) -> Option<Packed<K>> {
    let packed = Packed::new(object);
    packed.inspect_err(|error| warn!(object = %key, %error, "cannot keep this object, leaving it out")).ok()
}
