use std::sync::Arc;

use k8s_openapi::{
    api::{core::v1::ServiceAccount, rbac::v1::RoleBinding},
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::Resource;
use ocm_runtime::{Cache, Class, Classified as _, conditions::find};
use serde_json::{Value, json};

use super::{
    apply::ConditionChange,
    observe::{Existing, Need, need, uses_tokens},
    plan::plan,
    step::{Step, step},
    *,
};
use crate::testing::{accepted, client_answered_with, cluster, deleting, now};

const SIGNER: &str = "kubernetes.io/kube-apiserver-client";

fn key() -> ObjectKey {
    ObjectKey::new("c1", "hello")
}

fn addon(driver: &str, signers: &[&str]) -> ManagedClusterAddOn {
    let mut addon = crate::addon::testing::addon("c1", "hello", json!({}));
    let registrations: Vec<_> = signers.iter().map(|signer| json!({"signerName": signer})).collect();
    addon.status =
        Some(serde_json::from_value(json!({"kubeClientDriver": driver, "registrations": registrations})).unwrap());
    addon
}

fn need_of(addon: &ManagedClusterAddOn, cluster: Option<&ManagedCluster>) -> Need {
    need(&ObjectKey::of(addon), Some(addon), cluster, "hub")
}

fn existing() -> Existing {
    Existing {
        account: Some(Arc::new(objects::account(&key()))),
        role: Some(Arc::new(objects::role(&key()))),
        binding: Some(Arc::new(objects::binding(&key()))),
    }
}

fn planned(need: Need, existing: Existing) -> Plan {
    plan(&Observed { key: key(), addon: None, need, existing })
}

fn without_type<K: serde::Serialize>(object: K) -> Value {
    let mut value = serde_json::to_value(object).unwrap();
    value.as_object_mut().unwrap().retain(|key, _| key != "apiVersion" && key != "kind");
    value
}

#[test]
fn the_objects_are_those_that_agents_of_other_makers_expect() {
    let meta = |name: &str| {
        json!({"name": name, "namespace": "c1", "labels": {
            "addon.open-cluster-management.io/name": "hello",
            "addon.open-cluster-management.io/token-infrastructure": "true",
        }})
    };
    assert_eq!(without_type(objects::account(&key())), json!({"metadata": meta("hello-agent")}));
    let rules = json!([
        {"apiGroups": [""], "resources": ["serviceaccounts/token"], "resourceNames": ["hello-agent"], "verbs": ["create"]},
        {"apiGroups": [""], "resources": ["serviceaccounts/token"], "verbs": ["subscribe"]},
    ]);
    assert_eq!(without_type(objects::role(&key())), json!({"metadata": meta("hello-token-role"), "rules": rules}));
    let (group, api) = (|name: &str| json!({"apiGroup": api_group(), "kind": "Group", "name": name}), api_group());
    assert_eq!(
        without_type(objects::binding(&key())),
        json!({
            "metadata": meta("hello-token-role"),
            "roleRef": {"apiGroup": api, "kind": "Role", "name": "hello-token-role"},
            "subjects": [group("system:open-cluster-management:c1"), group("open-cluster-management:c1")],
        })
    );
}

fn api_group() -> &'static str {
    ocm_api::rbac::API_GROUP
}

#[test]
fn tokens_are_for_agents_that_log_in_to_the_hubs_api_server_and_do_so_with_a_token() {
    assert!(uses_tokens(&addon("token", &["example.com/other", SIGNER])));
    assert!(!uses_tokens(&addon("csr", &[SIGNER])));
    assert!(!uses_tokens(&addon("token", &["example.com/other"])));
    assert!(!uses_tokens(&crate::addon::testing::addon("c1", "hello", json!({}))));
}

