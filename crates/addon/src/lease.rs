//! [`LeaseUpdater`]: how an agent reports its health.

use std::{fmt, future::Future, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use jiff::Timestamp;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::{MicroTime, OwnerReference},
};
use kube::{Api, Client, api::ObjectMeta};
use ocm_api::limits::{LEASE_DURATION_SECONDS, LEASE_JITTER};
use ocm_runtime::{
    Backoff, Context, Error,
    error::{chain, found},
    write,
};
use tokio::time::sleep;
use tracing::{debug, warn};

use crate::{author, owner};

/// How often the lease is renewed; up to a quarter is added at random, so that a fleet spreads out.
const PERIOD: Duration = Duration::from_secs(60);

/// After how long a failed renewal is retried.
const RETRY: Backoff = Backoff::new(Duration::from_secs(1), PERIOD);

type Check = Arc<dyn Fn() -> BoxFuture<'static, bool> + Send + Sync>;

/// Renews an agent's lease every minute while the agent is healthy.
///
/// The lease has the add-on's name and is in the agent's namespace on the managed cluster, where the cluster's own agent
/// reads it and reports condition `Available` to the hub. A lease that was not renewed for five minutes makes the add-on
/// unavailable.
///
/// ```
/// # fn example(client: kube::Client, context: &ocm_runtime::Context) {
/// use ocm_addon::LeaseUpdater;
///
/// LeaseUpdater::new(client, "hello", "default").health_check(|| async { true }).spawn(context);
/// # }
/// ```
#[doc(alias = "NewLeaseUpdater")]
#[derive(Clone)]
pub struct LeaseUpdater {
    leases: Api<Lease>,
    name: String,
    namespace: String,
    checks: Vec<Check>,
    owner: Option<OwnerReference>,
    hub: Option<Hub>,
}

#[derive(Clone)]
struct Hub {
    leases: Api<Lease>,
    cluster: String,
}

impl fmt::Debug for LeaseUpdater {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("LeaseUpdater");
        debug.field("name", &self.name).field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

impl LeaseUpdater {
    /// A lease of the add-on's name in the namespace of its agent. `client` is for the managed cluster, where it must be
    /// allowed to get, create and patch leases in that namespace.
    pub fn new(client: Client, addon: impl Into<String>, namespace: impl Into<String>) -> Self {
        let namespace = namespace.into();
        let leases = Api::namespaced(client, &namespace);
        Self { leases, name: addon.into(), namespace, checks: Vec::new(), owner: None, hub: None }
    }

    /// Renews only while this returns true; of several checks, all must.
    #[must_use]
    pub fn health_check<F, W>(mut self, is_healthy: F) -> Self
    where
        F: Fn() -> W + Send + Sync + 'static,
        W: Future<Output = bool> + Send + 'static,
    {
        self.checks.push(Arc::new(move || Box::pin(is_healthy())));
        self
    }

    /// Makes an object in the same namespace the lease's owner, such as the agent's Deployment, so that the lease is deleted
    /// with it. Without an owner the lease stays when the add-on is removed.
    #[must_use]
    pub fn owned_by(mut self, owner: OwnerReference) -> Self {
        self.owner = Some(owner);
        self
    }

    /// Renews a lease in the cluster's namespace on the hub instead, if the managed cluster has no leases or not that
    /// namespace.
    #[doc(alias = "WithHubLeaseConfig")]
    #[must_use]
    pub fn hub_fallback(mut self, hub: Client, cluster: impl Into<String>) -> Self {
        let cluster = cluster.into();
        self.hub = Some(Hub { leases: Api::namespaced(hub, &cluster), cluster });
        self
    }

    /// Renews the lease now and from now on, until `context` ends.
    pub fn spawn(self, context: &Context) {
        let clock = context.clock().clone();
        context.spawn(async move {
            let mut delays = RETRY.delays();
            loop {
                let pause = match self.renew(clock.now()).await {
                    Ok(()) => {
                        delays = RETRY.delays();
                        period(rand::random())
                    }
                    Err(error) => {
                        let retry_in = delays.next_delay();
                        warn!(error = %chain(&error), lease = self.name, ?retry_in, "cannot renew the add-on's lease, retrying");
                        retry_in
                    }
                };
                sleep(pause).await;
            }
        });
    }

