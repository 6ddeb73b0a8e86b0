//! Reports on the cluster: at most one status patch per pass, and an Event when its availability changed.
//!
//! A pass runs these steps, and ends with the first that fails: *joined* (the hub has accepted the
//! cluster) → *available* (its API server is healthy) → *resources* → *claims* → *namespaces*.
//! Nothing is written while the hub finds the cluster's clock out of sync.

mod claims;
mod health;
mod namespaces;
mod optional;
mod plan;
mod resources;
mod sources;

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use kube::Api;
use ocm_api::{cluster::v1::ManagedCluster, conditions, labels, limits};
use ocm_runtime::{
    Cache, Class, Classified, Context, Controller, ControllerBuilder, Informers, Requeue, conditions as set,
    error::chain,
    events::{EventRecorder, NewEvent},
    informer::WatchFilter,
    write,
};
use tokio::time::Instant;
use tracing::warn;

use self::{
    health::Health,
    namespaces::Outcome,
    plan::{Decision, Plan},
    sources::Sources,
};
use super::lease::is_accepted;

pub(crate) use self::{claims::ClaimRules, plan::Observed};

/// Why the status could not be reported.
#[derive(Debug, thiserror::Error)]
pub enum StatusError {
    /// A request failed.
    #[error(transparent)]
    Api(#[from] ocm_runtime::Error),
    /// The hub reports that the clocks differ too much.
    #[error(
        "the hub finds this cluster's clock out of sync, so its status is not reported: synchronize the clock of the \
         machine the agent runs on"
    )]
    ClockOutOfSync,
    /// The managed cluster is healthy, but something that is reported could not be read. The rest of the status is written.
    #[error("{0}")]
    Unread(String),
    /// A namespace on the managed cluster could not be set up.
    #[error("failed to manage namespace {namespace} for the hub's cluster sets")]
    Namespace {
        /// The namespace.
        namespace: String,
        /// What went wrong.
        #[source]
        source: ocm_runtime::Error,
    },
}

impl Classified for StatusError {
    fn class(&self) -> Class {
        match self {
            Self::Api(error) => error.class(),
            // The hub sets the condition when the clock is in sync again, which is a change of the ManagedCluster.
            Self::ClockOutOfSync => Class::Invalid,
            Self::Unread(_) => Class::Transient,
            Self::Namespace { source, .. } => source.class(),
        }
    }
}

/// Settings of the status controller.
#[derive(Clone, Debug)]
pub(crate) struct StatusSettings {
    pub(crate) cluster: String,
    pub(crate) hub_hash: String,
    pub(crate) period: Duration,
    pub(crate) reports_properties: bool,
    pub(crate) reports_claims: bool,
    pub(crate) claims: ClaimRules,
}

/// Reports on the cluster.
pub(crate) struct Status {
    settings: StatusSettings,
    clusters: Cache<ManagedCluster>,
    hub: kube::Client,
    sources: Sources,
    recorder: EventRecorder,
    /// Since when the API server has not been healthy.
    failing_since: Mutex<Option<Instant>>,
    /// The claims that the last log line said were left out.
    left_out: Mutex<Vec<String>>,
}

/// The outcome of `apply`.
pub(crate) struct Applied {
    decision: Decision,
    namespaces: Vec<Outcome>,
}

impl Status {
    /// Reports on the cluster that `managed` watches.
    pub(crate) fn new(
        context: &Context,
        hub: &Informers,
        managed: &Informers,
        recorder: EventRecorder,
        settings: StatusSettings,
    ) -> Self {
        Self {
            clusters: hub.all(WatchFilter::named(&settings.cluster)),
            hub: hub.client().clone(),
            sources: Sources::new(context, managed, &settings),
            recorder,
            settings,
            failing_since: Mutex::default(),
            left_out: Mutex::default(),
        }
    }

    /// How long the API server has been failing.
    fn failing_for(&self, health: &Health) -> Duration {
        let mut since = self.failing_since.lock().unwrap_or_else(PoisonError::into_inner);
        match health {
            Health::Ok => *since = None,
            Health::Failing { .. } => return since.get_or_insert_with(Instant::now).elapsed(),
        }
        Duration::ZERO
    }

    /// Logs once which claims the hub does not get.
    fn log_left_out(&self, names: &[String]) {
        let mut logged = self.left_out.lock().unwrap_or_else(PoisonError::into_inner);
        if *logged == names {
            return;
        }
        names.clone_into(&mut logged);
        if !names.is_empty() {
            let (names, longest) = (names.join(", "), limits::MAX_CLAIM_VALUE_CHARACTERS);
            warn!(
                names,
                "not reporting these ClusterProperties or ClusterClaims: the hub takes values of 1 to {longest} characters; \
                 shorten them, or keep them here with the label {}",
                labels::SPOKE_ONLY
            );
        }
    }

