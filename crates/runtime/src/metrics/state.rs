//! Gauges that are read when somebody asks for them.

use std::{
    collections::BTreeMap,
    fmt::Debug,
    sync::{Mutex, PoisonError},
};

use prometheus_client::{
    metrics::{family::Family, gauge::Gauge},
    registry::Registry,
};

use super::{OfCondition, OfController, OfKind, reference, register};

/// Reads a value; nothing when what it belongs to has ended.
type Read<T> = Box<dyn Fn() -> Option<T> + Send>;

/// The state of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WatchState {
    /// Whether its first list is complete.
    pub(crate) synced: bool,
    /// How many objects it holds.
    pub(crate) objects: usize,
}

/// Depth of queues, state of watches, objects with a condition that is false.
pub(super) struct Gauges {
    depth: Family<OfController, Gauge>,
    synced: Family<OfKind, Gauge>,
    objects: Family<OfKind, Gauge>,
    conditions: Family<OfCondition, Gauge>,
    readers: Mutex<Readers>,
}

#[derive(Default)]
struct Readers {
    queues: Vec<(&'static str, Read<usize>)>,
    watches: Vec<(String, Read<WatchState>)>,
    conditions: Vec<(OfCondition, Read<usize>)>,
}

impl Debug for Gauges {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gauges").finish_non_exhaustive()
    }
}

impl Gauges {
    pub(super) fn new(registry: &mut Registry) -> Self {
        Self {
            depth: register(registry, &reference::QUEUE_DEPTH, Family::default()),
            synced: register(registry, &reference::WATCH_SYNCED, Family::default()),
            objects: register(registry, &reference::WATCH_OBJECTS, Family::default()),
            conditions: register(registry, &reference::CONDITION_FALSE, Family::default()),
            readers: Mutex::default(),
        }
    }

    pub(super) fn add_queue(&self, controller: &'static str, depth: Read<usize>) {
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        readers.queues.retain(|(_, depth)| depth().is_some());
        readers.queues.push((controller, depth));
    }

    pub(super) fn add_watch(&self, kind: &str, state: Read<WatchState>) {
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        readers.watches.retain(|(_, state)| state().is_some());
        readers.watches.push((kind.to_owned(), state));
    }

    pub(super) fn add_condition(&self, condition: OfCondition, objects: Read<usize>) {
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        readers.conditions.retain(|(_, objects)| objects().is_some());
        readers.conditions.push((condition, objects));
    }

    pub(super) fn refresh(&self) {
        let readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        self.depth.clear();
        for (controller, depth) in readers.by_controller() {
            self.depth.get_or_create(&OfController { controller }).set(count(depth));
        }
        self.synced.clear();
        self.objects.clear();
        for (kind, WatchState { synced, objects }) in readers.by_kind() {
            let kind = OfKind { kind };
            self.synced.get_or_create(&kind).set(synced.into());
            self.objects.get_or_create(&kind).set(count(objects));
        }
        self.conditions.clear();
        for (condition, objects) in readers.conditions.iter().filter_map(|(condition, read)| Some((condition, read()?)))
        {
            self.conditions.get_or_create(condition).set(count(objects));
        }
    }
}

impl Readers {
    /// A controller may run several times, as one for each add-on.
    fn by_controller(&self) -> BTreeMap<&'static str, usize> {
        let mut controllers = BTreeMap::new();
        for (controller, depth) in self.queues.iter().filter_map(|(controller, read)| Some((*controller, read()?))) {
            *controllers.entry(controller).or_default() += depth;
        }
        controllers
    }

    /// Two watches of one kind, of other scopes or at other servers, count as one.
    fn by_kind(&self) -> BTreeMap<String, WatchState> {
        let mut kinds = BTreeMap::<String, WatchState>::new();
        for (kind, state) in self.watches.iter().filter_map(|(kind, read)| Some((kind, read()?))) {
            let all = kinds.entry(kind.clone()).or_insert(WatchState { synced: true, objects: 0 });
            all.synced &= state.synced;
            all.objects += state.objects;
        }
        kinds
    }
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
