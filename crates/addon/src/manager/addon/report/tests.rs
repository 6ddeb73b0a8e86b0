use ocm_api::addon::v1alpha1::{RegistrationConfig, Subject};

use super::{
    super::testing::{now, observed, served, work},
    *,
};
use crate::AgentAddonOptions;

fn granted() -> Applied {
    let subject = Some(Subject { user: "u".into(), ..Subject::default() });
    Applied {
        registration: Some(NewCondition::is_true("RegistrationApplied", "SetPermissionApplied", "")),
        registrations: Some(vec![RegistrationConfig { signer_name: "a.b/c".into(), subject }]),
        deployed: Deployed::Works(vec![work(None)]),
        ..Applied::default()
    }
}

fn deployed(works: Vec<ManifestWork>) -> Applied {
    Applied { deployed: Deployed::Works(works), ..Applied::default() }
}

fn manifest_applied(observed: &Observed, applied: Applied) -> Option<(String, String, String)> {
    let status = with_status(observed, applied, now()).status?;
    let condition = conditions::find(&status.conditions, "ManifestApplied")?;
    Some((condition.status.clone(), condition.reason.clone(), condition.message.clone()))
}

#[test]
fn all_that_the_clusters_agent_needs_is_in_one_write() {
    let status = with_status(&observed(), granted(), now()).status.unwrap();
    assert_eq!(status.namespace.as_deref(), Some("default"));
    assert_eq!(status.registrations.len(), 1);
    assert_eq!(status.health_check.mode, Some(HealthCheckMode::Lease));
    let types: Vec<_> = status.conditions.iter().map(|condition| condition.type_.as_str()).collect();
    assert_eq!(types, ["RegistrationApplied"], "nothing is known of the works yet");
}

#[test]
fn the_health_check_is_the_add_ons_own_where_it_says_so() {
    let mut own = observed();
    own.served = served(AgentAddonOptions::new("hello").health_prober(HealthProber::None));
    let status = with_status(&own, deployed(vec![]), now()).status.unwrap();
    assert_eq!(status.health_check.mode, Some(HealthCheckMode::Customized));
}

#[test]
fn without_an_outcome_the_status_stays() {
    let observed = observed();
    assert_eq!(with_status(&observed, Applied::default(), now()), *observed.addon);
}

#[test]
fn the_works_decide_whether_the_manifests_are_applied() {
    let reported = |works| manifest_applied(&observed(), deployed(works)).map(|(status, reason, _)| (status, reason));
    let is = |status: &str, reason: &str| Some((status.to_owned(), reason.to_owned()));
    assert_eq!(reported(vec![]), is("True", "AddonManifestApplied"));
    assert_eq!(reported(vec![work(Some("True")), work(Some("True"))]), is("True", "AddonManifestApplied"));
    assert_eq!(reported(vec![work(Some("True")), work(Some("False"))]), is("False", "AddonManifestAppliedFailed"));
    assert_eq!(reported(vec![work(Some("True")), work(None)]), None);
    let message = manifest_applied(&observed(), deployed(vec![work(Some("False"))])).unwrap().2;
    assert!(message.contains("addon-hello-deploy-0") && message.ends_with("reported by its agent"), "{message}");
}

#[test]
fn what_was_said_of_a_former_version_of_a_work_does_not_count() {
    let mut changed = work(Some("True"));
    changed.metadata.generation = Some(3);
    assert_eq!(manifest_applied(&observed(), deployed(vec![changed])), None);
}

#[test]
fn a_failure_is_forgotten_while_the_agent_looks_again_and_a_success_is_not() {
    let reported =
        |condition: NewCondition| observed().with_status(|status| status.conditions = vec![condition.at(now(), None)]);
    let failed = reported(NewCondition::is_false(MANIFEST_APPLIED, MANIFEST_WORK_APPLY_FAILED, "x"));
    assert_eq!(manifest_applied(&failed, deployed(vec![work(None)])), None);
    let applied = reported(NewCondition::is_true(MANIFEST_APPLIED, MANIFEST_APPLIED_REASON, "x"));
    assert!(manifest_applied(&applied, deployed(vec![work(None)])).is_some());
}

#[test]
fn what_cannot_be_deployed_is_reported_and_another_cause_is_reported_too() {
    let failed = |cause: &str| Applied { deployed: Deployed::Failed(cause.into()), ..Applied::default() };
    let first = with_status(&observed(), failed("one"), now());
    let mut again = observed();
    again.addon = std::sync::Arc::new(first);
    let reported = manifest_applied(&again, failed("two")).unwrap();
    assert_eq!(reported, ("False".into(), "ManifestWorkApplyFailed".into(), "two".into()));
}

#[test]
fn another_message_of_a_success_is_not_written() {
    let reported = observed().with_status(|status| {
        status.health_check.mode = Some(HealthCheckMode::Lease);
        let theirs = NewCondition::is_true(MANIFEST_APPLIED, MANIFEST_APPLIED_REASON, "their message");
        status.conditions = vec![theirs.at(now(), None)];
    });
    assert_eq!(with_status(&reported, deployed(vec![work(Some("True"))]), now()), *reported.addon);
}
