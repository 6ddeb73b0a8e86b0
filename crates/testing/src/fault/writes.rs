//! Counting writes, and acting on a certain one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type Act = Box<dyn FnOnce() + Send>;

/// Counts the writes that API servers have carried out; shared by the servers it is given to.
#[derive(Clone, Default)]
pub struct WriteCount {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    count: usize,
    act_at: Option<(usize, Act)>,
}

impl std::fmt::Debug for WriteCount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("WriteCount").field(&self.count()).finish()
    }
}

impl WriteCount {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many writes there were.
    pub fn count(&self) -> usize {
        self.lock().count
    }

    /// Calls `act` once the `nth` write from now has been carried out and before it is answered; whoever asked for it
    /// is never answered.
    pub fn at(&self, nth: usize, act: impl FnOnce() + Send + 'static) {
        let mut state = self.lock();
        state.act_at = Some((state.count + nth, Box::new(act)));
    }

    /// Whether the write that [`WriteCount::at`] waits for is still to come.
    pub fn is_awaiting(&self) -> bool {
        self.lock().act_at.is_some()
    }

    /// Counts a write that has been carried out; whether its answer is to be swallowed.
    pub(crate) fn carried_out(&self) -> bool {
        let mut state = self.lock();
        state.count += 1;
        let is_the_one = state.act_at.as_ref().is_some_and(|(at, _)| *at == state.count);
        let act = if is_the_one { state.act_at.take() } else { None };
        drop(state);
        if let Some((_, act)) = act {
            act();
            return true;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_acts_at_the_nth_write_from_now_and_only_then() {
        let writes = WriteCount::default();
        writes.carried_out();
        let acted = Arc::new(Mutex::new(false));
        let flag = acted.clone();
        writes.at(2, move || *flag.lock().unwrap() = true);
        assert!(!writes.carried_out() && writes.is_awaiting());
        assert!(writes.carried_out() && !writes.is_awaiting() && *acted.lock().unwrap());
        assert!(!writes.carried_out());
        assert_eq!(writes.count(), 4);
    }
}
