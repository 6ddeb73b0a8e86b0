//! The check of `/healthz`: fails if a leader goes on after its lease has run out.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use super::settings::Settings;
use crate::Context;

/// How much longer than the lease duration a leader may take to renew, as in the programs that use client-go.
const TOLERANCE: Duration = Duration::from_secs(20);

/// Reports the renewals of a candidate to its health check and its metrics.
#[derive(Clone, Debug)]
pub(super) struct RenewalCheck {
    context: Context,
    lock: String,
    /// When the last renewal was sent; `None` while it does not lead.
    renewed: Arc<Mutex<Option<Instant>>>,
}

impl RenewalCheck {
    pub(super) fn new(context: &Context, lock: &str, settings: Settings) -> Self {
        let renewed: Arc<Mutex<Option<Instant>>> = Arc::default();
        let check = Self { context: context.clone(), lock: lock.into(), renewed: renewed.clone() };
        let limit = settings.lease_duration() + TOLERANCE;
        let name = lock.to_owned();
        context.health().check(&format!("leader-election/{lock}"), move || {
            renewed_in_time(&name, *renewed.lock().unwrap_or_else(PoisonError::into_inner), limit)
        });
        check.context.metrics().leads(lock, false);
        check
    }

    pub(super) fn set(&self, renewed: Option<Instant>) {
        *self.renewed.lock().unwrap_or_else(PoisonError::into_inner) = renewed;
        self.context.metrics().leads(&self.lock, renewed.is_some());
    }
}

fn renewed_in_time(lock: &str, renewed: Option<Instant>, limit: Duration) -> Result<(), String> {
    let age = renewed.map(|renewed| renewed.elapsed());
    match age.filter(|age| *age > limit) {
        None => Ok(()),
        Some(age) => Err(format!(
            "the lease {lock} was last renewed {} s ago, and what runs under it has not ended: restart this process",
            age.as_secs()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_leader_that_is_stuck_is_unhealthy() {
        let (context, settings) = (Context::new(), Settings::default());
        let check = RenewalCheck::new(&context, "lock", settings);
        let healthy = || context.health().checks().iter().all(|(_, answer)| answer.is_ok());
        check.set(Some(Instant::now()));
        tokio::time::advance(settings.lease_duration() + TOLERANCE).await;
        assert!(healthy());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(!healthy());
        check.set(None);
        assert!(healthy(), "a process that does not lead has nothing to renew");
    }
}