#[test]
fn only_an_add_on_on_an_accepted_cluster_gets_tokens() {
    let addon = addon("token", &[SIGNER]);
    assert_eq!(need_of(&addon, Some(&accepted("c1"))), Need::Tokens);
    assert_eq!(need_of(&addon, Some(&deleting(accepted("c1"), &["x"]))), Need::Unchanged);
    for (cluster, cause) in [(Some(cluster("c1")), "clusteradm accept --clusters c1"), (None, "no ManagedCluster c1")] {
        let Need::Refused(message) = need_of(&addon, cluster.as_ref()) else { panic!("{cluster:?}") };
        assert!(message.contains(cause), "{message}");
    }
    let mut leaving = addon;
    leaving.metadata.deletion_timestamp = Some(Time(now()));
    assert_eq!(need_of(&leaving, Some(&accepted("c1"))), Need::Gone);
    assert_eq!(need(&key(), None, Some(&accepted("c1")), "hub"), Need::Gone);
}

#[test]
fn reserved_namespaces_and_names_that_no_label_can_have_are_refused() {
    for namespace in ["kube-system", "hub", "open-cluster-management-hub"] {
        let mut addon = addon("token", &[SIGNER]);
        addon.metadata.namespace = Some(namespace.into());
        let need = need_of(&addon, Some(&accepted(namespace)));
        assert!(matches!(&need, Need::Refused(cause) if cause.contains(namespace)), "{need:?}");
    }
    let mut addon = addon("token", &[SIGNER]);
    addon.metadata.name = Some("a".repeat(64));
    let need = need_of(&addon, Some(&accepted("c1")));
    assert!(matches!(&need, Need::Refused(cause) if cause.contains("63 characters")), "{need:?}");
}

#[test]
fn what_is_missing_is_created_and_what_is_right_is_kept() {
    let Plan::SetUp(steps) = planned(Need::Tokens, Existing::default()) else { panic!() };
    assert!(matches!(
        *steps,
        plan::Steps { account: Step::Create(_), role: Step::Create(_), binding: Step::Create(_) }
    ));
    let Plan::SetUp(steps) = planned(Need::Tokens, existing()) else { panic!() };
    assert!(matches!(*steps, plan::Steps { account: Step::Keep(_), role: Step::Keep(_), binding: Step::Keep(_) }));
}

#[test]
fn the_objects_go_unless_they_are_needed() {
    for need in [Need::Nothing, Need::Gone, Need::Refused("x".into())] {
        assert_eq!(planned(need, existing()), Plan::Remove(existing()));
    }
    assert_eq!(planned(Need::Unchanged, existing()), Plan::Nothing);
}

#[test]
fn rights_are_restored_and_what_others_added_stays() {
    let mut drifted = objects::role(&key());
    drifted.rules.as_mut().unwrap()[0].resource_names = None;
    drifted.metadata.annotations = Some([("note".to_owned(), "x".to_owned())].into());
    let Step::Update { new, .. } = step(Some(&Arc::new(drifted)), objects::role(&key())) else { panic!() };
    assert_eq!(new.rules, objects::role(&key()).rules);
    assert!(new.metadata.annotations.is_some());
}

#[test]
fn a_binding_to_another_role_is_replaced_and_one_that_is_being_deleted_is_waited_for() {
    let mut elsewhere = objects::binding(&key());
    elsewhere.role_ref.name = "admin".into();
    assert!(matches!(step(Some(&Arc::new(elsewhere)), objects::binding(&key())), Step::Replace { .. }));
    let mut leaving = objects::binding(&key());
    leaving.metadata.deletion_timestamp = Some(Time(now()));
    assert!(matches!(step(Some(&Arc::new(leaving)), objects::binding(&key())), Step::Wait(_)));
}

#[test]
fn an_object_is_the_hubs_own_only_with_both_labels() {
    let mut account = objects::account(&key());
    assert!(objects::is_own(&account, "hello") && !objects::is_own(&account, "other"));
    for label in objects::account(&key()).metadata.labels.unwrap().keys() {
        account.metadata.labels = objects::account(&key()).metadata.labels;
        account.metadata.labels.as_mut().unwrap().remove(label);
        assert!(!objects::is_own(&account, "hello"), "without {label}");
    }
}

