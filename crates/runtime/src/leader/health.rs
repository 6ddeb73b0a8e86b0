//! The check of `/healthz`: a leader that does not notice that it should have stopped.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use super::settings::Settings;
use crate::Context;

/// How much longer than the lease lasts a leader may be stuck, as client-go's users have it.
const TOLERANCE: Duration = Duration::from_secs(20);

/// What is told to those who watch a candidate: health and metrics.
#[derive(Clone, Debug)]
pub(super) struct RenewalCheck {
    context: Context,
    lock: String,
    /// When the last renewal was sent; none while it does not lead.
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
    let silent = renewed.map(|renewed| renewed.elapsed());
    match silent.filter(|silent| *silent > limit) {
        None => Ok(()),
        Some(silent) => Err(format!(
            "the lease {lock} was last renewed {} s ago, and what runs under it has not ended: restart this process",
            silent.as_secs()
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
        assert!(healthy(), "who does not lead has nothing to renew");
    }
}
