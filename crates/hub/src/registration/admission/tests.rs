use std::path::Path;

use jiff::SignedDuration;
use ocm_api::webhooks::CLUSTER_VALIDATORS;
use ocm_apimachinery::yaml;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;
use crate::{
    testing::now,
    webhook::configurations::{Target, configurations},
};

/// What `deploy/hub.yaml` installs of the API group of admission.
fn installed() -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/hub.yaml");
    let objects = yaml::from_str_multi::<Value>(&std::fs::read_to_string(path).unwrap()).unwrap();
    let is_admission = |object: &Value| text(object, "/apiVersion").starts_with("admissionregistration");
    objects.into_iter().filter(is_admission).collect()
}

fn text(object: &Value, field: &str) -> String {
    object.pointer(field).and_then(Value::as_str).unwrap_or_default().to_owned()
}

#[test]
fn the_policies_and_bindings_of_the_installation_are_checked_and_no_others() {
    let checked = CHECKS.iter().flat_map(|check| {
        let kinds = ["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"];
        kinds.map(|kind| (kind.to_owned(), check.name.to_owned()))
    });
    let installed = installed().into_iter().map(|object| (text(&object, "/kind"), text(&object, "/metadata/name")));
    assert_eq!(installed.collect::<Vec<_>>(), checked.collect::<Vec<_>>());
}

/// An object of the installation for the first check, edited.
#[expect(clippy::needless_pass_by_value, reason = "so that tests can write json!")]
fn of_installation<K: DeserializeOwned>(kind: &str, edit: Value) -> Enforcement<K> {
    let mut object = installed().into_iter().find(|object| object["kind"] == kind).unwrap();
    ocm_apimachinery::merge::apply(&mut object, &json!({ "spec": edit }));
    Enforcement::Exists(Box::new(serde_json::from_value(object).unwrap()))
}

fn policies() -> Found {
    Found {
        webhooks: Enforcement::Missing,
        policy: of_installation("ValidatingAdmissionPolicy", json!({})),
        binding: of_installation("ValidatingAdmissionPolicyBinding", json!({})),
    }
}

/// Only the webhook of the first check, edited.
fn webhooks(edit: impl Fn(&mut Value)) -> Found {
    let configuration = configurations(&Target::default()).validating.remove(0);
    let mut configuration = serde_json::to_value(configuration).unwrap();
    edit(&mut configuration);
    let webhooks = Enforcement::Exists(Box::new(serde_json::from_value(configuration).unwrap()));
    Found { webhooks, policy: Enforcement::Missing, binding: Enforcement::Missing }
}

#[test]
fn the_policy_with_its_binding_enforces_and_so_does_the_webhook() {
    assert_eq!(policies().state(CHECKS[0]), State::Enforced);
    assert_eq!(webhooks(|_| ()).state(CHECKS[0]), State::Enforced);
    let old_server = Found { policy: Enforcement::Unsupported, binding: Enforcement::Unsupported, ..webhooks(|_| ()) };
    assert_eq!(old_server.state(CHECKS[0]), State::Enforced);
}

/// The first reason why the first check is not enforced.
#[track_caller]
fn assert_not_enforced(found: &Found, reason: &str) {
    let State::Not(reasons) = found.state(CHECKS[0]) else { panic!("{:?}", found.state(CHECKS[0])) };
    assert!(reasons.iter().any(|it| it.contains(reason)), "{reason}: {reasons:?}");
}

#[test]
fn a_policy_that_is_missing_not_bound_or_bound_without_effect_does_not_enforce() {
    assert_not_enforced(&Found { policy: Enforcement::Missing, ..policies() }, "Policy managedclustervalidators");
    assert_not_enforced(&Found { binding: Enforcement::Missing, ..policies() }, "does not exist");
    let open = of_installation("ValidatingAdmissionPolicy", json!({"failurePolicy": "Ignore"}));
    assert_not_enforced(&Found { policy: open, ..policies() }, "failurePolicy");
    let binding = |edit| Found { binding: of_installation("ValidatingAdmissionPolicyBinding", edit), ..policies() };
    assert_not_enforced(&binding(json!({"validationActions": ["Audit"]})), "validationActions");
    assert_not_enforced(&binding(json!({"policyName": "other"})), "binds another policy");
    let some = json!({"matchResources": {"objectSelector": {"matchLabels": {"a": "b"}}}});
    assert_not_enforced(&binding(some), "matchResources");
}