fn condition_of(change: ConditionChange) -> Option<(String, String, String)> {
    let applied = Applied { condition: change, failure: None };
    let status = report::reported(&addon("token", &[SIGNER]), &applied, now()).status.unwrap();
    let condition = find(&status.conditions, "TokenInfrastructureReady")?.clone();
    Some((condition.status, condition.reason, condition.message))
}

#[test]
fn the_condition_names_the_uid_in_the_words_that_agents_read() {
    let (status, reason, message) = condition_of(ConditionChange::Set(report::ready(&key(), "1234"))).unwrap();
    assert_eq!((status.as_str(), reason.as_str()), ("True", "TokenInfrastructureReady"));
    assert_eq!(message, "ServiceAccount c1/hello-agent (UID: 1234) is ready");
    let (status, reason, _) = condition_of(ConditionChange::Set(report::refused("x"))).unwrap();
    assert_eq!((status.as_str(), reason.as_str()), ("False", "TokenInfrastructureApplyFailed"));
}

#[test]
fn the_condition_goes_when_the_add_on_no_longer_uses_tokens() {
    let ready = Applied { condition: ConditionChange::Set(report::ready(&key(), "1")), failure: None };
    let known = report::reported(&addon("csr", &[SIGNER]), &ready, now());
    let removed = Applied { condition: ConditionChange::Remove("TokenInfrastructureReady"), failure: None };
    assert_eq!(report::reported(&known, &removed, now()), addon("csr", &[SIGNER]));
}

fn status(code: u16, reason: &str) -> (u16, Value) {
    (code, json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code}))
}

async fn created<K: objects::TokenObject>(new: K, answers: Vec<(u16, Value)>) -> Result<Arc<K>> {
    Step::Create(Box::new(new)).run(&client_answered_with(answers), &Cache::default(), "hello").await
}

fn stored<K: Resource<DynamicType = ()> + serde::Serialize>(mut object: K, labels: Value) -> (u16, Value) {
    object.meta_mut().uid = Some("u".into());
    object.meta_mut().labels = serde_json::from_value(labels).unwrap();
    (200, serde_json::to_value(object).unwrap())
}

#[tokio::test]
async fn an_account_of_somebody_else_is_reported_and_one_that_the_cache_does_not_show_yet_is_used() {
    let exists = || status(409, "AlreadyExists");
    let own = json!(objects::account(&key()).metadata.labels);
    let used = created(objects::account(&key()), vec![exists(), stored(objects::account(&key()), own)]).await.unwrap();
    assert_eq!(used.metadata.uid.as_deref(), Some("u"));
    for foreign in [json!({}), json!({"addon.open-cluster-management.io/name": "hello"})] {
        let found = stored(objects::account(&key()), foreign);
        let error = created(objects::account(&key()), vec![exists(), found]).await.unwrap_err();
        assert!(error.to_string().contains("ServiceAccount c1/hello-agent"), "{error}");
        assert!(matches!(error, Error::NotOwned { .. }) && error.class() == Class::Transient);
    }
    let gone = created(objects::account(&key()), vec![exists(), status(404, "NotFound")]).await.unwrap_err();
    assert!(gone.is_conflict());
}

#[tokio::test]
async fn a_binding_that_is_being_deleted_is_reported() {
    let mut leaving = objects::binding(&key());
    leaving.metadata.deletion_timestamp = Some(Time(now()));
    let step: Step<RoleBinding> = Step::Wait(Arc::new(leaving));
    let error = step.run(&client_answered_with(Vec::new()), &Cache::default(), "hello").await.unwrap_err();
    assert!(error.to_string().contains("RoleBinding c1/hello-token-role"), "{error}");
    let kept: Step<ServiceAccount> = Step::Keep(Arc::new(objects::account(&key())));
    assert!(kept.run(&client_answered_with(Vec::new()), &Cache::default(), "hello").await.is_ok());
}
