//! Renews the cluster's lease on the hub, by which the hub knows that the agent is running.
//!
//! The hub creates the lease when it accepts the cluster. The agent renews it immediately and then once per lease duration,
//! plus up to a quarter of it at random, so that the renewals of many clusters spread out.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::{api::coordination::v1::Lease, apimachinery::pkg::apis::meta::v1::MicroTime};
use kube::Api;
use ocm_api::{cluster::v1::ManagedCluster, conditions, leases, limits};
use ocm_runtime::{
    Cache, Context, Controller, ControllerBuilder, Error, Informers, Requeue, conditions as set, error::chain,
    informer::WatchFilter, write,
};
use tokio::time::Instant;
use tracing::{debug, warn};

/// The first back-off if the lease does not exist yet or the hub does not answer. It doubles with every failure, up to the
/// lease duration.
const FIRST_RETRY: Duration = Duration::from_secs(1);
const MOST_DOUBLINGS: u32 = 10;

/// Renews the lease.
pub(crate) struct LeaseRenewal {
    clusters: Cache<ManagedCluster>,
    leases: Api<Lease>,
    context: Context,
    schedule: Mutex<Schedule>,
    /// The lease as last written, so that a renewal takes one request.
    held: Mutex<Option<Lease>>,
}

/// When the next renewal is due.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Schedule {
    /// The lease duration and the time of the next renewal. `None` before the first one.
    due: Option<(Duration, Instant)>,
    /// Failures since the last renewal.
    misses: u32,
}

/// The input of `plan`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Observed {
    accepted: bool,
    duration: Duration,
    /// The lease duration of the current wait, and the rest of it.
    waiting: Option<(Duration, Duration)>,
}

/// What to do about the lease.
#[derive(Debug, PartialEq)]
pub(crate) enum Plan {
    /// The cluster is not accepted.
    Stop,
    Renew,
    Wait(Duration),
}

pub(crate) enum Applied {
    Stopped,
    Renewed,
    Missing,
    Failed(Error),
    Waiting(Duration),
}

impl LeaseRenewal {
    pub(crate) fn new(context: &Context, hub: &Informers, cluster: &str) -> Self {
        Self {
            clusters: hub.all(WatchFilter::named(cluster)),
            leases: Api::namespaced(hub.client().clone(), cluster),
            context: context.clone(),
            schedule: Mutex::default(),
            held: Mutex::default(),
        }
    }

    fn schedule(&self) -> MutexGuard<'_, Schedule> {
        self.schedule.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the lease: agents have no permission to patch it.
    async fn renew(&self) -> Result<Applied, Error> {
        let Some(mut lease) = self.lease().await? else {
            debug!("the hub has not created the lease yet");
            return Ok(Applied::Missing);
        };
        lease.spec.get_or_insert_default().renew_time = Some(MicroTime(self.context.clock().now()));
        let renewed = write::replace(&self.leases, &lease).await?;
        *self.held() = Some(renewed);
        Ok(Applied::Renewed)
    }

    /// Takes the lease as last written, so that it is read again after a failure: it may have been changed or deleted.
    async fn lease(&self) -> Result<Option<Lease>, Error> {
        let held = self.held().take();
        match held {
            Some(lease) => Ok(Some(lease)),
            None => write::get(&self.leases, leases::MANAGED_CLUSTER).await,
        }
    }

    fn held(&self) -> MutexGuard<'_, Option<Lease>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn retry(&self, duration: Duration) -> Requeue {
        let misses = self.schedule().misses;
        self.wait(duration, retry_delay(misses, duration), misses + 1)
    }

    fn wait(&self, for_duration: Duration, delay: Duration, misses: u32) -> Requeue {
        *self.schedule() = Schedule { due: Some((for_duration, Instant::now() + delay)), misses };
        Requeue::After(delay)
    }
}

impl Controller for LeaseRenewal {
    const NAME: &'static str = "cluster-lease";
    type Key = String;
    type Observed = Observed;
    type Plan = Plan;
    type Applied = Applied;
    type Error = Error;

    fn setup(&self, builder: &mut ControllerBuilder<'_, String>) {
        builder.watches(&self.clusters, |change| change.object().metadata.name.clone());
    }

    async fn observe(&self, key: &String) -> Result<Option<Observed>, Error> {
        let now = Instant::now();
        let left = |(duration, due): (Duration, Instant)| (duration, due.saturating_duration_since(now));
        let waiting = self.schedule().due.map(left);
        Ok(Some(observed(self.clusters.named(key), waiting)))
    }

    fn plan(observed: &Observed, _: Timestamp) -> Plan {
        match observed.waiting {
            _ if !observed.accepted => Plan::Stop,
            Some((duration, left)) if duration == observed.duration && !left.is_zero() => Plan::Wait(left),
            _ => Plan::Renew,
        }
    }

    async fn apply(&self, _: &Observed, plan: Plan) -> Result<Applied, Error> {
        match plan {
            Plan::Stop => Ok(Applied::Stopped),
            Plan::Wait(left) => Ok(Applied::Waiting(left)),
            Plan::Renew => match self.renew().await {
                Err(error) if !error.is_conflict() => Ok(Applied::Failed(error)),
                renewed => renewed,
            },
        }
    }

