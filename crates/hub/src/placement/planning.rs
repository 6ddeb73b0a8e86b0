//! Placements that count what others select are planned one at a time.
//!
//! Prioritizer Balance prefers clusters that other placements select less. If two placements were planned from the same
//! snapshot, neither would see what the other selects, and placements that are created together would all select the same
//! clusters. So a placement whose selection depends on others is planned under a lock, from its snapshot until its plan is
//! recorded in the index. Other plans, and all writes, are concurrent.
//!
//! A snapshot shares the maps of the index, and the index copies a map that it changes while a snapshot shares it. So a
//! placement drops its snapshot before its plan is recorded and written.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use jiff::Timestamp;
use ocm_api::cluster::v1beta1::Placement;
use ocm_runtime::{ObjectKey, metrics::SchedulingMetrics};
use ocm_scheduler::{Eligible, Step};
use tokio::{sync::OwnedMutexGuard, time::Instant};

use super::{
    index::{Index, Snapshot},
    plan::{self, Observed, Plan},
};

/// Admits one placement at a time to planning, in the order in which they ask.
#[derive(Clone, Debug, Default)]
pub(super) struct PlanningLock {
    lock: Arc<tokio::sync::Mutex<()>>,
    metrics: SchedulingMetrics,
}

/// Releases the lock when it is dropped.
type PlanningGuard = OwnedMutexGuard<()>;

/// A placement that is being planned. Dropping it ends the planning too, so that a plan that fails blocks nobody.
#[derive(Debug)]
pub(crate) struct InPlanning {
    pub(super) placement: Arc<Placement>,
    state: Mutex<Option<Planning>>,
    metrics: SchedulingMetrics,
    started: Instant,
    /// When the plan was recorded, after which it is written.
    recorded: OnceLock<Instant>,
}

#[derive(Debug)]
struct Planning {
    observed: Observed,
    guard: Option<PlanningGuard>,
}

impl PlanningLock {
    pub(super) fn new(metrics: SchedulingMetrics) -> Self {
        Self { lock: Arc::default(), metrics }
    }

    /// Takes a snapshot of the index; waits until no other placement is being planned if the selection depends on others.
    async fn snapshot(&self, index: &Index, key: &ObjectKey) -> Option<(Snapshot, Option<PlanningGuard>)> {
        let snapshot = index.snapshot(key)?;
        evaluate(&snapshot, &self.metrics).await;
        if !snapshot.inputs.rules.counts_others() {
            return Some((snapshot, None));
        }
        drop(snapshot);
        let guard = self.lock.clone().lock_owned().await;
        Some((index.snapshot(key)?, Some(guard)))
    }
}

/// Evaluates the CEL selectors beforehand, as planning finds the results then. Other placements are planned in between, since
/// it takes a while if the fleet is large or an expression is expensive.
async fn evaluate(snapshot: &Snapshot, metrics: &SchedulingMetrics) {
    let inputs = &snapshot.inputs;
    if inputs.rules.use_cel() {
        let eligible = Eligible::of(inputs);
        for candidate in eligible.candidates(inputs) {
            let started = Instant::now();
            if inputs.rules.evaluate(candidate.facts) {
                metrics.evaluated(started.elapsed());
                tokio::task::yield_now().await;
            }
        }
    }
}

impl InPlanning {
    /// Begins to plan a placement, which `find` returns as of the snapshot; `None` if it does not exist or is ignored.
    pub(super) async fn begin(
        lock: &PlanningLock,
        index: &Index,
        key: &ObjectKey,
        find: impl FnOnce(&ObjectKey) -> Option<Arc<Placement>>,
    ) -> Option<Self> {
        let started = Instant::now();
        let (snapshot, guard) = lock.snapshot(index, key).await?;
        let (placement, is_ignored) = (find(key)?, snapshot.inputs.rules.is_ignored);
        let observed = Observed { placement: placement.clone(), snapshot };
        let state = Mutex::new(Some(Planning { observed, guard }));
        let (metrics, recorded) = (lock.metrics.clone(), OnceLock::new());
        (!is_ignored).then(|| Self { placement, state, metrics, started, recorded })
    }

