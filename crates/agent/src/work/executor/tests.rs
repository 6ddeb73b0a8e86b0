use std::sync::Arc;

use kube::core::{ApiResource, GroupVersionKind};
use ocm_runtime::{Class, Classified as _};
use serde_json::{Value, json};

use super::*;
use crate::{
    testing::{Mock, conflict},
    work::{manifest, mapper::RestMapping, options::ManifestOptions, retry::Retry},
};

fn work(executor: &Value) -> ManifestWork {
    serde_json::from_value(json!({"metadata": {"name": "w"}, "spec": {"executor": executor}})).unwrap()
}

fn deployer() -> Value {
    json!({"subject": {"type": "ServiceAccount", "serviceAccount": {"namespace": "team", "name": "deployer"}}})
}

/// An object of a work, and how to apply it.
fn object(api_version: &str, kind: &str, resource: &str) -> (ManifestResourceMeta, Target) {
    let manifest =
        json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a", "namespace": "ns"}, "rules": []});
    let parsed = manifest::parse(&[manifest.into()]).remove(0);
    let desired = parsed.desired.clone().unwrap();
    let gvk: &GroupVersionKind = &desired.gvk;
    let mapping = RestMapping { resource: ApiResource::from_gvk_with_plural(gvk, resource), namespaced: true };
    let target = Target { object: desired, mapping, is_owned: false, options: ManifestOptions::default() };
    (parsed.meta(resource, true), target)
}

fn config_map() -> (ManifestResourceMeta, Target) {
    object("v1", "ConfigMap", "configmaps")
}

fn role() -> (ManifestResourceMeta, Target) {
    object("rbac.authorization.k8s.io/v1", "Role", "roles")
}

/// A role that is merged by the API server, with these settings.
fn merged_role(settings: &Value) -> (ManifestResourceMeta, Target) {
    let (meta, mut target) = role();
    let strategy = json!({"type": "ServerSideApply", "serverSideApply": settings});
    target.options.strategy = Arc::new(serde_json::from_value(strategy).unwrap());
    target.options.strategy_at = Some(2);
    (meta, target)
}

fn says(allowed: bool) -> (u16, Value) {
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {},
        "status": {"allowed": allowed}});
    (201, review)
}

fn forbidden(message: &str) -> (u16, Value) {
    (403, json!({"kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden", "message": message}))
}

/// Whether the executor may apply an object, where the managed cluster answers like that.
async fn authorized(
    (meta, target): (ManifestResourceMeta, Target),
    is_owned: bool,
    answers: Vec<(u16, Value)>,
) -> (Result<(), ApplyError>, Mock) {
    let server = Mock::answering(answers);
    let executors = Executors::new(server.client());
    let target = Target { is_owned, ..target };
    let outcome = executors.of(&work(&deployer())).unwrap().authorize(&meta, &target).await;
    (outcome, server)
}

/// The verbs that were asked about.
fn verbs(server: &Mock) -> Vec<String> {
    let verb = |body: &Value| body["spec"]["resourceAttributes"]["verb"].as_str().map(str::to_owned);
    server.bodies().iter().filter_map(verb).collect()
}

#[tokio::test]
async fn a_work_without_an_executor_is_applied_without_questions() {
    let executors = Executors::new(Mock::default().client());
    assert!(executors.of(&ManifestWork::default()).is_none());
}

#[tokio::test]
async fn every_verb_is_asked_for_with_the_users_name_and_groups_and_the_object() {
    let (outcome, server) = authorized(config_map(), true, vec![says(true); 5]).await;
    outcome.unwrap();
    assert_eq!(verbs(&server), ["create", "update", "patch", "get", "delete"]);
    let spec = &server.bodies()[0]["spec"];
    assert_eq!(spec["user"], "system:serviceaccount:team:deployer");
    assert_eq!(
        spec["groups"],
        json!(["system:serviceaccounts", "system:authenticated", "system:serviceaccounts:team"])
    );
    let asked = json!({"group": "", "version": "v1", "resource": "configmaps", "namespace": "ns", "name": "a",
        "verb": "create"});
    assert_eq!(spec["resourceAttributes"], asked);
}

#[tokio::test]
async fn only_for_an_object_that_is_deleted_with_its_work_the_right_to_delete_it_is_needed() {
    let (outcome, server) = authorized(config_map(), false, vec![says(true); 4]).await;
    outcome.unwrap();
    assert_eq!(verbs(&server), ["create", "update", "patch", "get"]);
}

#[tokio::test]
async fn the_first_verb_that_is_denied_is_named_and_tried_again_in_a_minute() {
    let answers = vec![says(true), says(false), says(true), says(false), says(false)];
    let (outcome, _) = authorized(config_map(), true, answers).await;
    let error = outcome.unwrap_err();
    assert!(error.to_string().contains("may not update configmaps a in namespace ns"), "{error}");
    assert_eq!((error.retry(), error.class()), (Retry::InAMinute, Class::Refused));
}

#[tokio::test]
async fn a_question_that_fails_is_no_permission() {
    let unanswered = (500, json!({"kind": "Status", "status": "Failure", "code": 500, "message": "no"}));
    let (outcome, _) = authorized(config_map(), false, vec![says(true), unanswered, says(true), says(true)]).await;
    let error = outcome.unwrap_err();
    assert!(matches!(error, ApplyError::Request(_)) && error.retry() == Retry::BackOff, "{error}");
}

