//! Waits for a condition. Tests wait in no other way.

use std::fmt::Display;
use std::future::Future;
use std::time::Duration;

use anyhow::{Result, bail};
use tokio::time::{Instant, sleep, timeout_at};

const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(200);

/// The default timeout of [`eventually`]: 60 s, or `OCM_TESTING_TIMEOUT` seconds.
pub fn timeout() -> Duration {
    let seconds = std::env::var("OCM_TESTING_TIMEOUT").ok().and_then(|value| value.parse().ok());
    Duration::from_secs(seconds.unwrap_or(60))
}

/// The result of one check: the value waited for, or a description of the current state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen<T> {
    /// The condition is met.
    Settled(T),
    /// Not yet. The text describes the current state; [`eventually`] shows the last one when it times out.
    NotYet(String),
}

/// What a closure given to [`eventually`] may return: `bool`, `Option<T>`, [`Seen<T>`], or a
/// `Result` of one of them, whose error means "not yet".
pub trait Probe {
    /// What [`eventually`] returns in the end.
    type Value;

    /// Whether waiting is over.
    fn seen(self) -> Seen<Self::Value>;
}

impl Probe for bool {
    type Value = ();

    fn seen(self) -> Seen<()> {
        if self { Seen::Settled(()) } else { Seen::NotYet("false".into()) }
    }
}

impl<T> Probe for Option<T> {
    type Value = T;

    fn seen(self) -> Seen<T> {
        self.map_or_else(|| Seen::NotYet("nothing".into()), Seen::Settled)
    }
}

impl<T> Probe for Seen<T> {
    type Value = T;

    fn seen(self) -> Self {
        self
    }
}

impl<P: Probe, E: Display> Probe for std::result::Result<P, E> {
    type Value = P::Value;

    fn seen(self) -> Seen<P::Value> {
        match self {
            Ok(probe) => probe.seen(),
            Err(error) => Seen::NotYet(format!("error: {error:#}")),
        }
    }
}

/// Calls `probe` repeatedly until it is settled. After [`timeout`] it fails with `what` and the last state.
///
/// `what` names the condition: `eventually("the cluster is accepted", || async { .. })`.
pub async fn eventually<F, Fut, P>(what: &str, probe: F) -> Result<P::Value>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = P>,
    P: Probe,
{
    eventually_within(timeout(), what, probe).await
}

/// Like [`eventually`], with another timeout.
///
/// # Errors
/// As [`eventually`].
pub async fn eventually_within<F, Fut, P>(limit: Duration, what: &str, mut probe: F) -> Result<P::Value>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = P>,
    P: Probe,
{
    let deadline = Instant::now() + limit;
    let mut pause = FIRST_PAUSE;
    let mut last = "nothing: the first check did not end".to_owned();
    loop {
        match timeout_at(deadline, probe()).await.map(P::seen) {
            Ok(Seen::Settled(value)) => return Ok(value),
            Ok(Seen::NotYet(seen)) => last = seen,
            Err(_) => bail!("gave up after {limit:?} waiting until {what}; last seen: {last}"),
        }
        if Instant::now() + pause >= deadline {
            bail!("gave up after {limit:?} waiting until {what}; last seen: {last}");
        }
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_settled_value_is_returned() {
        let mut checks = 0;
        let found = eventually("three checks were made", || {
            checks += 1;
            std::future::ready((checks == 3).then_some(checks))
        });
        assert_eq!(found.await.unwrap(), 3);
    }

    #[tokio::test]
    async fn a_timeout_names_the_condition_and_the_last_state() {
        let probe = || async { Ok::<_, anyhow::Error>(Seen::<()>::NotYet("phase Pending".into())) };
        let error = eventually_within(Duration::ZERO, "the pod runs", probe).await.unwrap_err().to_string();
        assert!(error.contains("the pod runs") && error.contains("phase Pending"), "{error}");
    }

    #[tokio::test]
    async fn an_error_is_shown_with_its_causes() {
        let probe = || async { Err::<bool, _>(anyhow::anyhow!("refused").context("no answer")) };
        let error = eventually_within(Duration::ZERO, "it answers", probe).await.unwrap_err().to_string();
        assert!(error.contains("error: no answer: refused"), "{error}");
    }

    #[tokio::test]
    async fn a_probe_that_never_returns_is_cancelled() {
        let error = eventually_within(Duration::ZERO, "it ends", std::future::pending::<bool>).await.unwrap_err();
        assert!(error.to_string().contains("did not end"), "{error}");
    }
}