    async fn report(&self, observed: &Observed, applied: Applied, _: Timestamp) -> Result<Requeue, Error> {
        Ok(match applied {
            Applied::Stopped => {
                *self.schedule() = Schedule::default();
                Requeue::OnChange
            }
            Applied::Waiting(left) => Requeue::After(left),
            Applied::Renewed => self.wait(observed.duration, jittered(observed.duration, rand::random()), 0),
            Applied::Missing => self.retry(observed.duration),
            Applied::Failed(error) => {
                let next = self.retry(observed.duration);
                warn!(error = %chain(&error), ?next, "cannot renew the cluster's lease, retrying");
                next
            }
        })
    }
}

fn observed(cluster: Option<Arc<ManagedCluster>>, waiting: Option<(Duration, Duration)>) -> Observed {
    let accepted = cluster.as_ref().is_some_and(|cluster| is_accepted(cluster));
    let seconds = cluster.and_then(|cluster| cluster.spec.lease_duration_seconds).unwrap_or(0);
    let seconds = u64::try_from(seconds).ok().filter(|seconds| *seconds > 0);
    let default = u64::try_from(limits::LEASE_DURATION_SECONDS).unwrap_or(60);
    Observed { accepted, duration: Duration::from_secs(seconds.unwrap_or(default)), waiting }
}

/// Whether the hub has accepted the cluster.
pub(crate) fn is_accepted(cluster: &ManagedCluster) -> bool {
    let status = cluster.status.as_ref();
    status.is_some_and(|status| set::is_true(&status.conditions, conditions::cluster::HUB_ACCEPTED))
}

fn jittered(duration: Duration, random: f64) -> Duration {
    duration.mul_f64(1.0 + limits::LEASE_JITTER * random)
}

/// Not a [`ocm_runtime::Backoff`]: it is part of a pure plan, whose longest delay is the lease's duration of the moment.
fn retry_delay(misses: u32, duration: Duration) -> Duration {
    (FIRST_RETRY * (1 << misses.min(MOST_DOUBLINGS))).min(duration)
}

#[cfg(test)]
mod tests {
    use ocm_api::{cluster::v1::ManagedClusterStatus, reasons};
    use ocm_runtime::conditions::NewCondition;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn cluster(accepted: bool, seconds: Option<i32>) -> Arc<ManagedCluster> {
        let mut cluster = ManagedCluster::default();
        cluster.spec.lease_duration_seconds = seconds;
        let accepted = match accepted {
            true => NewCondition::is_true(
                conditions::cluster::HUB_ACCEPTED,
                reasons::cluster::HUB_CLUSTER_ADMIN_ACCEPTED,
                "",
            ),
            false => NewCondition::is_false(
                conditions::cluster::HUB_ACCEPTED,
                reasons::cluster::HUB_CLUSTER_ADMIN_DENIED,
                "",
            ),
        };
        let conditions = vec![accepted.at(Timestamp::UNIX_EPOCH, None)];
        cluster.status = Some(ManagedClusterStatus { conditions, ..ManagedClusterStatus::default() });
        Arc::new(cluster)
    }

    fn plan(cluster: Option<Arc<ManagedCluster>>, waiting: Option<(Duration, Duration)>) -> Plan {
        LeaseRenewal::plan(&observed(cluster, waiting), Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn an_accepted_cluster_renews_at_once_and_then_waits() {
        assert_eq!(plan(Some(cluster(true, None)), None), Plan::Renew);
        let left = Duration::from_secs(7);
        assert_eq!(plan(Some(cluster(true, None)), Some((MINUTE, left))), Plan::Wait(left));
        assert_eq!(plan(Some(cluster(true, None)), Some((MINUTE, Duration::ZERO))), Plan::Renew);
    }

    #[test]
    fn another_lease_duration_takes_effect_at_once() {
        assert_eq!(plan(Some(cluster(true, Some(5))), Some((MINUTE, MINUTE))), Plan::Renew);
        assert_eq!(plan(Some(cluster(true, Some(0))), Some((MINUTE, MINUTE))), Plan::Wait(MINUTE), "0 is 60");
    }

    #[test]
    fn a_cluster_that_is_denied_or_gone_stops() {
        assert_eq!(plan(Some(cluster(false, None)), Some((MINUTE, Duration::ZERO))), Plan::Stop);
        assert_eq!(plan(Some(Arc::default()), None), Plan::Stop);
        assert_eq!(plan(None, None), Plan::Stop);
    }

    #[test]
    fn up_to_a_quarter_is_added_to_the_lease_duration() {
        assert_eq!(jittered(MINUTE, 0.0), MINUTE);
        assert_eq!(jittered(MINUTE, 1.0), Duration::from_secs(75));
    }

    #[test]
    fn a_lease_that_is_not_there_yet_is_looked_for_soon_and_then_later() {
        let delays: Vec<_> = (0..8).map(|misses| retry_delay(misses, MINUTE).as_secs()).collect();
        assert_eq!(delays, [1, 2, 4, 8, 16, 32, 60, 60]);
    }
}
