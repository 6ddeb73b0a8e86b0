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
use ocm_scheduler::{Candidate, Eligible, Prioritizer, Step};
use tokio::{sync::OwnedMutexGuard, time::Instant};

use super::{
    index::{Index, Snapshot},
    plan::{self, Observed, Plan},
};

/// How often expressions are evaluated before others wait for the rest, if the spec or clusters change meanwhile.
const EVALUATIONS: u32 = 5;
/// What metrics call all prioritizers with scores of add-ons.
const ADDON: &str = "AddOn";

/// Admits one placement at a time to planning, in the order in which they ask.
#[derive(Clone, Debug, Default)]
pub(super) struct PlanningLock {
    lock: Arc<tokio::sync::Mutex<()>>,
    /// Held while expressions are evaluated for one cluster.
    evaluating: Arc<tokio::sync::Mutex<()>>,
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
        Self { lock: Arc::default(), evaluating: Arc::default(), metrics }
    }

    /// Takes a snapshot of the index, in which CEL selectors are evaluated; waits until no other placement is being planned if the
    /// selection depends on others. `None` if the placement does not exist or is ignored.
    async fn snapshot(&self, index: &Index, key: &ObjectKey) -> Option<(Snapshot, Option<PlanningGuard>)> {
        for _ in 1..EVALUATIONS {
            let snapshot = index.snapshot(key).filter(is_planned)?;
            self.evaluate(&snapshot).await;
            if !snapshot.inputs.rules.counts_others() {
                return Some((snapshot, None));
            }
            drop(snapshot);
            let guard = self.lock.clone().lock_owned().await;
            let snapshot = index.snapshot(key).filter(is_planned)?;
            if is_evaluated(&snapshot) {
                return Some((snapshot, Some(guard)));
            }
        }
        let guard = self.lock.clone().lock_owned().await;
        Some((index.snapshot(key).filter(is_planned)?, Some(guard)))
    }

    /// Evaluates the CEL selectors beforehand, as planning finds the results then. It takes a while if the fleet is large or an
    /// expression is expensive: other placements are planned in between, and one cluster is evaluated at a time, so that one
    /// thread of the process is occupied at most.
    async fn evaluate(&self, snapshot: &Snapshot) {
        let inputs = &snapshot.inputs;
        for candidate in candidates(snapshot) {
            if !inputs.rules.is_evaluated(candidate.facts) {
                let evaluating = self.evaluating.lock().await;
                let started = Instant::now();
                inputs.rules.evaluate(candidate.facts);
                self.metrics.evaluated(started.elapsed());
                drop(evaluating);
                tokio::task::yield_now().await;
            }
        }
    }
}

fn is_planned(snapshot: &Snapshot) -> bool {
    !snapshot.inputs.rules.is_ignored
}

/// Whether planning needs no evaluation: the spec or clusters may have changed since.
fn is_evaluated(snapshot: &Snapshot) -> bool {
    candidates(snapshot).iter().all(|candidate| snapshot.inputs.rules.is_evaluated(candidate.facts))
}

/// The clusters for which CEL selectors are evaluated.
fn candidates(snapshot: &Snapshot) -> Vec<Candidate<'_>> {
    let inputs = &snapshot.inputs;
    if inputs.rules.use_cel() { Eligible::of(inputs).candidates(inputs) } else { Vec::new() }
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
        let placement = find(key)?;
        let observed = Observed { placement: placement.clone(), snapshot };
        let state = Mutex::new(Some(Planning { observed, guard }));
        let (metrics, recorded) = (lock.metrics.clone(), OnceLock::new());
        Some(Self { placement, state, metrics, started, recorded })
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
            // The names of scores come from the spec, and every value of a label is kept for ever.
            Step::Prioritizer(Prioritizer::AddOn(_)) => ("prioritizer", ADDON.to_owned()),
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

    use kube::ResourceExt as _;
    use ocm_api::annotations::PLACEMENT_DISABLE;
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

    /// A placement of one of the clusters for which an expression is true.
    fn expression(text: &str) -> Value {
        json!({"numberOfClusters": 1,
            "predicates": [{"requiredClusterSelector": {"celSelector": {"celExpressions": [text]}}}]})
    }

    #[tokio::test]
    async fn a_spec_that_changes_while_a_placement_waits_is_evaluated_before_others_wait_for_it() {
        let (mut world, lock) = world();
        world.placement(placement("cel", expression("true")));
        let (index, first) = (world.index.clone(), begin(&world, &lock, BALANCED).await);
        let cel = key("cel");
        let mut waiting = pin!(lock.snapshot(&index, &cel));
        for _ in 0..10 {
            assert!(poll(waiting.as_mut()).is_none());
        }
        world.placement(placement("cel", expression("1 < 2")));
        drop(first);
        let (snapshot, guard) = waiting.await.unwrap();
        assert!(guard.is_some() && !candidates(&snapshot).is_empty() && is_evaluated(&snapshot));
    }

    #[tokio::test]
    async fn nothing_is_evaluated_for_a_placement_that_is_ignored() {
        let (mut world, lock) = world();
        let mut ignored = placement("ignored", expression("true"));
        ignored.annotations_mut().insert(PLACEMENT_DISABLE.into(), "true".into());
        world.placement(ignored);
        assert!(lock.snapshot(&world.index, &key("ignored")).await.is_none());
        let snapshot = world.index.snapshot(&key("ignored")).unwrap();
        assert!(!candidates(&snapshot).is_empty() && !is_evaluated(&snapshot));
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
