//! The desired status. Pure.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use jiff::Timestamp;
use ocm_api::{
    cluster::v1::{ManagedCluster, ManagedClusterStatus},
    conditions::{self, cluster},
    limits,
    reasons::cluster::{AVAILABLE, JOINED, KUBE_API_SERVER_UNAVAILABLE},
};
use ocm_runtime::{conditions as set, conditions::NewCondition};

use super::{
    claims::{ClaimRules, Statements},
    health::Health,
    namespaces::{self, Action},
    resources::{self, NodeSize},
};
use crate::registration::lease::is_accepted;

/// The input of `plan`.
pub(crate) struct Observed {
    pub(crate) cluster: Arc<ManagedCluster>,
    pub(crate) health: Health,
    /// How long it has not been healthy.
    pub(crate) failing_for: Duration,
    /// What was read from the managed cluster; `None` while it is not healthy, or if it could not be read.
    pub(crate) facts: Option<Facts>,
    /// Why it could not be read.
    pub(crate) unread: Option<String>,
    pub(crate) claims: ClaimRules,
}

/// What was read from a healthy managed cluster.
#[derive(Default)]
pub(crate) struct Facts {
    pub(crate) version: String,
    pub(crate) nodes: Vec<Arc<NodeSize>>,
    pub(crate) statements: Statements,
    /// Existing namespaces that cluster sets of this hub require.
    pub(crate) namespaces: BTreeSet<String>,
}

/// What to do.
pub(crate) enum Plan {
    /// The hub has not accepted the cluster.
    Nothing,
    /// The hub reports that the clocks differ too much.
    ClockOutOfSync,
    Report(Box<Decision>),
}

/// What to write.
pub(crate) struct Decision {
    /// The status, without the conditions of its namespaces.
    pub(crate) status: ManagedClusterStatus,
    pub(crate) namespaces: Vec<Action>,
    /// Names of properties and claims that the hub would refuse.
    pub(crate) left_out: Vec<String>,
    /// When the next pass is due.
    pub(crate) again: Option<Duration>,
}

pub(super) fn plan(observed: &Observed, now: Timestamp) -> Plan {
    let mut status = observed.cluster.status.clone().unwrap_or_default();
    if !is_accepted(&observed.cluster) {
        return Plan::Nothing;
    }
    if is_false(&status, cluster::CLOCK_SYNCED) {
        return Plan::ClockOutOfSync;
    }
    let joined = NewCondition::is_true(cluster::JOINED, JOINED, "The cluster has joined this hub");
    set::set(&mut status.conditions, joined, None, now);
    let again = available(&mut status, observed, now);
    let (mut namespaces, mut left_out) = (Vec::new(), Vec::new());
    if let (Health::Ok, Some(facts)) = (&observed.health, &observed.facts) {
        left_out = describe(&mut status, facts, &observed.claims);
        namespaces = namespaces::plan(&observed.cluster, &facts.namespaces);
    }
    Plan::Report(Box::new(Decision { status, namespaces, left_out, again }))
}

fn is_false(status: &ManagedClusterStatus, type_: &str) -> bool {
    set::find(&status.conditions, type_).is_some_and(|condition| condition.status == conditions::status::FALSE)
}

/// The condition about the API server's health. During the first seconds of a failure the condition is not changed, and the time
/// of the next check is returned.
fn available(status: &mut ManagedClusterStatus, observed: &Observed, now: Timestamp) -> Option<Duration> {
    let condition = match &observed.health {
        Health::Ok => NewCondition::is_true(cluster::AVAILABLE, AVAILABLE, "The API server of the cluster is healthy"),
        Health::Failing { .. } if observed.failing_for < limits::CLUSTER_HEALTH_FAILURE_THRESHOLD => {
            return Some(limits::CLUSTER_HEALTH_RECHECK);
        }
        Health::Failing { code, cause } => {
            let message = format!("The API server of the cluster is not healthy (status code {code}): {cause}");
            NewCondition::is_false(cluster::AVAILABLE, KUBE_API_SERVER_UNAVAILABLE, message)
        }
    };
    set::set(&mut status.conditions, condition, None, now);
    None
}

/// Sets everything but conditions and namespaces. Returns the names of the claims that it left out.
fn describe(status: &mut ManagedClusterStatus, facts: &Facts, claims: &ClaimRules) -> Vec<String> {
    status.version.kubernetes = Some(facts.version.clone());
    status.capacity = resources::capacity(&facts.nodes, &status.capacity);
    status.allocatable = resources::allocatable(&facts.nodes);
    let chosen = claims.choose(&facts.statements);
    status.cluster_claims = chosen.claims;
    chosen.left_out
}
