//! Reports by an add-on's lease whether the add-on is available.
//!
//! The lease is named after the add-on, in the namespace of its agent. An agent on a cluster without leases may keep it in the
//! cluster's namespace on the hub instead. Leases are polled, not watched: an add-on renews its lease once a minute.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use ocm_api::{
    addon::v1alpha1::{HealthCheckMode, ManagedClusterAddOn},
    conditions::addon::AVAILABLE,
    leases, limits,
    reasons::addon::{LEASE_NOT_FOUND, LEASE_UPDATE_STOPPED, LEASE_UPDATED},
};
use ocm_runtime::{
    Cache, Change, ControllerBuilder, Error, ObjectKey, Requeue, StatusController, conditions::NewCondition, write,
};

use super::{HostClusters, Settings, target::InstallLocation};
use crate::registration::certificate::set_condition;

/// Reports whether add-ons are available.
pub(super) struct AddOnHealth {
    hub: Client,
    addons: Cache<ManagedClusterAddOn>,
    hosts: HostClusters,
    settings: Arc<Settings>,
}

/// The state of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heartbeat {
    /// It does not exist.
    Missing,
    /// It was last renewed at this time, or never.
    At(Option<Timestamp>),
}

/// The input of `plan`.
pub(super) struct Observed {
    key: ObjectKey,
    addon: Arc<ManagedClusterAddOn>,
    heartbeat: Heartbeat,
}

impl AddOnHealth {
    pub(super) fn new(
        hub: Client,
        addons: Cache<ManagedClusterAddOn>,
        hosts: HostClusters,
        settings: Arc<Settings>,
    ) -> Self {
        Self { hub, addons, hosts, settings }
    }

    async fn heartbeat(&self, name: &str, location: &InstallLocation<'_>) -> Result<Heartbeat, Error> {
        let own = match location.fault() {
            None => read(self.hosts.client(location.host()), location.namespace, name).await?,
            Some(_) => Heartbeat::Missing,
        };
        match own {
            // The cluster's own lease is never that of an add-on, even of one with this name.
            Heartbeat::Missing if name != leases::MANAGED_CLUSTER => {
                read(&self.hub, &self.settings.cluster, name).await
            }
            found => Ok(found),
        }
    }
}

async fn read(client: &Client, namespace: &str, name: &str) -> Result<Heartbeat, Error> {
    let lease: Option<Lease> = write::get(&Api::namespaced(client.clone(), namespace), name).await?;
    let renewed = |lease: Lease| Heartbeat::At(lease.spec.and_then(|spec| spec.renew_time).map(|time| time.0));
    Ok(lease.map_or(Heartbeat::Missing, renewed))
}

/// Where an add-on's lease is; `None` if the add-on's health check is another one.
fn lease_location(addon: &ManagedClusterAddOn) -> Option<InstallLocation<'_>> {
    let mode = addon.status.as_ref().and_then(|status| status.health_check.mode.as_ref());
    matches!(mode, None | Some(HealthCheckMode::Lease)).then(|| InstallLocation::of(addon))
}

impl StatusController for AddOnHealth {
    const NAME: &'static str = "addon-health";
    type Key = ObjectKey;
    type Observed = Observed;
    type Plan = NewCondition;
    type Error = Error;

    /// The first check comes after one period: by then the manager has set the health check mode, and the agent may be
    /// running.
    fn setup(&self, builder: &mut ControllerBuilder<'_, ObjectKey>) {
        let (queue, period) = (builder.queue(), self.settings.lease_period);
        builder.watches(&self.addons, move |change| {
            let matters = match change {
                Change::Added(addon) => lease_location(addon).is_some(),
                Change::Updated { old, new } => {
                    lease_location(new).is_some() && lease_location(old) != lease_location(new)
                }
                Change::Deleted(_) => false,
            };
            if matters {
                queue.add_after(ObjectKey::of(change.object().as_ref()), period);
            }
            None::<ObjectKey>
        });
    }

