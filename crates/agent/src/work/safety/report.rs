//! Publishes what is held, and takes the confirmation of an administrator: an annotation of the ManagedCluster.

use std::{
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use jiff::Timestamp;
use kube::{Api, ResourceExt as _};
use ocm_api::{
    annotations, cluster::v1::ManagedCluster, conditions::cluster::WORK_EVICTION_HELD, reasons,
    work::v1::AppliedManifestWork,
};
use ocm_runtime::{
    Cache, Change, Context, Controller, ControllerBuilder, Error, Informers, Requeue, Result,
    conditions::{self, NewCondition},
    error::chain,
    events::{EventRecorder, NewEvent},
    informer::{WatchFilter, Watchable},
    write,
};
use tracing::{info, warn};

use super::{Guard, census::Held};
use crate::work::Shared;

/// How long after a change the missing works are counted.
const PACE: Duration = Duration::from_secs(1);
/// So many works are named.
const NAMED: usize = 10;
/// What the agent reads its ManagedCluster for, where it cannot.
const HINT: &str = "the agent reads its ManagedCluster on the hub, to report works that are missing there";

/// The controller; its only key is the cluster's name.
#[derive(Debug)]
pub(in crate::work) struct HeldEvictions {
    cluster: String,
    guard: Guard,
    shared: Shared,
    clusters: Cache<ManagedCluster>,
    recorder: EventRecorder,
    context: Context,
    was_held: AtomicBool,
}

/// What is held, and where to report it.
#[derive(Clone, Debug)]
pub(in crate::work) struct Observed {
    cluster: String,
    held: Option<Held>,
    /// Whether this agent has reported something since it started that has not ended since.
    was_held: bool,
    /// `None` while the agent cannot read it.
    managed_cluster: Option<Arc<ManagedCluster>>,
}

/// What to report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::work) enum Plan {
    /// Nothing is held, and nothing was.
    Nothing,
    /// Works are missing. The event and the log follow only where this is new.
    Hold { condition: NewCondition, is_new: bool },
    /// They are back, or an administrator confirmed that they are gone.
    Release { condition: NewCondition, confirmed: Option<Held> },
}

impl HeldEvictions {
    pub(in crate::work) fn new(context: &Context, shared: Shared, recorder: EventRecorder) -> Self {
        Self {
            cluster: shared.settings.cluster.clone(),
            guard: shared.guard.clone(),
            clusters: managed_cluster(&shared.hub, &shared.settings.cluster),
            shared,
            recorder,
            context: context.clone(),
            was_held: AtomicBool::new(false),
        }
    }

