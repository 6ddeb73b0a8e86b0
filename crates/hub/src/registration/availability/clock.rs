//! Reports agents whose clock differs from the hub's.
//!
//! A renewal carries the agent's time. For each renewal → is it near the hub's time? → condition
//! `ManagedClusterConditionClockSynced`. Nothing else triggers a reconcile: an old renewal says nothing about a clock.
//!
//! An agent that joins renews the lease and reports its status at the same moment. A good clock is reported after that
//! status: otherwise the API server refuses one of the two patches, since both have the same resource version.
//!
//! Nearly every renewal says what is reported already. It is recognized without reading the cluster ([`is_as_reported`]).

use std::{sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use kube::ResourceExt as _;
use ocm_api::{
    annotations::SKIP_CLOCK_SYNC_CHECK,
    cluster::v1::ManagedCluster,
    conditions::{
        cluster::{CLOCK_SYNCED, JOINED},
        status,
    },
    leases,
    limits::LEASE_GRACE_FACTOR,
    reasons::cluster::{CLOCK_OUT_OF_SYNC, CLOCK_SYNCED as CLOCK_IS_SYNCED},
};
use ocm_runtime::{
    Cache, Change, ControllerBuilder, ObjectKey, Requeue, StatusController, conditions::NewCondition, informer::View,
};

use super::lease::renewed;
use crate::{
    caches::{self, cluster_of},
    context::HubContext,
    error::{Error, Result},
    registration::status::{condition_status, lease_grace, set_condition},
};

/// How long an agent has for its first status before a good clock is reported anyway.
const FIRST_STATUS: SignedDuration = SignedDuration::from_secs(5);
/// The grace of the shortest lease duration, a second.
const LEAST_GRACE: SignedDuration = SignedDuration::from_secs(LEASE_GRACE_FACTOR as i64);
/// How often to check whether the agent has reported its first status.
const RECHECK: Duration = Duration::from_millis(500);

/// What to do about a renewal.
#[derive(Debug, PartialEq)]
pub(crate) enum Plan {
    /// The condition says it already.
    Nothing,
    /// The agent is about to report its first status.
    Wait,
    Report(NewCondition),
}

/// See the module.
#[derive(Debug)]
pub(crate) struct ClockController {
    hub: HubContext,
    clusters: Cache<ManagedCluster>,
    /// The clusters whose clock is reported as good.
    synced: View<()>,
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
        let (clusters, leases) = (caches::clusters(&hub.informers), caches::leases(&hub.informers));
        Self { synced: clusters.view(is_synced), clusters, leases, hub: hub.clone() }
    }
}

impl StatusController for ClockController {
    const NAME: &'static str = "cluster-clock";
    type Key = String;
    type Observed = Observed;
    type Plan = Plan;
    type Error = Error;

    fn setup(&self, builder: &mut ControllerBuilder<'_, String>) {
        builder.waits_for(&self.clusters);
        let (synced, clock) = (self.synced.clone(), self.hub.clock.clone());
        builder.watches(&self.leases, move |change| {
            let cluster = is_renewal(change).then(|| cluster_of(change.object().as_ref())).flatten();
            let is_synced = |cluster: &str| synced.get(&ObjectKey::new("", cluster)).is_some();
            let is_done = |cluster: &str| is_synced(cluster) && is_as_reported(change.object(), clock.now());
            cluster.filter(|cluster| !is_done(cluster))
        });
    }

    async fn observe(&self, key: &String) -> Result<Option<Observed>> {
        let lease = self.leases.get(&ObjectKey::new(key, leases::MANAGED_CLUSTER));
        let renewed = lease.and_then(|lease| renewed(&lease));
        let cluster = self.clusters.named(key);
        Ok(cluster.zip(renewed).map(|(cluster, renewed)| Observed { cluster, renewed }))
    }

    fn plan(observed: &Observed, now: Timestamp) -> Plan {
        let condition = condition(observed, now);
        if condition_status(&observed.cluster, CLOCK_SYNCED) == Some(condition.status) {
            return Plan::Nothing;
        }
        let is_good = condition.status == status::TRUE;
        if is_good && is_joining(observed, now) { Plan::Wait } else { Plan::Report(condition) }
    }

    async fn report(&self, observed: &Observed, plan: Plan, now: Timestamp) -> Result<Requeue> {
        match plan {
            Plan::Nothing => Ok(Requeue::OnChange),
            Plan::Wait => Ok(Requeue::After(RECHECK)),
            Plan::Report(condition) => {
                let new = set_condition(&observed.cluster, condition, now);
                self.hub.writer().patch_status(&observed.cluster, &new).await?;
                Ok(Requeue::OnChange)
            }
        }
    }
}

/// Whether the agent has just renewed the lease and not reported a status yet.
fn is_joining(observed: &Observed, now: Timestamp) -> bool {
    let is_recent = now.duration_since(observed.renewed).abs() < FIRST_STATUS;
    is_recent && condition_status(&observed.cluster, JOINED).is_none()
}