    async fn observe(&self, key: &ObjectKey) -> Result<Option<Observed>, Error> {
        let Some(addon) = self.addons.get(key) else { return Ok(None) };
        let Some(location) = lease_location(&addon) else { return Ok(None) };
        let heartbeat = self.heartbeat(&key.name, &location).await?;
        Ok(Some(Observed { key: key.clone(), addon, heartbeat }))
    }

    fn plan(observed: &Observed, now: Timestamp) -> NewCondition {
        condition(&observed.key.name, &InstallLocation::of(&observed.addon), observed.heartbeat, now)
    }

    async fn report(&self, observed: &Observed, condition: NewCondition, now: Timestamp) -> Result<Requeue, Error> {
        let addons = Api::namespaced(self.hub.clone(), &self.settings.cluster);
        set_condition(&addons, &self.addons, &observed.key, condition, now).await?;
        Ok(Requeue::After(self.settings.lease_period))
    }
}

fn condition(addon: &str, location: &InstallLocation<'_>, heartbeat: Heartbeat, now: Timestamp) -> NewCondition {
    let lease = format!("lease {}/{addon}", location.namespace);
    match heartbeat {
        Heartbeat::Missing => NewCondition::is_unknown(AVAILABLE, LEASE_NOT_FOUND, missing(addon, location)),
        Heartbeat::At(Some(renewed)) if now < end_of(renewed) => {
            let message = format!("Add-on {addon} is available: its agent renews {lease}");
            NewCondition::is_true(AVAILABLE, LEASE_UPDATED, message)
        }
        Heartbeat::At(renewed) => {
            // Without the time: if the agent's clock is slow, the time changes with every renewal.
            let since = if renewed.is_some() { "no longer renews" } else { "has never renewed" };
            let message = format!(
                "Add-on {addon} is not available: its agent {since} {lease}; check its pods in namespace {}, and the \
                 clocks of their nodes",
                location.namespace
            );
            NewCondition::is_false(AVAILABLE, LEASE_UPDATE_STOPPED, message)
        }
    }
}

fn missing(addon: &str, location: &InstallLocation<'_>) -> String {
    let namespace = location.namespace;
    match location.hosting {
        None => format!(
            "The state of add-on {addon} is unknown: the managed cluster has no lease {namespace}/{addon}; its agent has not \
             started, or runs in another namespace"
        ),
        Some(cluster) => format!(
            "The state of add-on {addon} is unknown: hosting cluster {cluster:?} has no lease {namespace}/{addon}; check that \
             the agent of the managed cluster runs on this hosting cluster"
        ),
    }
}

