use ocm_runtime::Informers;
use serde_json::{Value, json};

use super::*;
use crate::{
    registration::addon::target::tests::{addon, settings, token_settings},
    testing::{Mock, not_found},
};

const ADDONS: &str = "/apis/addon.open-cluster-management.io/v1alpha1/namespaces/cluster1/managedclusteraddons";
const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

/// What an add-on gets for its one registration.
pub(in crate::registration::addon) fn target(signer: &str) -> Target {
    let addon = addon(&json!({"registrations": [{"signerName": signer}]}));
    match settings().desired(&addon) {
        Desired::Credentials { mut targets, .. } => targets.remove(0),
        other => panic!("{other:?}"),
    }
}

/// The token of an add-on.
pub(in crate::registration::addon) fn token_target() -> Target {
    let account = json!({"user": "system:serviceaccount:cluster1:hello-agent"});
    let own = json!({"signerName": "kubernetes.io/kube-apiserver-client", "subject": account});
    match token_settings().desired(&addon(&json!({"kubeClientDriver": "token", "registrations": [own]}))) {
        Desired::Credentials { mut targets, .. } => targets.remove(0),
        other => panic!("{other:?}"),
    }
}

fn started(signer: &str, desired: bool) -> Started {
    Started { target: target(signer), desired }
}

fn key() -> ObjectKey {
    ObjectKey::new("cluster1", "hello")
}

fn plan(desired: Desired, started: Vec<Started>) -> Plan {
    let observed = Observed { key: key(), addon: None, desired, started };
    Registrations::plan(&observed, Timestamp::UNIX_EPOCH)
}

fn desired(signers: &[&str]) -> Desired {
    let targets = signers.iter().map(|signer| target(signer)).collect();
    Desired::Credentials { targets, refused: Refusals::default() }
}

fn change(stop: &[&str], start: &[&str]) -> Plan {
    let all = |signers: &[&str]| signers.iter().map(|signer| target(signer)).collect();
    Plan::Change(Changes { stop: all(stop), start: all(start), refused: Refusals::default() })
}

#[test]
fn what_is_new_is_started_what_stays_let_be_and_what_is_gone_stopped() {
    assert_eq!(plan(desired(&["a.io/a"]), Vec::new()), change(&[], &["a.io/a"]));
    let both = vec![started("a.io/a", true), started("b.io/b", true)];
    assert_eq!(plan(desired(&["b.io/b", "c.io/c"]), both), change(&["a.io/a"], &["c.io/c"]));
    assert_eq!(plan(desired(&["a.io/a"]), vec![started("a.io/a", true)]), change(&[], &[]));
}

#[test]
fn a_secret_that_could_not_be_deleted_is_deleted_before_its_registration_starts_again() {
    assert_eq!(plan(desired(&["a.io/a"]), vec![started("a.io/a", false)]), change(&["a.io/a"], &["a.io/a"]));
}

#[test]
fn while_an_addon_is_being_deleted_nothing_is_touched() {
    assert_eq!(plan(Desired::Unchanged { targets: Vec::new() }, vec![started("a.io/a", true)]), Plan::Nothing);
    assert_eq!(plan(Desired::Driver, Vec::new()), Plan::SetDriver);
}

#[test]
fn a_new_agent_takes_up_the_certificates_of_an_addon_that_is_being_deleted() {
    assert_eq!(plan(Desired::Unchanged { targets: vec![target("a.io/a")] }, Vec::new()), change(&[], &["a.io/a"]));
}

/// An agent that knows no add-on, before a hub that answers like this.
fn without_addons(answers: Vec<(u16, Value)>) -> (Mock, Registrations) {
    agent(&json!([]), answers)
}

/// An agent that knows these add-ons, before a hub that answers like this.
fn agent(addons: &Value, answers: Vec<(u16, Value)>) -> (Mock, Registrations) {
    let mock = Mock::answering(answers).listing(ADDONS, addons).listing(REQUESTS, &json!([]));
    let context = Context::new();
    let informers = Informers::new(mock.client(), context.clone());
    let requests = Requests::of(&informers, "cluster1");
    let hosts = HostClusters { managed: informers.clone(), management: informers.clone() };
    let addons = informers.namespaced("cluster1", ocm_runtime::informer::WatchFilter::all());
    let registrations = Registrations::new(&context, requests, addons, hosts, Arc::new(settings()));
    (mock, registrations)
}

async fn reconcile(registrations: &Registrations) -> Result<(), RegistrationError> {
    let observed = registrations.observe(&key()).await?.unwrap();
    let plan = Registrations::plan(&observed, Timestamp::UNIX_EPOCH);
    registrations.apply(&observed, plan).await
}

fn add_started(registrations: &Registrations) {
    registrations.credentials.start(&key(), target("a.io/a"), registrations.context.child());
}

