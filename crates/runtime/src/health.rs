//! Health checks, and what readiness still waits for.

use std::{
    collections::BTreeMap,
    fmt::Debug,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

type Check = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// The health of one hub or agent. Cheap to clone.
#[derive(Clone, Default)]
pub struct Health {
    state: Arc<Mutex<State>>,
}

impl Debug for Health {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Health").field("awaited", &self.awaited()).finish_non_exhaustive()
    }
}

#[derive(Default)]
struct State {
    checks: BTreeMap<String, Check>,
    /// What readiness waits for, and how often each.
    awaited: BTreeMap<String, usize>,
    warnings: BTreeMap<&'static str, String>,
}

impl Health {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a check, or replaces the one of that name. It answers `Err` with the cause and the next
    /// step when the process should be restarted.
    pub fn check(&self, name: &str, check: impl Fn() -> Result<(), String> + Send + Sync + 'static) {
        self.lock().checks.insert(name.into(), Arc::new(check));
    }

    /// Every check with its answer.
    #[must_use]
    pub fn checks(&self) -> Vec<(String, Result<(), String>)> {
        let checks: Vec<_> = self.lock().checks.iter().map(|(name, check)| (name.clone(), check.clone())).collect();
        checks.into_iter().map(|(name, check)| (name, check())).collect()
    }

    /// Makes readiness wait for something until the value returned is dropped.
    #[must_use]
    pub fn awaiting(&self, what: String) -> Awaiting {
        *self.lock().awaited.entry(what.clone()).or_default() += 1;
        Awaiting { health: self.clone(), what }
    }

    /// What readiness still waits for.
    #[must_use]
    pub fn awaited(&self) -> Vec<String> {
        self.lock().awaited.keys().cloned().collect()
    }

    /// Sets or removes the warning of that name: what a person should know of a process that works. It changes neither health
    /// nor readiness.
    pub fn warn(&self, name: &'static str, text: Option<String>) {
        let mut state = self.lock();
        match text {
            Some(text) => _ = state.warnings.insert(name, text),
            None => _ = state.warnings.remove(name),
        }
    }

    /// Every warning, with its name.
    #[must_use]
    pub fn warnings(&self) -> Vec<(&'static str, String)> {
        self.lock().warnings.iter().map(|(name, text)| (*name, text.clone())).collect()
    }
}

/// Readiness waits until this is dropped.
#[derive(Debug)]
pub struct Awaiting {
    health: Health,
    what: String,
}

impl Drop for Awaiting {
    fn drop(&mut self) {
        let mut state = self.health.lock();
        if let Some(count) = state.awaited.get_mut(&self.what) {
            *count -= 1;
            if *count == 0 {
                state.awaited.remove(&self.what);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readiness_waits_until_the_last_one_is_there() {
        let health = Health::default();
        let first = health.awaiting("watch of nodes".into());
        let second = health.awaiting("watch of nodes".into());
        drop(first);
        assert_eq!(health.awaited(), ["watch of nodes"]);
        drop(second);
        assert!(health.awaited().is_empty());
    }
}