    /// Renews the lease once, if the agent is healthy.
    async fn renew(&self, now: Timestamp) -> Result<(), Error> {
        for check in &self.checks {
            let is_healthy = author::call(async { check().await }).await.unwrap_or_else(|no_answer| {
                warn!(lease = self.name, error = %no_answer, "a health check failed");
                false
            });
            if !is_healthy {
                warn!(lease = self.name, "the agent is not healthy, so its lease is not renewed");
                return Ok(());
            }
        }
        match (&self.hub, self.renew_in(&self.leases, &self.namespace, self.owner.as_ref(), now).await) {
            (Some(hub), Err(error)) if error.is_not_found() => {
                debug!(lease = self.name, "the managed cluster takes no lease, renewing one on the hub");
                self.renew_in(&hub.leases, &hub.cluster, None, now).await
            }
            (_, renewed) => renewed,
        }
    }

    async fn renew_in(
        &self,
        leases: &Api<Lease>,
        namespace: &str,
        owner: Option<&OwnerReference>,
        now: Timestamp,
    ) -> Result<(), Error> {
        let known = write::get(leases, &self.name).await?;
        match known {
            Some(old) => found(write::patch(leases, &old, &renewed(old.clone(), owner, now)).await).map(|_| ()),
            None => {
                let metadata = ObjectMeta {
                    name: Some(self.name.clone()),
                    namespace: Some(namespace.into()),
                    ..ObjectMeta::default()
                };
                let lease = renewed(Lease { metadata, spec: None }, owner, now);
                write::create(leases, &lease).await.map(|_| ())
            }
        }
    }
}

fn renewed(mut lease: Lease, owner: Option<&OwnerReference>, now: Timestamp) -> Lease {
    let spec = lease.spec.get_or_insert_with(|| LeaseSpec {
        lease_duration_seconds: Some(LEASE_DURATION_SECONDS),
        ..LeaseSpec::default()
    });
    spec.renew_time = Some(MicroTime(now));
    if let Some(owner) = owner {
        owner::adopt(&mut lease.metadata, std::slice::from_ref(owner));
    }
    lease
}

/// How long until the next renewal; `random` is from 0 to 1.
fn period(random: f64) -> Duration {
    PERIOD.mul_f64(1.0 + LEASE_JITTER * random)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        Timestamp::from_second(1_700_000_000).unwrap()
    }

    #[test]
    fn a_new_lease_lasts_a_minute_and_a_known_one_only_gets_the_time() {
        let spec = renewed(Lease::default(), None, now()).spec.unwrap();
        assert_eq!((spec.lease_duration_seconds, spec.renew_time), (Some(60), Some(MicroTime(now()))));
        let known = Lease {
            spec: Some(LeaseSpec { lease_duration_seconds: Some(7), ..Default::default() }),
            ..Default::default()
        };
        let again = renewed(known, None, now());
        assert_eq!(again.spec.unwrap().lease_duration_seconds, Some(7));
        assert_eq!(again.metadata.owner_references, None);
    }

    #[test]
    fn the_lease_goes_with_its_owner() {
        let owner = OwnerReference { name: "hello-agent".into(), ..OwnerReference::default() };
        let lease = renewed(Lease::default(), Some(&owner), now());
        assert_eq!(lease.metadata.owner_references, Some(vec![owner.clone()]));
        let other = OwnerReference { name: "other".into(), ..OwnerReference::default() };
        let mut shared = Lease::default();
        shared.metadata.owner_references = Some(vec![other.clone()]);
        let lease = renewed(shared, Some(&owner), now());
        assert_eq!(lease.metadata.owner_references, Some(vec![other, owner]), "other owners stay");
    }

    #[test]
    fn it_is_renewed_every_minute_and_a_quarter_at_most_and_sooner_after_a_failure() {
        assert_eq!(period(0.0), Duration::from_secs(60));
        assert_eq!(period(1.0), Duration::from_secs(75));
        let mut delays = RETRY.delays();
        let retries: Vec<_> = (0..9).map(|_| delays.next_delay()).collect();
        assert!(retries[0] <= Duration::from_secs(1) && retries.iter().all(|delay| *delay <= PERIOD), "{retries:?}");
    }
}