#[tokio::test]
async fn an_addon_that_only_the_watch_has_lost_keeps_its_credentials() {
    let (mock, registrations) = without_addons(vec![(200, serde_json::to_value(addon(&json!(null))).unwrap())]);
    add_started(&registrations);
    let error = reconcile(&registrations).await.unwrap_err();
    assert!(matches!(error, RegistrationError::NotGone(_)), "{error}");
    assert_eq!(mock.asked(), [format!("GET {ADDONS}/hello")]);
}

#[tokio::test]
async fn the_secret_of_an_addon_that_is_gone_is_deleted_until_that_succeeds() {
    let failure = (500, json!({"kind": "Status", "code": 500, "status": "Failure", "message": "", "reason": ""}));
    let (mock, registrations) = without_addons(vec![not_found(), failure, not_found(), not_found()]);
    add_started(&registrations);
    assert!(reconcile(&registrations).await.is_err());
    assert!(reconcile(&registrations).await.is_ok());
    assert!(registrations.credentials.started(&key()).is_empty());
    let (get, delete) = (
        format!("GET {ADDONS}/hello"),
        "DELETE /api/v1/namespaces/default/secrets/hello-a.io-a-client-cert".to_owned(),
    );
    assert_eq!(mock.asked(), [get.clone(), delete.clone(), get, delete]);
}

#[tokio::test]
async fn a_secret_that_cannot_be_deleted_keeps_no_other_registration_waiting_but_its_successor() {
    let failure = (500, json!({"kind": "Status", "code": 500, "status": "Failure", "message": "", "reason": ""}));
    let hello = addon(&json!({"registrations": [{"signerName": "a.io/a"}, {"signerName": "c.io/c"}]}));
    let (mock, registrations) = agent(&json!([hello]), vec![failure, not_found()]);
    registrations.addons.synced().await;
    // The controllers that are started make no requests.
    registrations.context.end();
    for signer in ["a.io/a", "b.io/b"] {
        registrations.credentials.start(&key(), target(signer), registrations.context.child());
        registrations.credentials.mark_removed(&key(), &target(signer));
    }
    assert!(reconcile(&registrations).await.is_err());
    let delete = |signer: &str| format!("DELETE /api/v1/namespaces/default/secrets/hello-{signer}-client-cert");
    assert_eq!(mock.asked(), [delete("a.io-a"), delete("b.io-b")]);
    let started = registrations.credentials.started(&key());
    let started: Vec<_> = started.iter().map(|one| (one.target.clone(), one.desired)).collect();
    assert_eq!(started, [(target("a.io/a"), false), (target("c.io/c"), true)]);
}

#[tokio::test]
async fn when_the_agent_stops_every_secret_stays() {
    let hello = addon(&json!({"registrations": [{"signerName": "a.io/a"}]}));
    let (mock, registrations) = agent(&json!([hello]), Vec::new());
    registrations.addons.synced().await;
    add_started(&registrations);
    registrations.context.end();
    assert!(reconcile(&registrations).await.is_ok());
    assert_eq!(mock.asked(), Vec::<String>::new());
    assert!(registrations.credentials.started(&key()).iter().all(|started| started.desired));
}

#[tokio::test]
async fn a_hub_that_drops_the_driver_is_reported_once() {
    let hello = addon(&json!({"registrations": [{"signerName": "kubernetes.io/kube-apiserver-client"}]}));
    let (_, registrations) = agent(&json!([hello]), vec![(200, json!(hello))]);
    registrations.addons.synced().await;
    let error = reconcile(&registrations).await.unwrap_err();
    assert!(error.class() == Class::Invalid && error.to_string().contains("status.kubeClientDriver"), "{error}");
}

#[tokio::test]
async fn driver_subject_and_the_condition_of_the_former_driver_are_one_write() {
    let rotated = json!({"type": "ClusterCertificateRotated", "status": "True", "reason": "R", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let own = json!({"signerName": "kubernetes.io/kube-apiserver-client", "subject": {"user": "u", "groups": ["g"]}});
    let hello = addon(&json!({"kubeClientDriver": "csr", "registrations": [own], "conditions": [rotated]}));
    let after = token_settings().with_driver(&hello);
    let (mock, mut registrations) = agent(&json!([hello]), vec![(200, json!(after))]);
    registrations.settings = Arc::new(token_settings());
    registrations.addons.synced().await;
    reconcile(&registrations).await.unwrap();
    assert_eq!(mock.asked(), [format!("PATCH {ADDONS}/hello/status")]);
    let account = json!({"signerName": "kubernetes.io/kube-apiserver-client",
        "subject": {"user": "system:serviceaccount:cluster1:hello-agent"}});
    let status = json!({"kubeClientDriver": "token", "registrations": [account], "conditions": null});
    assert_eq!(mock.bodies()[0]["status"], status);
}

#[test]
fn a_token_takes_the_place_of_a_certificate_after_its_secret_is_deleted() {
    let (certificate, token) = (target("a.io/a"), token_target());
    let desired = Desired::Credentials { targets: vec![token.clone()], refused: Refusals::default() };
    let expected = Changes { stop: vec![certificate], start: vec![token], refused: Refusals::default() };
    assert_eq!(plan(desired, vec![started("a.io/a", true)]), Plan::Change(expected));
}
