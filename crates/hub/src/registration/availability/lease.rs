//! Reports clusters whose agent stopped renewing its lease.
//!
//! The hub creates a lease for each accepted cluster, and its agent renews it. Lease and clock → [`Plan`]: create the
//! lease, wait until it expires, or set condition `ManagedClusterConditionAvailable` to Unknown and record an event. Only
//! the agent sets it to True again.
//!
//! A renewal does not trigger a reconcile: the one at the time of expiry finds the lease renewed, and waits again.

use std::{sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::{Api, ResourceExt as _, api::ObjectMeta};
use ocm_api::{
    cluster::v1::ManagedCluster,
    conditions::{
        cluster::{AVAILABLE, HUB_ACCEPTED},
        status,
    },
    labels, leases, reasons,
};
use ocm_runtime::{
    Cache, Change, Controller, ControllerBuilder, ObjectKey, Requeue,
    conditions::NewCondition,
    error::{chain, found},
    events::NewEvent,
    write,
};
use tracing::warn;

use crate::{
    caches::{self, check_adoptable, cluster_of},
    context::HubContext,
    error::{Error, Result},
    registration::{
        names,
        status::{condition, condition_status, lease_grace, set_condition},
    },
};

/// Reason of the event.
const AVAILABLE_UNKNOWN: &str = "AvailableUnknown";

/// See the module.
#[derive(Debug)]
pub(crate) struct LeaseController {
    hub: HubContext,
    clusters: Cache<ManagedCluster>,
    leases: Cache<Lease>,
}

/// A cluster that was accepted once, and its lease.
#[derive(Debug)]
pub(crate) struct Observed {
    cluster: Arc<ManagedCluster>,
    lease: Option<Arc<Lease>>,
}

/// What to write, and when to reconcile again.
#[derive(Debug, PartialEq)]
pub(crate) struct Plan {
    create: Option<Box<Lease>>,
    /// The message of condition Unknown, if it must be written.
    unknown: Option<String>,
    next: Requeue,
}

impl LeaseController {
    pub(crate) fn new(hub: &HubContext) -> Self {
        let leases = caches::leases(&hub.informers);
        Self { clusters: caches::clusters(&hub.informers), leases, hub: hub.clone() }
    }

    /// Creates the lease, or adopts one that lost its label. Returns whether it exists now: without a namespace it cannot.
    async fn create(&self, lease: &Lease) -> Result<bool> {
        let namespace = lease.namespace().unwrap_or_default();
        let api: Api<Lease> = Api::namespaced(self.hub.client.clone(), &namespace);
        let created = match write::create(&api, lease).await {
            Err(error) if error.is_conflict() => relabel(&api, lease, error).await?,
            result => found(result)?,
        };
        let exists = created.is_some();
        created.into_iter().for_each(|lease| self.leases.record_write(lease));
        Ok(exists)
    }

    async fn record_event(&self, cluster: &ManagedCluster) {
        let name = cluster.name_any();
        let note = format!(
            "Cluster {name} has joined this hub, but its agent no longer reports. Check that the agent runs and can \
             reach the hub."
        );
        let event = NewEvent { type_: "Warning", reason: AVAILABLE_UNKNOWN, note };
        if let Err(error) = self.hub.recorder.record(&name, cluster, event).await {
            warn!(error = %chain(&error), "failed to record an event");
        }
    }
}

async fn relabel(api: &Api<Lease>, lease: &Lease, exists: ocm_runtime::Error) -> Result<Option<Lease>> {
    let Some(live) = write::get(api, &lease.name_any()).await? else { return Err(exists.into()) };
    check_adoptable(&live, &lease.namespace().unwrap_or_default())?;
    let mut new = live.clone();
    new.labels_mut().extend(lease.labels().clone());
    Ok(write::patch(api, &live, &new).await?.or(Some(live)))
}

impl Controller for LeaseController {
    const NAME: &'static str = "cluster-lease";
    type Key = String;
    type Observed = Observed;
    type Plan = Plan;
    type Applied = Plan;
    type Error = Error;

    fn setup(&self, builder: &mut ControllerBuilder<'_, String>) {
        builder.watches(&self.clusters, |change| concerns(change).then(|| change.object().name_any()));
        builder.watches(&self.leases, |change| {
            is_relevant(change).then(|| cluster_of(change.object().as_ref())).flatten()
        });
    }

    async fn observe(&self, key: &String) -> Result<Option<Observed>> {
        let lease = self.leases.get(&ObjectKey::new(key, leases::MANAGED_CLUSTER));
        let cluster = self.clusters.named(key).filter(|cluster| condition(cluster, HUB_ACCEPTED).is_some());
        let cluster = cluster.filter(|_| names::refusal(key, &self.hub.config.namespace).is_none());
        Ok(cluster.map(|cluster| Observed { cluster, lease }))
    }

    fn plan(observed: &Observed, now: Timestamp) -> Plan {
        match &observed.lease {
            Some(lease) => check(&observed.cluster, lease, now),
            None if write::is_deleting(observed.cluster.as_ref()) => {
                expired(&observed.cluster, None, Requeue::OnChange)
            }
            None => create(&observed.cluster, now),
        }
    }

    async fn apply(&self, observed: &Observed, mut plan: Plan) -> Result<Plan> {
        if let Some(lease) = plan.create.take()
            && !self.create(&lease).await?
        {
            plan.next = without_namespace(&observed.cluster, plan.next);
        }
        Ok(plan)
    }

    async fn report(&self, observed: &Observed, plan: Plan, now: Timestamp) -> Result<Requeue> {
        if let Some(message) = plan.unknown {
            let condition = NewCondition::is_unknown(AVAILABLE, reasons::cluster::LEASE_UPDATE_STOPPED, message);
            let new = set_condition(&observed.cluster, condition, now);
            if let Some(written) = self.hub.writer().patch_status(&observed.cluster, &new).await? {
                self.record_event(&written).await;
            }
        }
        Ok(plan.next)
    }
}

fn concerns(change: Change<'_, ManagedCluster>) -> bool {
    let relevant = |cluster: &ManagedCluster| {
        let health = condition_status(cluster, AVAILABLE).map(str::to_owned);
        let accepted = condition_status(cluster, HUB_ACCEPTED).map(str::to_owned);
        (health, accepted, cluster.spec.lease_duration_seconds, cluster.metadata.deletion_timestamp.clone())
    };
    match change {
        Change::Added(_) => true,
        Change::Updated { old, new } => relevant(old) != relevant(new),
        Change::Deleted(_) => false,
    }
}

/// Whether a change of a lease can mean that it expires earlier than expected.
fn is_relevant(change: Change<'_, Lease>) -> bool {
    let is_cluster_lease = change.object().name_any() == leases::MANAGED_CLUSTER;
    is_cluster_lease
        && match change {
            Change::Updated { old, new } => renewed(new).is_none_or(|new| Some(new) < renewed(old)),
            Change::Added(_) | Change::Deleted(_) => true,
        }
}

/// When the lease was renewed last.
pub(crate) fn renewed(lease: &Lease) -> Option<Timestamp> {
    lease.spec.as_ref()?.renew_time.as_ref().map(|time| time.0)
}

/// A lease that was never renewed has expired.
fn check(cluster: &ManagedCluster, lease: &Lease, now: Timestamp) -> Plan {
    let grace = lease_grace(cluster);
    let left = renewed(lease).map_or(SignedDuration::ZERO, |renewed| grace - now.duration_since(renewed));
    if left > SignedDuration::ZERO {
        return Plan { create: None, unknown: None, next: after(left) };
    }
    expired(cluster, Some(lease), after(grace))
}

fn create(cluster: &ManagedCluster, now: Timestamp) -> Plan {
    let name = cluster.name_any();
    let lease = Lease {
        metadata: ObjectMeta {
            name: Some(leases::MANAGED_CLUSTER.into()),
            namespace: Some(name.clone()),
            labels: Some([(labels::CLUSTER_NAME.to_owned(), name)].into()),
            ..ObjectMeta::default()
        },
        spec: Some(LeaseSpec {
            holder_identity: Some(leases::MANAGED_CLUSTER.into()),
            renew_time: Some(MicroTime(now)),
            ..LeaseSpec::default()
        }),
    };
    Plan { create: Some(Box::new(lease)), unknown: None, next: after(lease_grace(cluster)) }
}

/// An accepted cluster gets its namespace soon; any other may never get one.
fn without_namespace(cluster: &ManagedCluster, next: Requeue) -> Requeue {
    if cluster.spec.hub_accepts_client { Requeue::BackOff } else { next }
}

fn expired(cluster: &ManagedCluster, lease: Option<&Lease>, next: Requeue) -> Plan {
    let is_known = condition_status(cluster, AVAILABLE) == Some(status::UNKNOWN);
    Plan { create: None, unknown: (!is_known).then(|| message(cluster, lease)), next }
}

fn message(cluster: &ManagedCluster, lease: Option<&Lease>) -> String {
    let grace = lease_grace(cluster).as_secs();
    match lease.map(renewed) {
        None => "The cluster is being deleted and its lease is gone, so its state is unknown.".into(),
        Some(None) => {
            "The agent has never renewed the cluster's lease. Check that it runs and can reach the hub.".into()
        }
        Some(Some(at)) => format!(
            "The agent last renewed the cluster's lease at {at:.0}, more than {grace} s ago. Check that it runs and can \
             reach the hub."
        ),
    }
}

fn after(time: SignedDuration) -> Requeue {
    Requeue::After(Duration::try_from(time).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{accepted, cluster, deleting, now, with_accepted, with_condition};

    fn joined(available: &'static str) -> ManagedCluster {
        with_condition(&with_accepted(&cluster("c1"), "True", "A"), AVAILABLE, available, "R")
    }

    fn lease(renewed_ago: Option<i64>) -> Option<Arc<Lease>> {
        let renew_time = renewed_ago.map(|seconds| MicroTime(now() - SignedDuration::from_secs(seconds)));
        Some(Arc::new(Lease { spec: Some(LeaseSpec { renew_time, ..LeaseSpec::default() }), ..Lease::default() }))
    }

    fn plan(cluster: ManagedCluster, lease: Option<Arc<Lease>>) -> Plan {
        LeaseController::plan(&Observed { cluster: Arc::new(cluster), lease }, now())
    }

    #[test]
    fn a_cluster_without_a_lease_gets_one_with_label_holder_and_time_and_no_duration() {
        let lease = plan(joined("True"), None).create.unwrap();
        assert_eq!(lease.metadata.namespace.as_deref(), Some("c1"));
        assert_eq!(lease.labels()[labels::CLUSTER_NAME], "c1");
        let spec = lease.spec.unwrap();
        assert_eq!(spec.holder_identity.as_deref(), Some("managed-cluster-lease"));
        assert_eq!((spec.renew_time, spec.lease_duration_seconds), (Some(MicroTime(now())), None));
    }

    #[test]
    fn a_renewed_lease_is_checked_again_when_it_would_expire() {
        let plan = plan(joined("True"), lease(Some(10)));
        assert_eq!(plan, Plan { create: None, unknown: None, next: Requeue::After(Duration::from_secs(290)) });
    }

    #[test]
    fn a_lease_that_expired_makes_the_cluster_unknown_at_that_very_second_and_only_once() {
        assert!(plan(joined("True"), lease(Some(299))).unknown.is_none());
        let expired = plan(joined("True"), lease(Some(300)));
        assert!(expired.unknown.unwrap().contains("more than 300 s ago"));
        assert_eq!(expired.next, Requeue::After(Duration::from_secs(300)));
        assert_eq!(plan(joined("Unknown"), lease(Some(300))).unknown, None);
    }

    #[test]
    fn without_its_namespace_the_lease_of_an_accepted_cluster_is_tried_again_soon() {
        let next = Requeue::After(Duration::from_secs(300));
        assert_eq!(without_namespace(&accepted("c1"), next), Requeue::BackOff);
        assert_eq!(without_namespace(&cluster("c1"), next), next, "a denied cluster may have none for ever");
    }

    #[test]
    fn a_lease_that_was_never_renewed_has_expired() {
        assert!(plan(joined("True"), lease(None)).unknown.is_some());
    }

    #[test]
    fn a_deleted_cluster_without_a_lease_is_unknown_at_once() {
        let plan = plan(deleting(joined("True"), &["f"]), None);
        assert!(plan.unknown.is_some() && plan.create.is_none());
    }

    #[test]
    fn a_renewal_is_not_relevant_but_a_step_back_is() {
        let (early, late, never) = (lease(Some(9)).unwrap(), lease(Some(1)).unwrap(), lease(None).unwrap());
        let named = |lease: &Arc<Lease>| {
            let mut lease = Lease::clone(lease);
            lease.metadata.name = Some(leases::MANAGED_CLUSTER.into());
            Arc::new(lease)
        };
        let (early, late, never) = (named(&early), named(&late), named(&never));
        assert!(!is_relevant(Change::Updated { old: &early, new: &late }));
        assert!(is_relevant(Change::Updated { old: &late, new: &early }));
        assert!(is_relevant(Change::Updated { old: &late, new: &never }));
        assert!(!is_relevant(Change::Added(&lease(None).unwrap())), "another lease");
    }
}
