//! Counts writes, and acts on a certain one.

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
    under_way: usize,
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

    /// Whether a write is in progress: its effect may be visible already, and it is not counted yet.
    pub fn is_under_way(&self) -> bool {
        self.lock().under_way > 0
    }

    /// A write is passed on to be carried out.
    pub(crate) fn begin(&self) -> UnderWay<'_> {
        self.lock().under_way += 1;
        UnderWay(self)
    }

    /// Calls `act` after the `nth` write from now has been carried out and before its response, which is never sent.
    pub fn at(&self, nth: usize, act: impl FnOnce() + Send + 'static) {
        let mut state = self.lock();
        state.act_at = Some((state.count + nth, Box::new(act)));
    }

    /// Cancels [`WriteCount::at`], unless it has happened: all later writes get their responses.
    pub fn cancel(&self) {
        self.lock().act_at = None;
    }

    /// Whether the write that [`WriteCount::at`] waits for is still to come.
    pub fn is_awaiting(&self) -> bool {
        self.lock().act_at.is_some()
    }

    /// Counts a write that has been carried out. Returns whether its response must be dropped.
    fn carried_out(&self) -> bool {
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

/// A write from when it is passed on until it has been counted or has failed.
pub(crate) struct UnderWay<'a>(&'a WriteCount);

impl UnderWay<'_> {
    /// See [`WriteCount::carried_out`].
    pub(crate) fn carried_out(self) -> bool {
        self.0.carried_out()
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.lock().under_way -= 1;
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

    #[test]
    fn it_does_not_act_once_that_is_cancelled() {
        let writes = WriteCount::default();
        writes.at(1, || unreachable!("it was cancelled"));
        writes.cancel();
        assert!(!writes.is_awaiting() && !writes.carried_out());
    }

    #[test]
    fn a_write_is_under_way_until_it_is_counted_or_fails() {
        let writes = WriteCount::default();
        let (first, second) = (writes.begin(), writes.begin());
        first.carried_out();
        assert!(writes.is_under_way() && writes.count() == 1);
        drop(second);
        assert!(!writes.is_under_way() && writes.count() == 1);
    }
}
