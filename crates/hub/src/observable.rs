//! State that several controllers share: one decides, the others listen and carry its decisions out.

use std::{
    fmt,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

type Listener<E> = Box<dyn Fn(&E) + Send>;

/// State `S`, and listeners for events `E` about it.
pub(crate) struct Observable<S, E> {
    state: Mutex<S>,
    /// Locked before and never after the state.
    listeners: Mutex<Vec<Listener<E>>>,
    is_started: AtomicBool,
}

impl<S: Default, E> Default for Observable<S, E> {
    fn default() -> Self {
        Self { state: Mutex::default(), listeners: Mutex::default(), is_started: AtomicBool::new(false) }
    }
}

impl<S, E> fmt::Debug for Observable<S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observable").finish_non_exhaustive()
    }
}

impl<S, E> Observable<S, E> {
    pub(crate) fn state(&self) -> MutexGuard<'_, S> {
        lock(&self.state)
    }

    /// Calls `listener` for `everything` that was decided already, and then for every event.
    pub(crate) fn listen(&self, everything: impl FnOnce(&S) -> Vec<E>, listener: impl Fn(&E) + Send + 'static) {
        let mut listeners = lock(&self.listeners);
        let known = everything(&self.state());
        known.iter().for_each(&listener);
        listeners.push(Box::new(listener));
    }

    /// Not while the state is locked: listeners may read it.
    pub(crate) fn notify(&self, events: &[E]) {
        let listeners = lock(&self.listeners);
        events.iter().for_each(|event| listeners.iter().for_each(|listener| listener(event)));
    }

    /// Whether this is the first call. The controller that decides is started once, by the first of the controllers that need it.
    pub(crate) fn is_first_start(&self) -> bool {
        !self.is_started.swap(true, Ordering::Relaxed)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn a_listener_that_comes_late_gets_everything_and_then_each_event() {
        let observable = Observable::<Vec<u8>, u8>::default();
        observable.state().extend([1, 2]);
        let heard = Arc::new(Mutex::new(Vec::new()));
        let listener = heard.clone();
        observable.listen(Clone::clone, move |event| lock(&listener).push(*event));
        observable.notify(&[3, 4]);
        assert_eq!(*lock(&heard), [1, 2, 3, 4]);
        assert!(observable.is_first_start() && !observable.is_first_start());
    }
}