    /// Counts again a moment after a change: many works come or go at once.
    fn follow<K: Watchable>(
        &self,
        cache: &Cache<K>,
        builder: &ControllerBuilder<'_, String>,
        matters: impl Fn(Change<'_, K>) -> bool + Send + 'static,
    ) {
        let (queue, context, key) = (builder.queue(), self.context.clone(), self.cluster.clone());
        cache.subscribe(move |change| {
            if matters(change) {
                queue.add_after(key.clone(), PACE);
            }
            if context.is_ended() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
    }

    async fn write(&self, old: &ManagedCluster, condition: NewCondition, now: Timestamp) -> Result<()> {
        let mut new = old.clone();
        conditions::set(&mut new.status.get_or_insert_default().conditions, condition, None, now);
        let api = Api::all(self.shared.hub.client().clone());
        if let Some(patched) = write::patch_status(&api, old, &new).await? {
            self.clusters.record_write(patched);
        }
        Ok(())
    }

    /// A failure is only logged: the condition says the same.
    async fn record(&self, cluster: &ManagedCluster, note: String) {
        let event = NewEvent { type_: "Warning", reason: WORK_EVICTION_HELD, note };
        if let Err(error) = self.recorder.record(&self.cluster, cluster, event).await {
            warn!(error = %chain(&error), "cannot write the event about missing works");
        }
    }
}

fn managed_cluster(hub: &Informers, name: &str) -> Cache<ManagedCluster> {
    hub.optional(WatchFilter::named(name), HINT)
}

impl Controller for HeldEvictions {
    const NAME: &'static str = "held-evictions";
    type Key = String;
    type Observed = Observed;
    type Plan = Plan;
    type Applied = Plan;
    type Error = Error;

    fn setup(&self, builder: &mut ControllerBuilder<'_, String>) {
        builder.waits_for(&self.shared.works);
        builder.waits_for(&self.shared.applied_works);
        self.follow(&self.shared.works, builder, |change| !matches!(change, Change::Updated { .. }));
        self.follow(&self.shared.applied_works, builder, matters);
        // Not waited for: evictions are held also on a hub without ManagedClusters.
        self.follow(&self.clusters, builder, |_| true);
    }

    async fn observe(&self, key: &String) -> Result<Option<Observed>> {
        let (held, managed_cluster) = (self.guard.held(), self.clusters.named(key));
        let count = held.as_ref().map_or(0, |held| held.works.len());
        self.context.metrics().deletions_held("appliedmanifestworks", count);
        let was_held = self.was_held.load(Ordering::Relaxed);
        Ok(Some(Observed { cluster: key.clone(), held, was_held, managed_cluster }))
    }

    fn plan(observed: &Observed, _: Timestamp) -> Plan {
        plan(observed)
    }

    async fn apply(&self, _: &Observed, plan: Plan) -> Result<Plan> {
        match &plan {
            Plan::Nothing => {}
            Plan::Hold { condition, is_new } => {
                self.was_held.store(true, Ordering::Relaxed);
                if *is_new {
                    warn!("{}", condition.message);
                }
            }
            Plan::Release { condition, confirmed } => {
                info!("{}", condition.message);
                self.was_held.store(false, Ordering::Relaxed);
                confirmed.iter().for_each(|held| self.guard.confirm(held.uids.clone()));
                self.guard.decide_again();
            }
        }
        Ok(plan)
    }

    async fn report(&self, observed: &Observed, plan: Plan, now: Timestamp) -> Result<Requeue> {
        let (condition, is_new) = match plan {
            Plan::Nothing => return Ok(Requeue::OnChange),
            Plan::Hold { condition, is_new } => (condition, is_new),
            Plan::Release { condition, .. } => (condition, false),
        };
        let Some(cluster) = &observed.managed_cluster else { return Ok(Requeue::OnChange) };
        let note = condition.message.clone();
        self.write(cluster, condition, now).await?;
        if is_new {
            self.record(cluster, note).await;
        }
        Ok(Requeue::OnChange)
    }
}

/// Whether a change of a record changes what is held.
fn matters(change: Change<'_, AppliedManifestWork>) -> bool {
    let mark = |record: &AppliedManifestWork| record.annotations().get(annotations::EVICTION_HELD).cloned();
    match change {
        Change::Updated { old, new } => {
            write::is_deleting(old.as_ref()) != write::is_deleting(new.as_ref()) || mark(old) != mark(new)
        }
        Change::Added(_) | Change::Deleted(_) => true,
    }
}

fn plan(observed: &Observed) -> Plan {
    let is_reported = observed.managed_cluster.as_ref().is_some_and(|cluster| is_reported(cluster));
    let was_held = observed.was_held || is_reported;
    match &observed.held {
        None if was_held => {
            Plan::Release { condition: released("No work is missing that should exist".into()), confirmed: None }
        }
        None => Plan::Nothing,
        Some(held) if is_confirmed(observed, held) => {
            let message = format!("An administrator confirmed that {} are gone", names(held));
            Plan::Release { condition: released(message), confirmed: Some(held.clone()) }
        }
        Some(held) => {
            let condition = NewCondition::is_true(WORK_EVICTION_HELD, held.reason, message(&observed.cluster, held));
            Plan::Hold { condition, is_new: !was_held }
        }
    }
}

fn is_reported(cluster: &ManagedCluster) -> bool {
    let status = cluster.status.as_ref();
    status.is_some_and(|status| conditions::is_true(&status.conditions, WORK_EVICTION_HELD))
}

fn is_confirmed(observed: &Observed, held: &Held) -> bool {
    let cluster = observed.managed_cluster.as_ref();
    cluster.is_some_and(|cluster| cluster.annotations().get(annotations::CONFIRM_EVICTION) == Some(&held.token))
}

fn released(message: String) -> NewCondition {
    NewCondition::is_false(WORK_EVICTION_HELD, reasons::cluster::NO_EVICTION_HELD, message)
}

fn message(cluster: &str, held: &Held) -> String {
    let cause = match held.reason {
        reasons::cluster::HUB_RESTORED => {
            "the hub has older data than this agent has seen, as after a restore from a backup"
        }
        _ => "so many at once that the hub may have lost them",
    };
    format!(
        "{missing} of the {total} ManifestWorks that this agent applied do not exist on this hub, and it did not see anybody delete          them: {cause}. Their objects on the managed cluster are kept. Create the works again, from a backup or from their source;          or, if they are to be deleted, confirm that with: kubectl annotate managedcluster {cluster} {key}={token} --overwrite.          Missing: {names}",
        missing = held.works.len(),
        total = held.total,
        key = annotations::CONFIRM_EVICTION,
        token = held.token,
        names = names(held),
    )
}

/// The first names, and how many there are besides.
fn names(held: &Held) -> String {
    let (named, others) = held.works.split_at(NAMED.min(held.works.len()));
    match others.len() {
        0 => named.join(", "),
        others => format!("{} and {others} more", named.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn held(count: usize, token: &str) -> Held {
        let works: Vec<_> = (0..count).map(|n| format!("w{n}")).collect();
        let reason = reasons::cluster::MANY_WORKS_MISSING;
        Held { uids: works.iter().cloned().collect(), works, total: count + 1, reason, token: token.into() }
    }

    fn observed(held: Option<Held>, cluster: Option<Value>) -> Observed {
        let managed_cluster = cluster.map(|cluster| {
            let mut whole = json!({"metadata": {"name": "c1"}, "spec": {}});
            ocm_apimachinery::merge::apply(&mut whole, &cluster);
            Arc::new(serde_json::from_value(whole).unwrap())
        });
        Observed { cluster: "c1".into(), held, was_held: false, managed_cluster }
    }

    fn reported() -> Value {
        json!({"status": {"conditions": [{"type": WORK_EVICTION_HELD, "status": "True", "reason": "A", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"}]}})
    }

    #[test]
    fn nothing_is_reported_of_a_cluster_whose_works_exist() {
        assert_eq!(plan(&observed(None, Some(json!({})))), Plan::Nothing);
    }

    #[test]
    fn a_hold_names_the_works_and_the_command_that_confirms_and_is_new_once() {
        let Plan::Hold { condition, is_new } = plan(&observed(Some(held(12, "abc")), Some(json!({})))) else {
            panic!()
        };
        assert!(is_new && condition.status == "True");
        for part in
            ["12 of the 13", "kubectl annotate managedcluster c1", "confirm-eviction=abc", "w0, w1", "and 2 more"]
        {
            assert!(condition.message.contains(part), "{part} is not in {}", condition.message);
        }
        let again = plan(&observed(Some(held(12, "abc")), Some(reported())));
        assert_eq!(again, Plan::Hold { condition: condition.clone(), is_new: false }, "after a restart");
        let again = plan(&Observed { was_held: true, ..observed(Some(held(12, "abc")), None) });
        assert_eq!(again, Plan::Hold { condition, is_new: false }, "the hub has no ManagedCluster");
    }

    #[test]
    fn only_the_token_of_these_records_confirms() {
        let annotated = |token: &str| json!({"metadata": {"annotations": {annotations::CONFIRM_EVICTION: token}}});
        for token in ["old", "", "true"] {
            let plan = plan(&observed(Some(held(3, "abc")), Some(annotated(token))));
            assert!(matches!(plan, Plan::Hold { .. }), "{token}");
        }
        let plan = plan(&observed(Some(held(3, "abc")), Some(annotated("abc"))));
        let Plan::Release { condition, confirmed } = plan else { panic!("{plan:?}") };
        assert_eq!((condition.status, confirmed), ("False", Some(held(3, "abc"))));
    }

    #[test]
    fn a_hold_that_ended_by_itself_is_reported_once() {
        assert!(matches!(plan(&observed(None, Some(reported()))), Plan::Release { confirmed: None, .. }));
        let unreported = Observed { was_held: true, ..observed(None, None) };
        assert!(matches!(plan(&unreported), Plan::Release { confirmed: None, .. }));
    }
}
