//! The objects of a cluster, and their latest changes.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use serde_json::{Value, json};

/// How many changes are kept for watches that start in the past.
const LOG_LENGTH: usize = 256;

/// The key of an object; sorts by kind, namespace, name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    /// The index of the kind among those that are served.
    pub(super) kind: usize,
    pub(super) namespace: String,
    pub(super) name: String,
}

/// One change.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) version: u64,
    pub(super) kind: usize,
    /// Before; `None` if it is new.
    pub(super) old: Option<Arc<Value>>,
    /// After; `None` if it was deleted.
    pub(super) new: Option<Arc<Value>>,
}

/// All objects of a cluster.
#[derive(Debug, Default)]
pub(super) struct State {
    /// Counts all writes, as etcd does.
    version: u64,
    objects: BTreeMap<Key, Arc<Value>>,
    log: VecDeque<Event>,
    /// The version of the newest change that is no longer in the log.
    forgotten: u64,
}

impl State {
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    pub(super) fn get(&self, key: &Key) -> Option<Arc<Value>> {
        self.objects.get(key).cloned()
    }

    /// The objects of a kind in one namespace, or in all when none is given.
    pub(super) fn list<'a>(
        &'a self,
        kind: usize,
        namespace: &'a str,
    ) -> impl Iterator<Item = (&'a Key, &'a Arc<Value>)> + 'a {
        let first = Key { kind, namespace: namespace.into(), name: String::new() };
        let from_first = self.objects.range((Bound::Included(first), Bound::Unbounded));
        from_first.take_while(move |(key, _)| key.kind == kind && (namespace.is_empty() || key.namespace == namespace))
    }

    /// The keys of everything in a namespace.
    pub(super) fn within(&self, namespace: &str) -> Vec<Key> {
        self.objects.keys().filter(|key| key.namespace == namespace).cloned().collect()
    }

    /// Stores an object under the next version, and records the event for watches.
    pub(super) fn put(&mut self, key: Key, mut object: Value) -> Arc<Value> {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let new = Arc::new(object);
        let kind = key.kind;
        let old = self.objects.insert(key, new.clone());
        self.record(kind, old, Some(new.clone()));
        new
    }

    /// Removes an object, and records the event for watches; its last state has the version of the deletion.
    pub(super) fn remove(&mut self, key: &Key) -> Option<Arc<Value>> {
        let old = self.objects.remove(key)?;
        self.version += 1;
        let mut last = Value::clone(&old);
        last["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let last = Arc::new(last);
        self.record(key.kind, Some(last.clone()), None);
        Some(last)
    }

    fn record(&mut self, kind: usize, old: Option<Arc<Value>>, new: Option<Arc<Value>>) {
        if self.log.len() == LOG_LENGTH
            && let Some(oldest) = self.log.pop_front()
        {
            self.forgotten = oldest.version;
        }
        self.log.push_back(Event { version: self.version, kind, old, new });
    }

    /// The changes after a version; `None` if they are no longer in the log.
    pub(super) fn since(&self, version: u64) -> Option<impl Iterator<Item = &Event>> {
        let first = self.log.partition_point(|event| event.version <= version);
        (version >= self.forgotten).then(|| self.log.range(first..))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        Key { kind: 0, namespace: String::new(), name: name.into() }
    }

    #[test]
    fn events_are_sent_as_long_as_they_are_in_the_log() {
        let mut state = State::default();
        for _ in 0..LOG_LENGTH {
            state.put(key("a"), json!({"metadata": {}}));
        }
        assert_eq!(state.since(0).unwrap().count(), LOG_LENGTH);
        assert_eq!(state.since(state.version() - 2).unwrap().count(), 2);
        state.remove(&key("a"));
        assert!(state.since(0).is_none());
        assert_eq!(state.since(1).unwrap().count(), LOG_LENGTH);
    }
}
