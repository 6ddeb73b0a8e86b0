//! Metrics of one hub or agent, in a registry of its own.
//!
//! Their names, labels and meanings are in one table (`reference.rs`), from which the registry and
//! `docs/reference/metrics.md` are made.

mod reference;
mod scheduling;
mod state;

use std::{fmt::Debug, sync::atomic::AtomicU64};

use jiff::Timestamp;
use prometheus_client::{
    encoding::{
        EncodeLabelSet,
        text::{encode_eof, encode_registry},
    },
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
        info::Info,
    },
    registry::{Metric, Registry},
};
use tokio::time::Instant;

pub use self::scheduling::SchedulingMetrics;
pub(crate) use self::state::WatchState;
use self::{reference::About, state::Gauges};

/// The metrics of one hub or agent.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    /// Those with names of OCM.
    ocm: Registry,
    reconciles: Family<Outcome, Counter>,
    seconds: Family<OfController, Histogram, fn() -> Histogram>,
    watch_failures: Family<OfKind, Counter>,
    writes: Family<Write, Counter>,
    certificates: Family<OfCertificate, Gauge<f64, AtomicU64>>,
    leading: Family<OfLock, Gauge>,
    webhook_requests: Family<WebhookRequest, Counter>,
    admission_enforced: Family<OfKind, Gauge>,
    deletions_held: Family<OfKind, Gauge>,
    scheduling: SchedulingMetrics,
    gauges: Gauges,
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

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfCondition {
    kind: &'static str,
    condition: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfCertificate {
    certificate: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfLock {
    lock: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WebhookRequest {
    path: &'static str,
    result: &'static str,
}

/// A write to an API server.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Write {
    pub(crate) verb: &'static str,
    pub(crate) group: String,
    pub(crate) resource: String,
    pub(crate) code: String,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix(reference::PREFIX);
        let seconds = Family::new_with_constructor(duration_buckets as fn() -> Histogram);
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        let mut ocm = Registry::default();
        registry.register(reference::BUILD.short_name(), reference::BUILD.help, build);
        Self {
            reconciles: register(&mut registry, &reference::RECONCILES, Family::default()),
            seconds: register(&mut registry, &reference::RECONCILE_SECONDS, seconds),
            gauges: Gauges::new(&mut registry),
            watch_failures: register(&mut registry, &reference::WATCH_FAILURES, Family::default()),
            writes: register(&mut registry, &reference::WRITES, Family::default()),
            certificates: register(&mut registry, &reference::CERTIFICATES, Family::default()),
            leading: register(&mut registry, &reference::LEADING, Family::default()),
            webhook_requests: register(&mut registry, &reference::WEBHOOK_REQUESTS, Family::default()),
            admission_enforced: register(&mut registry, &reference::ADMISSION_ENFORCED, Family::default()),
            deletions_held: register(&mut registry, &reference::DELETIONS_HELD, Family::default()),
            scheduling: SchedulingMetrics::registered(&mut ocm),
            registry,
            ocm,
        }
    }
}

fn register<M: Metric + Clone>(registry: &mut Registry, about: &About, metric: M) -> M {
    registry.register(about.short_name(), about.help, metric.clone());
    metric
}

/// From a millisecond to nine minutes: a cleanup that deletes a cluster's works one after the other takes minutes.
fn duration_buckets() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 20))
}

impl Metrics {
    /// All metrics in the OpenMetrics text format.
    #[must_use]
    pub fn encode(&self) -> String {
        self.gauges.refresh();
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode_registry(&mut text, &self.registry);
        let _ = encode_registry(&mut text, &self.ocm);
        let _ = encode_eof(&mut text);
        text
    }

    /// The page `docs/reference/metrics.md`: every metric there is.
    #[must_use]
    pub fn reference() -> String {
        reference::page()
    }

    /// Records when a certificate expires; `certificate` names its purpose in a word or two.
    pub fn certificate_expires(&self, certificate: &'static str, at: Timestamp) {
        self.certificates.get_or_create(&OfCertificate { certificate }).set(at.as_duration().as_secs_f64());
    }

    /// Takes in whether this process leads by a lock.
    pub(crate) fn leads(&self, lock: &str, leads: bool) {
        self.leading.get_or_create(&OfLock { lock: lock.into() }).set(leads.into());
    }

    /// Counts an answer of a webhook: `success`, `failure` or `refused`.
    pub fn webhook_answered(&self, path: &'static str, result: &'static str) {
        self.webhook_requests.get_or_create(&WebhookRequest { path, result }).inc();
    }

    /// Takes in whether admission policies or webhooks check every change of a kind; `None` removes the metric.
    pub fn admission_enforced(&self, kind: &'static str, is_enforced: Option<bool>) {
        let kind = OfKind { kind: kind.into() };
        match is_enforced {
            Some(is_enforced) => _ = self.admission_enforced.get_or_create(&kind).set(is_enforced.into()),
            None => _ = self.admission_enforced.remove(&kind),
        }
    }

