//! Metrics of one hub or agent, in a registry of its own.

use std::{
    fmt::Debug,
    sync::{Mutex, PoisonError},
};

use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::Registry,
};
use tokio::time::Instant;

/// The metrics of one hub or agent.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    reconciles: Family<Outcome, Counter>,
    seconds: Family<OfController, Histogram, fn() -> Histogram>,
    depth: Family<OfController, Gauge>,
    watch_failures: Family<OfKind, Counter>,
    queues: Mutex<Vec<QueueDepth>>,
}

struct QueueDepth {
    controller: &'static str,
    depth: Box<dyn Fn() -> usize + Send>,
}

impl Debug for QueueDepth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("QueueDepth").field(&self.controller).finish()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfController {
    controller: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    controller: &'static str,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfKind {
    kind: String,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("ocm");
        let reconciles = Family::default();
        let seconds = Family::new_with_constructor(duration_buckets as fn() -> Histogram);
        let depth = Family::default();
        let watch_failures = Family::default();
        registry.register("controller_reconciles", "Reconciles by result", reconciles.clone());
        registry.register("controller_reconcile_seconds", "Time one reconcile took", seconds.clone());
        registry.register("controller_queue_depth", "Keys that wait for a worker", depth.clone());
        registry.register("watch_failures", "Watches that failed and were tried again", watch_failures.clone());
        Self { registry, reconciles, seconds, depth, watch_failures, queues: Mutex::default() }
    }
}

/// From a millisecond to half a minute.
fn duration_buckets() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 15))
}

impl Metrics {
    /// All metrics in the OpenMetrics text format.
    #[must_use]
    pub fn encode(&self) -> String {
        for queue in self.queues.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let depth = i64::try_from((queue.depth)()).unwrap_or(i64::MAX);
            self.depth.get_or_create(&OfController { controller: queue.controller }).set(depth);
        }
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }

    pub(crate) fn watch_queue(&self, controller: &'static str, depth: impl Fn() -> usize + Send + 'static) {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        // A controller that was started anew has a new queue.
        queues.retain(|queue| queue.controller != controller);
        queues.push(QueueDepth { controller, depth: Box::new(depth) });
    }

    pub(crate) fn watch_failures(&self, kind: &str) -> Counter {
        self.watch_failures.get_or_create_owned(&OfKind { kind: kind.into() })
    }

    pub(crate) fn reconcile_started(&self, controller: &'static str) -> ReconcileTimer<'_> {
        ReconcileTimer { metrics: self, controller, started: Instant::now() }
    }
}

pub(crate) struct ReconcileTimer<'a> {
    metrics: &'a Metrics,
    controller: &'static str,
    started: Instant,
}

impl ReconcileTimer<'_> {
    pub(crate) fn finish(self, result: &'static str) {
        let controller = self.controller;
        self.metrics.reconciles.get_or_create(&Outcome { controller, result }).inc();
        let seconds = self.started.elapsed().as_secs_f64();
        self.metrics.seconds.get_or_create(&OfController { controller }).observe(seconds);
    }
}