    /// Plans; `None` once a plan is recorded.
    pub(super) fn plan(&self, now: Timestamp) -> Option<Plan> {
        let mut step_started = Instant::now();
        let mut ended = |step: Step<'_>| {
            self.measured(step, step_started);
            step_started = Instant::now();
        };
        self.lock().as_ref().map(|planning| plan::plan(&planning.observed, now, &mut ended))
    }

    /// Drops the snapshot, records the plan in the index, and then lets the next placement be planned.
    pub(super) fn record(&self, index: &Index, plan: &Plan) {
        let planning = self.lock().take();
        let guard = planning.and_then(|planning| planning.guard);
        index.record_plan(&ObjectKey::of(self.placement.as_ref()), plan.desired.clone(), plan.status.clone());
        drop(guard);
        self.metrics.scheduled(self.started.elapsed());
        _ = self.recorded.set(Instant::now());
    }

    /// Records that the plan is written.
    pub(super) fn written(&self) {
        if let Some(recorded) = self.recorded.get() {
            self.metrics.bound(recorded.elapsed());
        }
    }

    fn measured(&self, step: Step<'_>, started: Instant) {
        let (plugin_type, name) = match step {
            Step::Filter(name) => ("filter", name.to_owned()),
            Step::Prioritizer(prioritizer) => ("prioritizer", prioritizer.name()),
        };
        self.metrics.plugin_ended(plugin_type, name, started.elapsed());
    }

    fn lock(&self) -> MutexGuard<'_, Option<Planning>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::Future,
        pin::{Pin, pin},
        task::{self, Poll},
    };

    use serde_json::{Value, json};

    use super::*;
    use crate::placement::testing::{World, at, cluster, key, placement};

    const BALANCED: &str = "spread";
    const UNBALANCED: &str = "all";

    /// A cluster, two placements of which one depends on what others select, and the lock.
    fn world() -> (World, PlanningLock) {
        let mut world = World::new();
        world.cluster(cluster("c1", &[]));
        for (name, spec) in [(BALANCED, json!({"numberOfClusters": 1})), (UNBALANCED, json!({}))] {
            world.placement(placement(name, spec));
        }
        (world, PlanningLock::default())
    }

    async fn begin(world: &World, lock: &PlanningLock, name: &str) -> InPlanning {
        InPlanning::begin(lock, &world.index, &key(name), |_| Some(world.object(name))).await.unwrap()
    }

    fn poll<F: Future>(future: Pin<&mut F>) -> Option<F::Output> {
        match future.poll(&mut task::Context::from_waker(task::Waker::noop())) {
            Poll::Ready(value) => Some(value),
            Poll::Pending => None,
        }
    }

    #[test]
    fn a_placement_that_counts_others_is_planned_only_after_the_plan_before_it_is_recorded() {
        let (world, lock) = world();
        let first = poll(pin!(begin(&world, &lock, BALANCED))).unwrap();
        let mut second = pin!(begin(&world, &lock, BALANCED));
        assert!(poll(second.as_mut()).is_none());
        let plan = first.plan(at(0)).unwrap();
        first.record(&world.index, &plan);
        assert!(poll(second.as_mut()).is_some());
        assert!(first.plan(at(0)).is_none());
    }

    #[test]
    fn a_plan_that_fails_releases_the_lock() {
        let (world, lock) = world();
        drop(poll(pin!(begin(&world, &lock, BALANCED))).unwrap());
        assert!(poll(pin!(begin(&world, &lock, BALANCED))).is_some());
    }

    #[test]
    fn a_placement_whose_selection_does_not_depend_on_others_waits_for_none() {
        let (world, lock) = world();
        let _planning = poll(pin!(begin(&world, &lock, BALANCED))).unwrap();
        assert!(poll(pin!(begin(&world, &lock, UNBALANCED))).is_some());
    }

    #[test]
    fn only_placements_that_choose_among_clusters_by_balance_count_others() {
        let counts = |spec: Value| {
            let rules = ocm_scheduler::Rules::of(&placement("p", spec));
            rules.counts_others()
        };
        let steady = json!([{"scoreCoordinate": {"type": "BuiltIn", "builtIn": "Steady"}}]);
        assert!(counts(json!({"numberOfClusters": 1})));
        assert!(!counts(json!({})), "all that fit are selected");
        let exact = json!({"mode": "Exact", "configurations": steady});
        assert!(!counts(json!({"numberOfClusters": 1, "prioritizerPolicy": exact})));
    }

    #[test]
    fn recording_a_plan_and_changes_while_it_is_written_copy_no_map_of_the_index() {
        let (mut world, lock) = world();
        let planning = poll(pin!(begin(&world, &lock, BALANCED))).unwrap();
        let plan = planning.plan(at(0)).unwrap();
        let before = world.index.maps();
        planning.record(&world.index, &plan);
        world.cluster(cluster("c1", &[("env", "prod")]));
        assert_eq!(world.index.maps(), before);
    }

    #[test]
    fn each_part_of_a_decision_is_measured_under_the_names_of_ocm() {
        let (metrics, (world, _)) = (ocm_runtime::metrics::Metrics::default(), world());
        let lock = PlanningLock::new(metrics.scheduling().clone());
        let planning = poll(pin!(begin(&world, &lock, BALANCED))).unwrap();
        let plan = planning.plan(at(0)).unwrap();
        planning.record(&world.index, &plan);
        planning.written();
        let text = metrics.encode();
        for series in [
            r#"scheduling_scheduling_duration_seconds_count{name="placement_scheduling"} 1"#,
            r#"scheduling_bind_duration_seconds_count{name="placement_scheduling"} 1"#,
            r#"plugin_type="filter",plugin_name="Predicate"} 1"#,
            r#"plugin_type="prioritizer",plugin_name="Balance"} 1"#,
        ] {
            assert!(text.contains(series), "{series} is missing in:\n{text}");
        }
    }
}
