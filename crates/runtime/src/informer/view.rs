//! A few fields of every object of a kind, without parsing.

use std::{
    collections::BTreeMap,
    fmt::{self, Debug},
    ops::ControlFlow,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{Cache, Change, ObjectKey, Watchable};

/// A small value for each object of a cache, kept up to date with it. For controllers that need all objects of a kind at
/// once, or a few fields of many: the cache itself parses an object each time it is read. Cheap to clone.
pub struct View<T> {
    entries: Arc<Mutex<Entries<T>>>,
}

type Entries<T> = BTreeMap<ObjectKey, T>;

impl<T> Clone for View<T> {
    fn clone(&self) -> Self {
        Self { entries: self.entries.clone() }
    }
}

impl<T> Debug for View<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View").field("entries", &lock(&self.entries).len()).finish_non_exhaustive()
    }
}

impl<T> View<T> {
    /// Reads the values, by key. The view is locked meanwhile: `read` must be quick and must not change a cache.
    pub fn read<R>(&self, read: impl FnOnce(&BTreeMap<ObjectKey, T>) -> R) -> R {
        read(&lock(&self.entries))
    }

    /// The value of one object.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<T>
    where
        T: Clone,
    {
        lock(&self.entries).get(key).cloned()
    }
}

impl<T: Send + 'static> View<T> {
    /// Counts the values; `None` when the view is dropped.
    pub fn counter(&self) -> impl Fn() -> Option<usize> + Send + 'static {
        let entries = Arc::downgrade(&self.entries);
        move || entries.upgrade().map(|entries| lock(&entries).len())
    }
}

impl<K: Watchable> Cache<K> {
    /// Keeps what `value` returns for each object, as long as the view or a clone of it exists. Objects for which it returns
    /// `None` are left out. Those who subscribe to the cache later find every change in the view already.
    pub fn view<T: Send + 'static>(&self, value: impl Fn(&K) -> Option<T> + Send + 'static) -> View<T> {
        let entries = Arc::default();
        let weak = Arc::downgrade(&entries);
        self.subscribe(move |change| {
            let Some(entries) = weak.upgrade() else { return ControlFlow::Break(()) };
            take(&mut lock(&entries), change, &value);
            ControlFlow::Continue(())
        });
        View { entries }
    }
}

fn take<K: Watchable, T>(entries: &mut Entries<T>, change: Change<'_, K>, value: &impl Fn(&K) -> Option<T>) {
    let object = change.object().as_ref();
    let value = if matches!(change, Change::Deleted(_)) { None } else { value(object) };
    match value {
        Some(value) => entries.insert(ObjectKey::of(object), value),
        None => entries.remove(&ObjectKey::of(object)),
    };
}

fn lock<T>(entries: &Mutex<Entries<T>>) -> MutexGuard<'_, Entries<T>> {
    entries.lock().unwrap_or_else(PoisonError::into_inner)
}
