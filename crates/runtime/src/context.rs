//! What one hub or one agent has to itself: clock, metrics, health, tasks and their end.
//!
//! There are two ends. [`Context::end`] asks: waiting stops at once, and reconciles in progress are
//! finished. [`Context::abort`] does not ask: every task is dropped where it waits, a request in
//! progress included. Both reach all children, and [`Context::stop`] waits for their tasks too.

use std::{future::Future, sync::Arc};

use tokio::time::Instant;
use tokio_util::{
    sync::CancellationToken,
    task::{TaskTracker, task_tracker::TaskTrackerToken},
};
use tracing::{Instrument as _, Span};

use crate::{
    client::Proxies,
    clock::Clock,
    controller::{self, Controller},
    health::Health,
    metrics::Metrics,
    queue::RetryDelays,
};

/// The surroundings of a hub, an agent or any other part of a process. Cheap to clone; a child ends
/// with its parent, and can be ended alone.
#[derive(Clone, Debug, Default)]
pub struct Context {
    clock: Clock,
    proxies: Arc<Proxies>,
    in_pod: bool,
    metrics: Arc<Metrics>,
    health: Health,
    end: CancellationToken,
    abort: CancellationToken,
    tasks: TaskTracker,
    retries: RetryDelays,
    /// Those of whom this is a part: they have not ended before its tasks have.
    parents: Arc<[TaskTracker]>,
}

impl Context {
    /// A context with the machine's clock.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A context with another clock, for tests.
    #[must_use]
    pub fn with_clock(clock: Clock) -> Self {
        Self { clock, ..Self::default() }
    }

    /// The same context, whose controllers retry after other delays: for tests that cannot wait for minutes.
    #[must_use]
    pub fn with_retries(self, retries: RetryDelays) -> Self {
        Self { retries, ..self }
    }

    /// After how long controllers retry.
    pub(crate) fn retries(&self) -> RetryDelays {
        self.retries
    }

    /// The context, with the proxies that its connections use where a kubeconfig names none.
    #[must_use]
    pub fn with_proxies(self, proxies: Proxies) -> Self {
        Self { proxies: Arc::new(proxies), ..self }
    }

    /// The context of a process that runs in a pod, or does not: for messages about addresses.
    #[must_use]
    pub fn in_pod(self, in_pod: bool) -> Self {
        Self { in_pod, ..self }
    }

    /// Whether the process runs in a pod.
    #[must_use]
    pub fn is_in_pod(&self) -> bool {
        self.in_pod
    }

    /// A part of this context with tasks of its own, which can be ended without ending the rest.
    #[must_use]
    pub fn child(&self) -> Self {
        let parents = self.parents.iter().chain([&self.tasks]).cloned().collect();
        Self {
            end: self.end.child_token(),
            abort: self.abort.child_token(),
            tasks: TaskTracker::new(),
            parents,
            ..self.clone()
        }
    }

    /// The clock.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The proxies that connections use where a kubeconfig names none.
    #[must_use]
    pub fn proxies(&self) -> &Proxies {
        &self.proxies
    }

    /// The metrics.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// The metrics, for those who outlive a borrow.
    pub(crate) fn shared_metrics(&self) -> Arc<Metrics> {
        self.metrics.clone()
    }

    /// The health checks, and what readiness still waits for.
    #[must_use]
    pub fn health(&self) -> &Health {
        &self.health
    }

    /// Runs a task until it returns or the context ends, whichever is first.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let end = self.end.clone();
        self.track(async move {
            tokio::select! { () = end.cancelled() => {} () = task => {} }
        });
    }

    /// Runs a task that learns of the shutdown through [`Context::ended`] and then finishes what it has begun.
    pub fn spawn_to_completion(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.track(task);
    }

    fn track(&self, task: impl Future<Output = ()> + Send + 'static) {
        let abort = self.abort.clone();
        let counted: Vec<TaskTrackerToken> = self.parents.iter().map(TaskTracker::token).collect();
        let task = async move {
            tokio::select! { biased; () = abort.cancelled() => {} () = task => {} }
            drop(counted);
        };
        self.tasks.spawn(task.instrument(Span::current()));
    }

    /// Runs a controller with so many workers until the context ends.
    pub fn run<C: Controller>(&self, controller: C, workers: usize) {
        controller::run(self, controller, workers);
    }

    /// Asks everything in this context to end.
    pub fn end(&self) {
        self.end.cancel();
    }

    /// Ends everything in this context where it is, without letting it finish what it has begun.
    pub fn abort(&self) {
        self.end.cancel();
        self.abort.cancel();
    }

    /// Waits until the context has been asked to end.
    pub async fn ended(&self) {
        self.end.cancelled().await;
    }

    /// Whether the context has been asked to end.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.end.is_cancelled()
    }

    /// The token that is cancelled at the end, for those who must not keep the context alive.
    pub(crate) fn end_token(&self) -> CancellationToken {
        self.end.clone()
    }

    /// Asks everything to end, and waits until it has. Reconciles in progress are finished first.
    pub async fn stop(&self) {
        self.end();
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Like [`Context::stop`], but what is not finished by `limit` is [aborted](Context::abort).
    /// Returns whether everything was finished. When this returns, no task of the context runs any more.
    pub async fn stop_by(&self, limit: Instant) -> bool {
        let finished = tokio::time::timeout_at(limit, self.stop()).await.is_ok();
        if !finished {
            self.abort();
            self.stop().await;
        }
        finished
    }
}

#[cfg(test)]
mod tests {
    use std::{future::pending, time::Duration};

    use super::*;

    fn in_a_minute() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    #[tokio::test(start_paused = true)]
    async fn stopping_waits_for_what_children_have_begun() {
        let context = Context::new();
        let grandchild = context.child().child();
        let (finish, finished) = tokio::sync::oneshot::channel::<()>();
        grandchild.spawn_to_completion(async move { _ = finished.await });
        let early = tokio::time::timeout(Duration::from_secs(5), context.stop()).await;
        assert!(early.is_err(), "a task of a grandchild still runs");
        finish.send(()).unwrap();
        assert!(context.stop_by(in_a_minute()).await);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_not_finished_in_time_is_dropped_where_it_waits() {
        let context = Context::new();
        let (held, dropped) = tokio::sync::oneshot::channel::<()>();
        context.child().spawn_to_completion(async move {
            let _held = held;
            pending::<()>().await;
        });
        let limit = in_a_minute();
        assert!(!context.stop_by(limit).await);
        assert!(dropped.await.is_err());
        assert!(Instant::now() >= limit, "it had all the time there was");
    }

    #[tokio::test(start_paused = true)]
    async fn an_aborted_child_leaves_its_parent_alone() {
        let context = Context::new();
        context.child().abort();
        assert!(!context.is_ended());
    }
}
