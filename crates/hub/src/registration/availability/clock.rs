//! Reports agents whose clock differs from the hub's.
//!
//! A renewal carries the agent's time. For each renewal → is it near the hub's time? → condition
//! `ManagedClusterConditionClockSynced`. Nothing else triggers a reconcile: an old renewal says nothing about a clock.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::ResourceExt as _;
use ocm_api::{
    annotations::SKIP_CLOCK_SYNC_CHECK,
    cluster::v1::ManagedCluster,
    conditions::cluster::CLOCK_SYNCED,
    leases,
    reasons::cluster::{CLOCK_OUT_OF_SYNC, CLOCK_SYNCED as CLOCK_IS_SYNCED},
};
use ocm_runtime::{Cache, Change, ControllerBuilder, ObjectKey, Requeue, StatusController, conditions::NewCondition};

use super::lease::renewed;
use crate::{
    caches::{self, cluster_of},
    context::HubContext,
    error::{Error, Result},
    registration::status::{condition_status, lease_grace, set_condition},
};

/// See the module.
#[derive(Debug)]
pub(crate) struct ClockController {
    hub: HubContext,
    clusters: Cache<ManagedCluster>,
    leases: Cache<Lease>,
}

/// A cluster, and the time of its agent's last renewal.
#[derive(Debug)]
pub(crate) struct Observed {
    cluster: Arc<ManagedCluster>,
    renewed: Timestamp,
}

impl ClockController {
    pub(crate) fn new(hub: &HubContext) -> Self {
        let leases = caches::leases(&hub.informers);
        Self { clusters: caches::clusters(&hub.informers), leases, hub: hub.clone() }
    }
}

impl StatusController for ClockController {
    const NAME: &'static str = "cluster-clock";
    type Key = String;
    type Observed = Observed;
    type Plan = Option<NewCondition>;
    type Error = Error;

    fn setup(&self, builder: &mut ControllerBuilder<'_, String>) {
        builder.waits_for(&self.clusters);
        builder
            .watches(&self.leases, |change| is_renewal(change).then(|| cluster_of(change.object().as_ref())).flatten());
    }

    async fn observe(&self, key: &String) -> Result<Option<Observed>> {
        let lease = self.leases.get(&ObjectKey::new(key, leases::MANAGED_CLUSTER));
        let renewed = lease.and_then(|lease| renewed(&lease));
        let cluster = self.clusters.named(key);
        Ok(cluster.zip(renewed).map(|(cluster, renewed)| Observed { cluster, renewed }))
    }

    fn plan(observed: &Observed, now: Timestamp) -> Option<NewCondition> {
        let condition = condition(observed, now);
        let reported = condition_status(&observed.cluster, CLOCK_SYNCED);
        (reported != Some(condition.status)).then_some(condition)
    }

    async fn report(&self, observed: &Observed, condition: Option<NewCondition>, now: Timestamp) -> Result<Requeue> {
        if let Some(condition) = condition {
            let new = set_condition(&observed.cluster, condition, now);
            self.hub.writer().patch_status(&observed.cluster, &new).await?;
        }
        Ok(Requeue::OnChange)
    }
}

fn is_renewal(change: Change<'_, Lease>) -> bool {
    let Change::Updated { old, new } = change else { return false };
    new.name_any() == leases::MANAGED_CLUSTER && renewed(old) != renewed(new)
}

fn condition(observed: &Observed, now: Timestamp) -> NewCondition {
    let grace = lease_grace(&observed.cluster);
    let skip = observed.cluster.annotations().get(SKIP_CLOCK_SYNC_CHECK).is_some_and(|value| value == "true");
    let off = now.duration_since(observed.renewed);
    if skip || off.abs() < grace {
        let message = "The agent's clock and the hub's agree well enough.";
        return NewCondition::is_true(CLOCK_SYNCED, CLOCK_IS_SYNCED, message);
    }
    let direction = if off.is_positive() { "behind" } else { "ahead of" };
    let message = format!(
        "The agent's clock is {} s {direction} the hub's, and {} s or more count as out of sync. The cluster may be \
         reported as unreachable, or as available when it is not: correct the clock of the node the agent runs on.",
        off.abs().as_secs(),
        grace.as_secs()
    );
    NewCondition::is_false(CLOCK_SYNCED, CLOCK_OUT_OF_SYNC, message)
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use crate::testing::{cluster, now, with_condition};

    fn plan(cluster: ManagedCluster, ahead: i64) -> Option<NewCondition> {
        let renewed = now() + SignedDuration::from_secs(ahead);
        ClockController::plan(&Observed { cluster: Arc::new(cluster), renewed }, now())
    }

    #[test]
    fn a_clock_within_five_lease_durations_is_in_sync_either_way() {
        for (ahead, status) in [(0, "True"), (299, "True"), (-299, "True"), (300, "False"), (-300, "False")] {
            assert_eq!(plan(cluster("c1"), ahead).unwrap().status, status, "{ahead}");
        }
    }

    #[test]
    fn the_message_says_by_how_much_and_which_way() {
        assert!(plan(cluster("c1"), 3600).unwrap().message.contains("3600 s ahead of the hub's"));
        assert!(plan(cluster("c1"), -3600).unwrap().message.contains("3600 s behind the hub's"));
    }

    #[test]
    fn what_is_reported_already_is_not_written_again() {
        assert_eq!(plan(with_condition(&cluster("c1"), CLOCK_SYNCED, "True", "R"), 1), None);
        assert_eq!(plan(with_condition(&cluster("c1"), CLOCK_SYNCED, "False", "R"), 9999), None);
        assert!(plan(with_condition(&cluster("c1"), CLOCK_SYNCED, "False", "R"), 1).is_some());
    }

    #[test]
    fn an_annotation_switches_the_check_off() {
        let mut cluster = cluster("c1");
        cluster.annotations_mut().insert(SKIP_CLOCK_SYNC_CHECK.into(), "true".into());
        assert_eq!(plan(cluster, 9999).unwrap().status, "True");
    }
}
