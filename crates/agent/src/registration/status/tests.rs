use std::{collections::BTreeSet, sync::Arc};

use ocm_api::cluster::v1::{ClusterSetManagedNamespaceConfig, ManagedClusterStatus};
use ocm_runtime::conditions::NewCondition;

use super::{
    claims::{
        Statements,
        tests::{claim, property},
    },
    namespaces::Action,
    plan::Facts,
    resources::tests::node,
    *,
};

fn condition(type_: &'static str, status: &'static str) -> NewCondition {
    NewCondition { type_, status, reason: "Reason", message: String::new() }
}

fn cluster(findings: Vec<NewCondition>) -> ManagedCluster {
    let mut status = ManagedClusterStatus::default();
    for condition in findings {
        set::set(&mut status.conditions, condition, None, Timestamp::UNIX_EPOCH);
    }
    let mut cluster = ManagedCluster { status: Some(status), ..ManagedCluster::default() };
    cluster.metadata.name = Some("cluster1".into());
    cluster
}

fn accepted() -> ManagedCluster {
    cluster(vec![condition(conditions::cluster::HUB_ACCEPTED, "True")])
}

fn healthy(cluster: ManagedCluster) -> Observed {
    let facts = Facts { version: "v1.36.3".into(), ..Facts::default() };
    let claims = ClaimRules { max_custom: 20, reserved_suffixes: Vec::new() };
    Observed {
        cluster: Arc::new(cluster),
        health: Health::Ok,
        failing_for: Duration::ZERO,
        facts: Some(facts),
        unread: None,
        claims,
    }
}

fn failing(cluster: ManagedCluster, seconds: u64) -> Observed {
    let health = Health::Failing { code: 500, cause: "[-]etcd failed".into() };
    Observed { health, failing_for: Duration::from_secs(seconds), facts: None, ..healthy(cluster) }
}

fn decide(observed: &Observed) -> Decision {
    match plan::plan(observed, Timestamp::UNIX_EPOCH) {
        Plan::Report(decision) => *decision,
        Plan::Nothing | Plan::ClockOutOfSync => panic!("nothing is reported"),
    }
}

fn said<'a>(decision: &'a Decision, type_: &str) -> Option<(&'a str, &'a str)> {
    let condition = set::find(&decision.status.conditions, type_)?;
    Some((&condition.status, &condition.reason))
}

#[test]
fn an_accepted_healthy_cluster_is_joined_and_available_and_says_its_version() {
    let decision = decide(&healthy(accepted()));
    assert_eq!(said(&decision, conditions::cluster::JOINED), Some(("True", "ManagedClusterJoined")));
    assert_eq!(said(&decision, conditions::cluster::AVAILABLE), Some(("True", "ManagedClusterAvailable")));
    assert_eq!(decision.status.version.kubernetes.as_deref(), Some("v1.36.3"));
    assert_eq!(decision.again, None);
}

#[test]
fn without_nodes_and_claims_the_status_has_none() {
    let decision = decide(&healthy(accepted()));
    let status = serde_json::to_value(&decision.status).unwrap();
    let fields: Vec<_> = status.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(fields, ["conditions", "version"]);
}

#[test]
fn a_cluster_that_is_not_accepted_says_nothing() {
    for cluster in [cluster(Vec::new()), cluster(vec![condition(conditions::cluster::HUB_ACCEPTED, "False")])] {
        assert!(matches!(plan::plan(&healthy(cluster), Timestamp::UNIX_EPOCH), Plan::Nothing));
    }
}

#[test]
fn a_cluster_whose_clock_is_out_of_sync_is_not_believed() {
    let mut cluster = accepted();
    let conditions = &mut cluster.status.as_mut().unwrap().conditions;
    set::set(conditions, condition(conditions::cluster::CLOCK_SYNCED, "False"), None, Timestamp::UNIX_EPOCH);
    assert!(matches!(plan::plan(&healthy(cluster), Timestamp::UNIX_EPOCH), Plan::ClockOutOfSync));
}

#[test]
fn a_failing_api_server_gets_twenty_seconds() {
    let before = decide(&failing(accepted(), 19));
    assert_eq!(said(&before, conditions::cluster::AVAILABLE), None, "the condition stays as it is");
    assert_eq!(before.again, Some(Duration::from_secs(5)));
    let after = decide(&failing(accepted(), 20));
    let expected = Some(("False", "ManagedClusterKubeAPIServerUnavailable"));
    assert_eq!(said(&after, conditions::cluster::AVAILABLE), expected);
    let message = &set::find(&after.status.conditions, conditions::cluster::AVAILABLE).unwrap().message;
    assert!(message.contains("(status code 500): [-]etcd failed"), "{message}");
}

#[test]
fn what_was_known_of_a_failing_cluster_stays() {
    let mut cluster = accepted();
    cluster.status.as_mut().unwrap().version.kubernetes = Some("v1".into());
    let decision = decide(&failing(cluster, 60));
    assert_eq!(decision.status.version.kubernetes.as_deref(), Some("v1"));
    assert!(decision.namespaces.is_empty());
}

#[test]
fn nodes_and_claims_are_reported_and_claims_that_are_gone_disappear() {
    let mut observed = healthy(accepted());
    let facts = observed.facts.as_mut().unwrap();
    facts.nodes = vec![node("1", false), node("1", true)];
    facts.statements = Statements { properties: vec![Arc::new(property("a", ""))], claims: vec![Arc::new(claim("b"))] };
    let decision = decide(&observed);
    assert_eq!(decision.status.capacity["cpu"].0, "2");
    assert_eq!(decision.status.allocatable["cpu"].0, "1");
    assert_eq!(decision.status.cluster_claims.len(), 1);
    assert_eq!(decision.left_out, ["a"], "the hub would refuse its empty value, and the rest of the status with it");
    let mut cluster = accepted();
    cluster.status.as_mut().unwrap().cluster_claims = decision.status.cluster_claims;
    assert!(decide(&healthy(cluster)).status.cluster_claims.is_empty());
}

#[test]
fn namespaces_are_managed_on_a_healthy_cluster() {
    let mut cluster = accepted();
    cluster.status.as_mut().unwrap().managed_namespaces =
        vec![ClusterSetManagedNamespaceConfig { cluster_set: "s".into(), name: "a".into(), conditions: Vec::new() }];
    let mut observed = healthy(cluster);
    observed.facts.as_mut().unwrap().namespaces = BTreeSet::from(["b".into()]);
    assert_eq!(decide(&observed).namespaces, [Action::Ensure("a".into()), Action::Release("b".into())]);
}

#[test]
fn an_event_is_written_when_the_availability_changes_and_only_then() {
    let with = |status| cluster(vec![condition(conditions::cluster::AVAILABLE, status)]);
    let reason = |old: &ManagedCluster, new: &ManagedCluster| {
        availability_changed(old, new).map(|event| (event.type_, event.reason))
    };
    assert_eq!(reason(&accepted(), &with("True")), Some(("Normal", "Available")));
    assert_eq!(reason(&with("Unknown"), &with("True")), Some(("Normal", "Available")));
    assert_eq!(reason(&with("True"), &with("False")), Some(("Warning", "Unavailable")));
    assert_eq!(reason(&with("True"), &with("True")), None);
    assert_eq!(reason(&with("True"), &with("Unknown")), None);
}