/// The end of the grace period of a renewal.
fn end_of(renewed: Timestamp) -> Timestamp {
    let seconds = u64::try_from(limits::LEASE_DURATION_SECONDS).unwrap_or(0);
    let grace = Duration::from_secs(seconds) * limits::LEASE_GRACE_FACTOR;
    renewed.checked_add(grace).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use ocm_api::addon::v1alpha1::{HealthCheck, ManagedClusterAddOnStatus};
    use ocm_runtime::{Context, Informers};

    use super::*;
    use crate::{
        registration::addon::target::tests::settings,
        testing::{Mock, not_found},
    };

    const HERE: InstallLocation<'_> = InstallLocation { namespace: "default", hosting: None };

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn health_of(heartbeat: Heartbeat, now: i64) -> (&'static str, &'static str) {
        let condition = condition("hello", &HERE, heartbeat, at(now));
        assert_eq!(condition.type_, "Available");
        (condition.status, condition.reason)
    }

    #[test]
    fn a_lease_counts_for_five_minutes_after_it_was_renewed() {
        let renewed = Heartbeat::At(Some(at(1000)));
        assert_eq!(health_of(renewed, 1000), ("True", "ManagedClusterAddOnLeaseUpdated"));
        assert_eq!(health_of(renewed, 1299), ("True", "ManagedClusterAddOnLeaseUpdated"));
        assert_eq!(health_of(renewed, 1300), ("False", "ManagedClusterAddOnLeaseUpdateStopped"));
    }

    #[test]
    fn a_lease_that_was_never_renewed_has_run_out() {
        assert_eq!(health_of(Heartbeat::At(None), 0), ("False", "ManagedClusterAddOnLeaseUpdateStopped"));
    }

    #[test]
    fn without_a_lease_nobody_can_say_and_the_message_names_where_it_was_looked_for() {
        assert_eq!(health_of(Heartbeat::Missing, 0), ("Unknown", "ManagedClusterAddOnLeaseNotFound"));
        let hosted = InstallLocation { namespace: "agents", hosting: Some("host1") };
        let message = condition("hello", &hosted, Heartbeat::Missing, at(0)).message;
        assert!(message.contains("agents/hello") && message.contains("\"host1\""), "{message}");
    }

    #[test]
    fn what_is_said_does_not_change_while_nothing_happens() {
        let renewed = Heartbeat::At(Some(at(1000)));
        assert_eq!(condition("a", &HERE, renewed, at(1010)).message, condition("a", &HERE, renewed, at(1020)).message);
        assert_eq!(condition("a", &HERE, renewed, at(2000)).message, condition("a", &HERE, renewed, at(2020)).message);
        // As of an agent whose clock is slow.
        let later = Heartbeat::At(Some(at(1060)));
        assert_eq!(condition("a", &HERE, renewed, at(2000)).message, condition("a", &HERE, later, at(2060)).message);
    }

    /// What is asked of hub, managed and management cluster about the lease of an add-on that has none.
    async fn asked_for(addon: &str, location: &InstallLocation<'_>) -> [Vec<String>; 3] {
        let mocks: [Mock; 3] = std::array::from_fn(|_| Mock::answering(vec![not_found()]));
        let [hub, managed, management] = mocks.each_ref().map(|mock| Informers::new(mock.client(), Context::new()));
        let hosts = HostClusters { managed, management };
        let health = AddOnHealth::new(hub.client().clone(), Cache::default(), hosts, Arc::new(settings()));
        assert_eq!(health.heartbeat(addon, location).await.unwrap(), Heartbeat::Missing);
        mocks.map(|mock| mock.asked())
    }

    fn get(namespace: &str, name: &str) -> Vec<String> {
        vec![format!("GET /apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}")]
    }

    #[tokio::test]
    async fn a_lease_is_looked_for_where_the_agent_runs_and_then_on_the_hub() {
        assert_eq!(asked_for("hello", &HERE).await, [get("cluster1", "hello"), get("default", "hello"), vec![]]);
        let hosted = InstallLocation { hosting: Some("host1"), ..HERE };
        assert_eq!(asked_for("hello", &hosted).await, [get("cluster1", "hello"), vec![], get("default", "hello")]);
    }

    #[tokio::test]
    async fn the_clusters_own_lease_is_not_an_addons() {
        let asked = asked_for("managed-cluster-lease", &HERE).await;
        assert_eq!(asked, [vec![], get("default", "managed-cluster-lease"), vec![]]);
    }

    #[test]
    fn only_addons_whose_health_follows_from_a_lease_are_checked() {
        let with = |mode: Option<&str>| {
            let health_check = HealthCheck { mode: mode.map(HealthCheckMode::from) };
            let status = ManagedClusterAddOnStatus { health_check, ..ManagedClusterAddOnStatus::default() };
            ManagedClusterAddOn { status: Some(status), ..ManagedClusterAddOn::default() }
        };
        assert!(lease_location(&ManagedClusterAddOn::default()).is_some(), "a lease is the default");
        assert!(lease_location(&with(None)).is_some() && lease_location(&with(Some("Lease"))).is_some());
        assert!(lease_location(&with(Some("Customized"))).is_none() && lease_location(&with(Some("Other"))).is_none());
    }
}
