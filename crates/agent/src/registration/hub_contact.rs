//! Makes an agent with several hubs leave one that it has had no contact with for too long.
//!
//! Once the agent is connected, the last contact is the last renewal of the cluster's lease. Until then, while the agent
//! waits for its certificate, it is the last answer of the hub.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use ocm_api::{cluster::v1::ManagedCluster, leases};
use ocm_runtime::{Clock, Controller, ControllerBuilder, Error, error::chain, write};
use tracing::debug;

use crate::agent::{Hubs, Leave, StayOrLeave};

/// Checks when the agent had its last contact with the hub.
pub(crate) struct HubContact {
    cluster: String,
    source: Source,
    settings: Hubs,
    clock: Clock,
    started: Timestamp,
    last: Mutex<Timestamp>,
    leave: Leave,
}

/// Where the time of the last contact comes from.
enum Source {
    /// The renewal of the cluster's lease.
    Lease(Api<Lease>),
    /// An answer about the ManagedCluster, whether it exists or not.
    Answer(Api<ManagedCluster>),
}

/// The input of `plan`.
#[derive(Debug)]
pub(crate) struct Observed {
    started: Timestamp,
    last: Timestamp,
    grace: Duration,
    timeout: Duration,
}

impl HubContact {
    /// For an agent that renews the lease of `cluster`.
    pub(crate) fn by_lease(hub: &Client, cluster: &str, settings: &Hubs, clock: &Clock, leave: Leave) -> Self {
        let source = Source::Lease(Api::namespaced(hub.clone(), cluster));
        Self::new(source, cluster, settings, clock, leave)
    }

    /// For an agent that waits for its certificate.
    pub(crate) fn by_answers(hub: &Client, cluster: &str, settings: &Hubs, clock: &Clock, leave: Leave) -> Self {
        Self::new(Source::Answer(Api::all(hub.clone())), cluster, settings, clock, leave)
    }

    fn new(source: Source, cluster: &str, settings: &Hubs, clock: &Clock, leave: Leave) -> Self {
        let (now, settings, clock) = (clock.now(), settings.clone(), clock.clone());
        Self { cluster: cluster.into(), source, settings, clock, started: now, last: Mutex::new(now), leave }
    }

    /// The time of the last contact that the hub reports; `None` if it reports none.
    async fn contact(&self) -> Result<Option<Timestamp>, Error> {
        match &self.source {
            Source::Lease(leases) => {
                let lease = write::get(leases, leases::MANAGED_CLUSTER).await?;
                Ok(lease.and_then(|lease| lease.spec).and_then(|spec| spec.renew_time).map(|time| time.0))
            }
            Source::Answer(clusters) => write::get(clusters, &self.cluster).await.map(|_| Some(self.clock.now())),
        }
    }

    fn last_contact(&self, contact: Option<Timestamp>) -> Timestamp {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        *last = contact.unwrap_or(*last);
        *last
    }

    fn reason(&self, last: Timestamp) -> String {
        let timeout = self.settings.connection_timeout;
        format!(
            "no contact with the hub since {last}, which is longer than --hub-connection-timeout-seconds ({timeout:?})"
        )
    }
}

impl Controller for HubContact {
    const NAME: &'static str = "hub-contact";
    type Key = String;
    type Observed = Observed;
    type Plan = StayOrLeave;
    type Applied = ();
    type Error = Error;

    fn setup(&self, builder: &mut ControllerBuilder<'_, String>) {
        builder.every(self.settings.check_period, self.cluster.clone());
    }

    /// A hub that cannot be asked is no error, but what this controller is for.
    async fn observe(&self, _: &String) -> Result<Option<Observed>, Error> {
        let contact = self.contact().await.unwrap_or_else(|error| {
            debug!(error = %chain(&error), "cannot ask the hub for the last contact");
            None
        });
        let Hubs { check_grace: grace, connection_timeout: timeout, .. } = self.settings;
        Ok(Some(Observed { started: self.started, last: self.last_contact(contact), grace, timeout }))
    }

    fn plan(observed: &Observed, now: Timestamp) -> StayOrLeave {
        let since = |time| Duration::try_from(now.duration_since(time)).unwrap_or_default();
        let is_due = since(observed.started) >= observed.grace;
        if is_due && since(observed.last) > observed.timeout { StayOrLeave::Leave } else { StayOrLeave::Stay }
    }

    async fn apply(&self, observed: &Observed, plan: StayOrLeave) -> Result<(), Error> {
        if plan == StayOrLeave::Leave {
            self.leave.because(self.reason(observed.last));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{Mock, not_found};

    const MINUTE: Duration = Duration::from_secs(60);

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn plan(started: i64, last: i64, now: i64) -> StayOrLeave {
        let grace = Duration::from_secs(10);
        HubContact::plan(&Observed { started: at(started), last: at(last), grace, timeout: MINUTE }, at(now))
    }

    #[test]
    fn the_hub_is_left_when_the_last_contact_is_longer_ago_than_the_timeout() {
        assert_eq!(plan(0, 1000, 1060), StayOrLeave::Stay);
        assert_eq!(plan(0, 1000, 1061), StayOrLeave::Leave);
        assert_eq!(plan(0, 1000, 900), StayOrLeave::Stay, "the clock was set back");
    }

    #[test]
    fn a_lease_that_is_old_when_the_agent_starts_gets_time_to_be_renewed() {
        assert_eq!(plan(1000, 0, 1009), StayOrLeave::Stay);
        assert_eq!(plan(1000, 0, 1010), StayOrLeave::Leave);
    }

    fn lease(renewed: &str) -> (u16, serde_json::Value) {
        (200, json!({"metadata": {"name": "managed-cluster-lease"}, "spec": {"renewTime": renewed}}))
    }

    async fn last(contact: &HubContact) -> i64 {
        contact.observe(&String::new()).await.unwrap().unwrap().last.as_second()
    }

    #[tokio::test]
    async fn while_the_lease_cannot_be_read_its_last_renewal_counts_or_else_the_start() {
        let denied = (403, json!({"kind": "Status", "code": 403, "status": "Failure", "message": "", "reason": ""}));
        let answers = vec![denied.clone(), lease("1970-01-01T00:02:00.000000Z"), denied, not_found()];
        let (clock, mock) = (Clock::manual(at(100)), Mock::answering(answers));
        let contact = HubContact::by_lease(&mock.client(), "c1", &Hubs::default(), &clock, Leave::default());
        clock.set(at(200));
        for expected in [100, 120, 120, 120] {
            assert_eq!(last(&contact).await, expected);
        }
        assert_eq!(mock.asked()[0], "GET /apis/coordination.k8s.io/v1/namespaces/c1/leases/managed-cluster-lease");
    }

    #[tokio::test]
    async fn until_the_agent_has_joined_every_answer_is_a_contact() {
        let busy = (500, json!({"kind": "Status", "code": 500, "status": "Failure", "message": "", "reason": ""}));
        let (clock, mock) = (Clock::manual(at(100)), Mock::answering(vec![not_found(), busy]));
        let contact = HubContact::by_answers(&mock.client(), "c1", &Hubs::default(), &clock, Leave::default());
        clock.set(at(200));
        assert_eq!(last(&contact).await, 200);
        clock.set(at(300));
        assert_eq!(last(&contact).await, 200, "this is none");
    }
}