#[test]
fn a_webhook_that_is_not_asked_about_every_change_does_not_enforce() {
    assert_not_enforced(&webhooks(|it| it["webhooks"] = json!([])), "has no webhooks");
    let edited = |field: &'static str, value: Value| webhooks(move |it| it["webhooks"][0][field] = value.clone());
    assert_not_enforced(&edited("failurePolicy", json!("Ignore")), "failurePolicy");
    assert_not_enforced(&edited("objectSelector", json!({"matchLabels": {"a": "b"}})), "selector");
    let condition = json!([{"name": "n", "expression": "false"}]);
    assert_not_enforced(&edited("matchConditions", condition), "matchConditions");
    let rule = |edit: fn(&mut Value)| webhooks(move |it| edit(&mut it["webhooks"][0]["rules"][0]));
    assert_not_enforced(&rule(|it| it["operations"] = json!(["CREATE"])), "rules");
    assert_not_enforced(&rule(|it| it["resources"] = json!(["managedclusters/status"])), "rules");
    assert_eq!(edited("objectSelector", json!({})).state(CHECKS[0]), State::Enforced);
    assert_eq!(rule(|it| it["operations"] = json!(["*"])).state(CHECKS[0]), State::Enforced);
}

fn observed(states: [State; 3], said: Option<Said>) -> Observed {
    Observed { states: CHECKS.into_iter().zip(states).collect(), said }
}

fn warning(states: [State; 3]) -> Option<String> {
    AdmissionController::plan(&observed(states, None), now()).warning
}

#[test]
fn the_warning_says_what_is_not_checked_why_and_how_to_install_it() {
    assert_eq!(warning([State::Enforced, State::Enforced, State::Enforced]), None);
    let missing = State::Not(vec!["a does not exist".into(), "b does not exist".into()]);
    let one = warning([missing.clone(), State::Enforced, State::Enforced]).unwrap();
    let expected = "The API server does not check who may accept clusters and put them into cluster sets. a does not exist, \
                    b does not exist. Install the policies with: kubectl apply --server-side -f deploy/hub.yaml. Or run ocm \
                    webhook";
    assert!(one.starts_with(expected), "{one}");
    let both = warning([State::Unsupported, missing.clone(), State::Enforced]).unwrap();
    assert!(both.contains("1.30 or newer") && both.contains("not check who may bind"), "{both}");
    let works = warning([State::Enforced, State::Enforced, missing]).unwrap();
    assert!(works.starts_with("The API server does not check who may create works with which executor. "), "{works}");
    let denied = warning([State::Unknown("failed to get it: no".into()), State::Enforced, State::Enforced]).unwrap();
    assert!(denied.contains("failed to get it: no. Grant the right with: kubectl apply"), "{denied}");
}

#[test]
fn the_same_is_said_again_after_hours_and_something_else_at_once() {
    let (fine, missing) =
        ([State::Enforced, State::Enforced, State::Enforced], [State::Unsupported, State::Enforced, State::Enforced]);
    let say = |states: &[State; 3], said: Option<Said>, at| {
        AdmissionController::plan(&observed(states.clone(), said), at).say
    };
    let said = say(&missing, None, now());
    assert!(said.is_some());
    let later = |hours| now() + SignedDuration::from_hours(hours);
    assert_eq!(say(&missing, said.clone(), later(3)), None);
    assert!(say(&missing, said.clone(), later(4)).is_some());
    let mended = say(&fine, said, later(1));
    assert_eq!(mended.as_ref().map(|said| said.warning.clone()), Some(None));
    assert_eq!(say(&fine, mended, later(100)), None);
}

#[test]
fn a_kind_that_the_server_does_not_have_is_not_taken_for_a_missing_object() {
    let answer = |details: Value| -> Status {
        serde_json::from_value(json!({"status": "Failure", "code": 404, "message": "m", "details": details})).unwrap()
    };
    let name = CLUSTER_VALIDATORS;
    let missing = absence::<()>(Some(&answer(json!({"name": name, "kind": "k"}))), name);
    assert!(matches!(missing, Enforcement::Missing));
    assert!(matches!(absence::<()>(Some(&answer(json!({}))), name), Enforcement::Unsupported));
}