#[tokio::test]
async fn an_executor_that_cannot_be_is_refused_without_questions() {
    let server = Mock::default();
    let executors = Executors::new(server.client());
    let (meta, target) = config_map();
    let nobody = work(&json!({"subject": {"type": "ServiceAccount"}}));
    let refused = executors.of(&nobody).unwrap().authorize(&meta, &target).await.unwrap_err();
    assert_eq!((refused.class(), refused.retry()), (Class::Invalid, Retry::AtRegularPass));
    assert!(server.asked().is_empty());
}

#[tokio::test]
async fn an_object_without_the_namespace_that_it_needs_is_not_asked_about_in_all_namespaces() {
    let (mut meta, mut target) = config_map();
    meta.namespace.clear();
    target.object.namespace.clear();
    let (outcome, server) = authorized((meta, target), true, vec![]).await;
    assert!(matches!(outcome, Err(ApplyError::NoNamespace(_))));
    assert!(server.asked().is_empty());
}

#[tokio::test]
async fn what_an_object_of_rbac_grants_is_checked_by_a_dry_run_as_the_executor() {
    let escalation = "roles.rbac.authorization.k8s.io \"a\" is forbidden: user \"system:serviceaccount:team:deployer\" \
                      (groups=[]) is attempting to grant RBAC permissions not currently held:\n{}";
    let stored =
        (201, json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "a"}}));
    for (answer, refusal) in
        [(stored, None), (conflict(), None), (forbidden(escalation), Some("permission escalation: roles.rbac"))]
    {
        let mut answers = vec![says(true); 4];
        answers.push(answer);
        let (outcome, server) = authorized(role(), false, answers).await;
        assert_eq!(server.asked()[4], "POST /apis/rbac.authorization.k8s.io/v1/namespaces/ns/roles");
        match refusal {
            None => outcome.unwrap(),
            Some(text) => {
                let error = outcome.unwrap_err();
                assert!(error.to_string().starts_with(text), "{error}");
                assert_eq!(error.retry(), Retry::InAMinute);
            }
        }
    }
}

#[tokio::test]
async fn an_agent_that_may_not_impersonate_is_what_is_reported() {
    let message = "serviceaccounts \"deployer\" is forbidden: User \"agent\" cannot impersonate resource \
                   \"serviceaccounts\" in API group \"\" in the namespace \"team\"";
    let mut answers = vec![says(true); 4];
    answers.push(forbidden(message));
    let (outcome, _) = authorized(role(), false, answers).await;
    let error = outcome.unwrap_err();
    assert!(matches!(error, ApplyError::Request(_)), "{error}");
    assert!(error.explain().contains("cannot impersonate"), "{}", error.explain());
}

/// Rules, labels and subjects that only the existing object has are in what is written, too.
#[tokio::test]
async fn what_is_merged_into_an_existing_object_of_rbac_is_checked_by_a_dry_run_of_the_same_request() {
    let role = || merged_role(&json!({"force": true, "fieldManager": "work-agent-x"}));
    let stored =
        (200, json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "a"}}));
    let escalation = forbidden("is attempting to grant RBAC permissions not currently held");
    for (answer, is_refused) in [(stored, false), (conflict(), false), (escalation, true)] {
        let answers = [vec![says(true); 4], vec![conflict(), answer]].concat();
        let (outcome, server) = authorized(role(), false, answers).await;
        assert_eq!(outcome.is_err(), is_refused);
        assert_eq!(server.asked()[5], "PATCH /apis/rbac.authorization.k8s.io/v1/namespaces/ns/roles/a");
        assert_eq!(server.queries()[5], "dryRun=All&force=true&fieldManager=work-agent-x");
        let sent = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
            "metadata": {"name": "a", "namespace": "ns"}, "rules": []});
        assert_eq!(server.bodies()[5], sent);
    }
}

/// A rule without its `resourceNames` grants more than the one that is checked.
#[tokio::test]
async fn fields_of_an_object_of_rbac_that_are_not_applied_are_refused_without_a_dry_run() {
    let ignoring = |condition: &str| json!([{"condition": condition, "jsonPointers": ["/rules/0/resourceNames"]}]);
    let refused = merged_role(&json!({"ignoreFields": ignoring("OnSpokePresent")}));
    let (outcome, server) = authorized(refused, false, vec![says(true); 4]).await;
    let error = outcome.unwrap_err();
    let path = "spec.manifestConfigs[2].updateStrategy.serverSideApply.ignoreFields[0] cannot be used for a role";
    assert!(error.to_string().starts_with(path), "{error}");
    assert!(matches!(error, ApplyError::Executor(_)));
    assert_eq!((error.class(), server.asked().len()), (Class::Invalid, 4));

    let allowed = merged_role(&json!({"ignoreFields": ignoring("OnSpokeChange")}));
    let stored = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "a"}});
    let answers = [vec![says(true); 4], vec![(201, stored)]].concat();
    authorized(allowed, false, answers).await.0.unwrap();
}