    async fn patch(&self, old: &ManagedCluster, new: &ManagedCluster) -> Result<(), StatusError> {
        let Some(patched) = write::patch_status(&Api::all(self.hub.clone()), old, new).await? else { return Ok(()) };
        if let Some(happening) = availability_changed(old, &patched) {
            self.record(&patched, happening).await;
        }
        self.clusters.record_write(patched);
        Ok(())
    }

    /// A failure is only logged: the status has the same information.
    async fn record(&self, cluster: &ManagedCluster, happening: NewEvent) {
        if let Err(error) = self.recorder.record(&self.settings.cluster, cluster, happening).await {
            warn!(error = %chain(&error), "cannot write the event about the cluster's availability");
        }
    }
}

impl Controller for Status {
    const NAME: &'static str = "cluster-status";
    type Key = String;
    type Observed = Observed;
    type Plan = Plan;
    type Applied = Option<Applied>;
    type Error = StatusError;

    fn setup(&self, builder: &mut ControllerBuilder<'_, String>) {
        let key = self.settings.cluster.clone();
        builder.watches(&self.clusters, |change| change.object().metadata.name.clone());
        self.sources.setup(&builder.queue(), &key);
        builder.every(self.settings.period, key);
    }

    async fn observe(&self, key: &String) -> Result<Option<Observed>, StatusError> {
        let Some(cluster) = self.clusters.named(key).filter(|cluster| is_accepted(cluster)) else { return Ok(None) };
        let health = health::look(self.sources.client()).await;
        let failing_for = self.failing_for(&health);
        let facts = match health {
            Health::Failing { .. } => Ok(None),
            // What has not synced yet enqueues the key when it has.
            Health::Ok if !self.sources.are_ready() => return Ok(None),
            Health::Ok => self.sources.facts().await.map(Some),
        };
        let unread = facts.as_ref().err().map(|error| chain(error));
        let facts = facts.unwrap_or_default();
        Ok(Some(Observed { cluster, health, failing_for, facts, unread, claims: self.settings.claims.clone() }))
    }

    fn plan(observed: &Observed, now: Timestamp) -> Plan {
        plan::plan(observed, now)
    }

    async fn apply(&self, _: &Observed, plan: Plan) -> Result<Option<Applied>, StatusError> {
        let decision = match plan {
            Plan::ClockOutOfSync => return Err(StatusError::ClockOutOfSync),
            Plan::Nothing => return Ok(None),
            Plan::Report(decision) => *decision,
        };
        self.log_left_out(&decision.left_out);
        let namespaces = self.sources.manage(&decision.namespaces).await;
        Ok(Some(Applied { decision, namespaces }))
    }

    async fn report(
        &self,
        observed: &Observed,
        applied: Option<Applied>,
        now: Timestamp,
    ) -> Result<Requeue, StatusError> {
        let Some(Applied { decision, namespaces }) = applied else { return Ok(Requeue::OnChange) };
        let mut new = ManagedCluster::clone(&observed.cluster);
        let mut status = decision.status;
        namespaces::report(&mut status.managed_namespaces, &namespaces, now);
        new.status = Some(status);
        self.patch(&observed.cluster, &new).await?;
        match (&observed.unread, namespaces.into_iter().find_map(Outcome::into_failure)) {
            (Some(cause), _) => Err(StatusError::Unread(cause.clone())),
            (None, Some((namespace, source))) => Err(StatusError::Namespace { namespace, source }),
            (None, None) => Ok(decision.again.map_or(Requeue::OnChange, Requeue::After)),
        }
    }
}

/// The event for a change of the cluster's availability.
fn availability_changed(old: &ManagedCluster, new: &ManagedCluster) -> Option<NewEvent> {
    let (before, after) = (availability(old), availability(new)?);
    if before == Some(after) {
        return None;
    }
    let name = new.metadata.name.as_deref().unwrap_or_default();
    match after {
        conditions::status::TRUE => Some(NewEvent {
            type_: "Normal",
            reason: "Available",
            note: format!("{name} has joined this hub, and its API server is healthy"),
        }),
        conditions::status::FALSE => Some(NewEvent {
            type_: "Warning",
            reason: "Unavailable",
            note: format!(
                "{name} has joined this hub, but its API server is not healthy: see the cluster's conditions"
            ),
        }),
        _ => None,
    }
}

fn availability(cluster: &ManagedCluster) -> Option<&str> {
    let conditions = &cluster.status.as_ref()?.conditions;
    set::find(conditions, conditions::cluster::AVAILABLE).map(|condition| condition.status.as_str())
}

#[cfg(test)]
mod tests;