    /// Shows how many objects of a kind have this condition with status False; `objects` returns `None` when that is no longer
    /// known.
    pub fn count_false(
        &self,
        kind: &'static str,
        condition: &'static str,
        objects: impl Fn() -> Option<usize> + Send + 'static,
    ) {
        self.gauges.add_condition(OfCondition { kind, condition }, Box::new(objects));
    }

    /// Takes in how many objects of a kind are not deleted until a person confirms.
    pub fn deletions_held(&self, kind: &'static str, count: usize) {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.deletions_held.get_or_create(&OfKind { kind: kind.into() }).set(count);
    }

    /// How long the decisions of placements take.
    #[must_use]
    pub fn scheduling(&self) -> &SchedulingMetrics {
        &self.scheduling
    }

    pub(crate) fn wrote(&self, write: &Write) {
        self.writes.get_or_create(write).inc();
    }

    /// `depth` answers nothing when the controller has ended.
    pub(crate) fn watch_queue(&self, controller: &'static str, depth: impl Fn() -> Option<usize> + Send + 'static) {
        self.gauges.add_queue(controller, Box::new(depth));
    }

    /// `state` answers nothing when the watch has ended.
    pub(crate) fn watch_state(&self, kind: &str, state: impl Fn() -> Option<WatchState> + Send + 'static) {
        self.gauges.add_watch(kind, Box::new(state));
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Metrics in which everything has happened once.
    fn full() -> Metrics {
        let metrics = Metrics::default();
        metrics.reconcile_started("x").finish("success");
        metrics.watch_queue("x", || Some(3));
        metrics.watch_state("pods", || Some(WatchState { synced: true, objects: 2 }));
        metrics.watch_state("pods", || Some(WatchState { synced: false, objects: 5 }));
        metrics.watch_failures("pods").inc();
        let resource = "pods/status".to_owned();
        metrics.wrote(&Write { verb: "patch", group: String::new(), resource, code: "200".into() });
        metrics.certificate_expires("hub-client", Timestamp::from_second(1_700_000_000).unwrap());
        metrics.leads("some-lock", true);
        metrics.webhook_answered("/convert", "success");
        metrics.admission_enforced("ManagedCluster", Some(true));
        metrics.deletions_held("appliedmanifestworks", 3);
        metrics.count_false("ManagedCluster", "ClusterCertificateRotated", || Some(2));
        let scheduling = metrics.scheduling();
        scheduling.scheduled(Duration::from_millis(1));
        scheduling.bound(Duration::from_millis(1));
        scheduling.plugin_ended("filter", "Predicate".to_owned(), Duration::from_millis(1));
        scheduling.evaluated(Duration::from_millis(1));
        metrics
    }

    #[test]
    fn every_metric_is_there_under_the_name_and_the_labels_of_the_reference() {
        let text = full().encode();
        for about in reference::ALL {
            let line = text.lines().find(|line| line.starts_with(&about.sample()));
            let line = line.unwrap_or_else(|| panic!("{} is not in\n{text}", about.sample()));
            for label in about.labels {
                assert!(line.contains(&format!("{}=\"", label.name)), "{line}");
            }
        }
        let types = text.lines().filter(|line| line.starts_with("# TYPE")).count();
        assert_eq!(types, reference::ALL.len(), "a metric is missing in the reference:\n{text}");
    }

    #[test]
    fn a_reconcile_that_takes_minutes_is_told_from_one_that_takes_seconds() {
        let text = full().encode();
        let bounds =
            text.lines().filter_map(|line| line.split_once("reconcile_seconds_bucket{le=\"")?.1.split_once('"'));
        let bounds: Vec<f64> =
            bounds.filter_map(|(bound, _)| bound.parse().ok()).filter(|bound| *bound < 1e9).collect();
        let longest = bounds.iter().copied().fold(0.0, f64::max);
        assert!((300.0..=900.0).contains(&longest), "{bounds:?}");
    }

    #[test]
    fn watches_of_one_kind_are_added_up_and_all_must_be_synced() {
        let text = full().encode();
        assert!(text.contains("ocm_watch_objects{kind=\"pods\"} 7"), "{text}");
        assert!(text.contains("ocm_watch_synced{kind=\"pods\"} 0"), "{text}");
        assert!(text.contains("ocm_certificate_expiration_timestamp_seconds{certificate=\"hub-client\"} 1700000000"));
    }

    #[test]
    fn queues_of_one_controller_are_added_up() {
        let metrics = full();
        metrics.watch_queue("x", || Some(4));
        let text = metrics.encode();
        assert!(text.contains("ocm_controller_queue_depth{controller=\"x\"} 7"), "{text}");
    }

    #[test]
    fn what_has_ended_is_not_shown() {
        let metrics = Metrics::default();
        metrics.watch_queue("x", || None);
        metrics.watch_state("pods", || None);
        let text = metrics.encode();
        assert!(!text.contains("controller=\"x\"") && !text.contains("kind=\"pods\""), "{text}");
    }
}
