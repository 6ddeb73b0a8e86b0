//! Placements are planned one at a time.
//!
//! A plan counts for the plans after it: prioritizer Balance prefers clusters that other placements select less. If two
//! placements were planned from the same snapshot, neither would see what the other selects, and placements that are created
//! together would all select the same clusters. So a placement is planned under a lock, from its snapshot until its plan is
//! recorded in the index. Writing, which takes most of the time, is concurrent.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OwnedMutexGuard;

/// Admits one placement at a time to planning, in the order in which they ask.
#[derive(Clone, Debug, Default)]
pub(super) struct PlanningLock(Arc<tokio::sync::Mutex<()>>);

/// Held while a placement is planned. Dropping it releases the lock too, so that a plan that fails blocks nobody.
#[derive(Debug)]
pub(super) struct PlanningGuard(Mutex<Option<OwnedMutexGuard<()>>>);

impl PlanningLock {
    /// Waits until no other placement is being planned.
    pub(super) async fn acquire(&self) -> PlanningGuard {
        PlanningGuard(Mutex::new(Some(self.0.clone().lock_owned().await)))
    }
}

impl PlanningGuard {
    /// The plan is recorded: the next placement may be planned.
    pub(super) fn release(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

#[cfg(test)]
mod tests {
    use std::{future::Future as _, pin::pin, task};

    use super::*;

    #[test]
    fn a_second_placement_is_planned_only_after_the_first_ones_plan_is_recorded() {
        let (lock, context) = (PlanningLock::default(), &mut task::Context::from_waker(task::Waker::noop()));
        let task::Poll::Ready(first) = pin!(lock.acquire()).poll(context) else { panic!("the lock is free") };
        let mut second = pin!(lock.acquire());
        assert!(second.as_mut().poll(context).is_pending());
        first.release();
        assert!(second.as_mut().poll(context).is_ready());
    }

    #[test]
    fn a_plan_that_fails_releases_the_lock() {
        let (lock, context) = (PlanningLock::default(), &mut task::Context::from_waker(task::Waker::noop()));
        let task::Poll::Ready(first) = pin!(lock.acquire()).poll(context) else { panic!("the lock is free") };
        drop(first);
        assert!(pin!(lock.acquire()).poll(context).is_ready());
    }
}