fn is_renewal(change: Change<'_, Lease>) -> bool {
    let Change::Updated { old, new } = change else { return false };
    new.name_any() == leases::MANAGED_CLUSTER && renewed(old) != renewed(new)
}

fn is_synced(cluster: &ManagedCluster) -> Option<()> {
    (condition_status(cluster, CLOCK_SYNCED) == Some(status::TRUE)).then_some(())
}

/// Whether a renewal confirms a clock that is reported as good, whatever the cluster's lease duration.
fn is_as_reported(lease: &Lease, now: Timestamp) -> bool {
    renewed(lease).is_some_and(|renewed| now.duration_since(renewed).abs() < LEAST_GRACE)
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
    use k8s_openapi::{api::coordination::v1::LeaseSpec, apimachinery::pkg::apis::meta::v1::MicroTime};

    use super::*;
    use crate::testing::{cluster, now, with_condition};

    fn planned(cluster: ManagedCluster, ahead: i64) -> Plan {
        let renewed = now() + SignedDuration::from_secs(ahead);
        ClockController::plan(&Observed { cluster: Arc::new(cluster), renewed }, now())
    }

    /// Of a cluster whose agent has reported before.
    fn plan(cluster: &ManagedCluster, ahead: i64) -> Option<NewCondition> {
        match planned(with_condition(cluster, JOINED, "True", "R"), ahead) {
            Plan::Report(condition) => Some(condition),
            Plan::Nothing => None,
            Plan::Wait => panic!("there is nothing to wait for"),
        }
    }

    #[test]
    fn a_good_clock_is_reported_after_the_first_status_or_when_that_does_not_come() {
        for ahead in [0, -4, 4] {
            assert_eq!(planned(cluster("c1"), ahead), Plan::Wait, "{ahead}");
        }
        assert!(matches!(planned(cluster("c1"), -5), Plan::Report(_)));
        assert!(matches!(planned(cluster("c1"), 5), Plan::Report(_)));
        assert!(plan(&cluster("c1"), 0).is_some(), "its agent has reported");
    }

    #[test]
    fn a_renewal_that_any_lease_duration_allows_confirms_a_good_clock_without_reading_the_cluster() {
        let lease = |ahead| {
            let renew_time = Some(MicroTime(now() + SignedDuration::from_secs(ahead)));
            Lease { spec: Some(LeaseSpec { renew_time, ..LeaseSpec::default() }), ..Lease::default() }
        };
        let mut shortest = with_condition(&cluster("c1"), CLOCK_SYNCED, "True", "R");
        shortest.spec.lease_duration_seconds = Some(1);
        for ahead in [0, 4, -4] {
            assert!(is_as_reported(&lease(ahead), now()), "{ahead}");
            assert_eq!(plan(&shortest, ahead), None, "{ahead}");
        }
        assert!(!is_as_reported(&lease(5), now()) && !is_as_reported(&lease(-5), now()));
        assert!(!is_as_reported(&Lease::default(), now()), "it was never renewed");
        assert_eq!((is_synced(&shortest), is_synced(&cluster("c1"))), (Some(()), None));
    }

    #[test]
    fn a_wrong_clock_is_reported_at_once_to_an_agent_that_has_not_reported_yet() {
        let mut hasty = cluster("c1");
        hasty.spec.lease_duration_seconds = Some(1);
        assert!(matches!(planned(cluster("c1"), 9999), Plan::Report(_)));
        assert!(matches!(planned(hasty, -5), Plan::Report(condition) if condition.status == "False"));
    }

    #[test]
    fn a_clock_within_five_lease_durations_is_in_sync_either_way() {
        for (ahead, status) in [(0, "True"), (299, "True"), (-299, "True"), (300, "False"), (-300, "False")] {
            assert_eq!(plan(&cluster("c1"), ahead).unwrap().status, status, "{ahead}");
        }
    }

    #[test]
    fn the_message_says_by_how_much_and_which_way() {
        assert!(plan(&cluster("c1"), 3600).unwrap().message.contains("3600 s ahead of the hub's"));
        assert!(plan(&cluster("c1"), -3600).unwrap().message.contains("3600 s behind the hub's"));
    }

    #[test]
    fn what_is_reported_already_is_not_written_again() {
        assert_eq!(plan(&with_condition(&cluster("c1"), CLOCK_SYNCED, "True", "R"), 1), None);
        assert_eq!(plan(&with_condition(&cluster("c1"), CLOCK_SYNCED, "False", "R"), 9999), None);
        assert!(plan(&with_condition(&cluster("c1"), CLOCK_SYNCED, "False", "R"), 1).is_some());
    }

    #[test]
    fn an_annotation_switches_the_check_off() {
        let mut cluster = cluster("c1");
        cluster.annotations_mut().insert(SKIP_CLOCK_SYNC_CHECK.into(), "true".into());
        assert_eq!(plan(&cluster, 9999).unwrap().status, "True");
    }
}
