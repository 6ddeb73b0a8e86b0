use serde_json::{Value, json};

use super::*;
use crate::{
    registration::addon::target::tests::{addon, settings},
    testing::Mock,
};

const ADDONS: &str = "/apis/addon.open-cluster-management.io/v1alpha1/namespaces/cluster1/managedclusteraddons";
const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

fn target(signer: &str) -> Target {
    let addon = addon(&json!({"registrations": [{"signerName": signer}]}));
    match settings().due(&addon) {
        Due::Certificates { mut targets, .. } => targets.remove(0),
        other => panic!("{other:?}"),
    }
}

fn started(signer: &str, runs: bool) -> Started {
    Started { target: target(signer), runs }
}

fn plan(due: Due, started: Vec<Started>) -> Plan {
    let observed = Observed { key: ObjectKey::new("cluster1", "hello"), addon: None, due, started };
    Registrations::plan(&observed, Timestamp::UNIX_EPOCH)
}

fn due(signers: &[&str]) -> Due {
    Due::Certificates { targets: signers.iter().map(|signer| target(signer)).collect(), refused: None }
}

fn change(stop: &[&str], start: &[&str]) -> Plan {
    let all = |signers: &[&str]| signers.iter().map(|signer| target(signer)).collect();
    Plan::Change { stop: all(stop), start: all(start), refused: None }
}

#[test]
fn what_is_new_is_started_what_stays_let_be_and_what_is_gone_stopped() {
    assert_eq!(plan(due(&["a.io/a"]), Vec::new()), change(&[], &["a.io/a"]));
    let both = vec![started("a.io/a", true), started("b.io/b", true)];
    assert_eq!(plan(due(&["b.io/b", "c.io/c"]), both), change(&["a.io/a"], &["c.io/c"]));
    assert_eq!(plan(due(&["a.io/a"]), vec![started("a.io/a", true)]), change(&[], &[]));
}

#[test]
fn a_secret_that_could_not_be_deleted_is_deleted_before_its_registration_starts_again() {
    assert_eq!(plan(due(&["a.io/a"]), vec![started("a.io/a", false)]), change(&["a.io/a"], &["a.io/a"]));
}

#[test]
fn while_an_addon_is_being_deleted_nothing_is_touched() {
    assert_eq!(plan(Due::Stay, vec![started("a.io/a", true)]), Plan::Nothing);
    assert_eq!(plan(Due::Driver, Vec::new()), Plan::SetDriver);
}

/// An agent that knows no add-on, before a hub that answers like this.
fn without_addons(answers: Vec<(u16, Value)>) -> (Mock, Registrations) {
    let mock = Mock::answering(answers).listing(ADDONS, &json!([])).listing(REQUESTS, &json!([]));
    let context = Context::new();
    let watches = Watches::new(mock.client(), context.clone());
    let requests = Requests::of(&watches, "cluster1");
    let sites = Sites { managed: mock.client(), management: mock.client() };
    let addons = watches.within("cluster1", ocm_runtime::watch::Scope::all());
    let registrations = Registrations::new(&context, requests, addons, sites, Arc::new(settings()));
    (mock, registrations)
}

async fn reconcile(registrations: &Registrations) -> Result<Option<String>, RegistrationError> {
    let observed = registrations.observe(&ObjectKey::new("cluster1", "hello")).await?.unwrap();
    let plan = Registrations::plan(&observed, Timestamp::UNIX_EPOCH);
    registrations.apply(&observed, plan).await
}

fn add_stopped(registrations: &Registrations) {
    let context = Context::new();
    context.end();
    let running = vec![Running { target: target("a.io/a"), context }];
    registrations.running().insert(ObjectKey::new("cluster1", "hello"), running);
}

fn not_found() -> (u16, Value) {
    (404, json!({"kind": "Status", "code": 404, "status": "Failure", "message": "", "reason": "NotFound"}))
}

#[tokio::test]
async fn an_addon_that_only_the_watch_has_lost_keeps_its_credentials() {
    let (mock, registrations) = without_addons(vec![(200, serde_json::to_value(addon(&json!(null))).unwrap())]);
    add_stopped(&registrations);
    let error = reconcile(&registrations).await.unwrap_err();
    assert!(matches!(error, RegistrationError::NotGone(_)), "{error}");
    assert_eq!(mock.asked(), [format!("GET {ADDONS}/hello")]);
}

#[tokio::test]
async fn the_secret_of_an_addon_that_is_gone_is_deleted_until_that_succeeds() {
    let failure = (500, json!({"kind": "Status", "code": 500, "status": "Failure", "message": "", "reason": ""}));
    let (mock, registrations) = without_addons(vec![not_found(), failure, not_found(), not_found()]);
    add_stopped(&registrations);
    assert!(reconcile(&registrations).await.is_err());
    assert!(reconcile(&registrations).await.is_ok());
    assert!(registrations.running().is_empty());
    let (get, delete) = (
        format!("GET {ADDONS}/hello"),
        "DELETE /api/v1/namespaces/default/secrets/hello-a.io-a-client-cert".to_owned(),
    );
    assert_eq!(mock.asked(), [get.clone(), delete.clone(), get, delete]);
}
