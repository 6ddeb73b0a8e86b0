//! What one hub or one agent has to itself: clock, metrics, health, tasks and their end.

use std::{future::Future, sync::Arc};

use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::{Instrument as _, Span};

use crate::{
    clock::Clock,
    controller::{self, Controller},
    health::Health,
    metrics::Metrics,
};

/// The surroundings of a hub, an agent or any other part of a process. Cheap to clone; a child ends
/// with its parent, and can be ended alone.
#[derive(Clone, Debug, Default)]
pub struct Context {
    clock: Clock,
    metrics: Arc<Metrics>,
    health: Health,
    end: CancellationToken,
    tasks: TaskTracker,
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

    /// A part of this context with tasks of its own, which can be ended without ending the rest.
    #[must_use]
    pub fn child(&self) -> Self {
        Self { end: self.end.child_token(), tasks: TaskTracker::new(), ..self.clone() }
    }

    /// The clock.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The metrics.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// The health checks, and what readiness still waits for.
    #[must_use]
    pub fn health(&self) -> &Health {
        &self.health
    }

    /// Runs a task until it returns or the context ends, whichever is first.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let end = self.end.clone();
        let task = async move {
            tokio::select! { () = end.cancelled() => {} () = task => {} }
        };
        self.tasks.spawn(task.instrument(Span::current()));
    }

    /// Runs a task that is told of the end by [`Context::ended`] and then finishes what it has begun.
    pub fn spawn_to_completion(&self, task: impl Future<Output = ()> + Send + 'static) {
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

    /// Waits until the context has been asked to end.
    pub async fn ended(&self) {
        self.end.cancelled().await;
    }

    /// Whether the context has been asked to end.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.end.is_cancelled()
    }

    /// Asks everything to end, and waits until it has. Reconciles in progress are finished first.
    pub async fn stop(&self) {
        self.end();
        self.tasks.close();
        self.tasks.wait().await;
    }
}
