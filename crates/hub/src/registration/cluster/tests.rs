use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::{api::core::v1::Namespace, apimachinery::pkg::apis::meta::v1::Time};
use kube::core::Status;
use ocm_api::{cluster::v1::ManagedCluster, finalizers, limits, reasons::cluster as reasons};
use ocm_runtime::{Class, Classified as _, Requeue};

use super::{
    apply::Applied,
    observe::{ClusterRbac, Observed, Phase, phase, works_matter},
    plan::{NamespaceStep, Plan, WaitReason, plan},
    report,
};
use crate::{
    error::Error,
    registration::{
        cluster::rbac::{Step, objects},
        status::condition,
    },
    testing::{accepted, cluster, deleting, now, with_accepted},
};

fn labels() -> BTreeMap<String, String> {
    BTreeMap::from([("team".to_owned(), "a".to_owned())])
}

/// Nothing made yet, no works, shared roles there.
fn observed(cluster: Option<ManagedCluster>) -> Observed {
    Observed {
        name: "c1".into(),
        phase: phase(cluster.as_ref(), &ClusterRbac::default()),
        refusal: None,
        cluster: cluster.map(Arc::new),
        namespace: None,
        rights: ClusterRbac::default(),
        shared_roles_exist: true,
        works_remain: false,
        labels: labels(),
    }
}

fn with_rights(cluster: Option<ManagedCluster>) -> Observed {
    let rights = rights("c1");
    let phase = phase(cluster.as_ref(), &rights);
    Observed { phase, rights, namespace: Some(objects::namespace("c1", &labels())), ..observed(cluster) }
}

fn rights(cluster: &str) -> ClusterRbac {
    ClusterRbac {
        role: Some(Arc::new(objects::cluster_role(cluster, true, &labels()))),
        role_binding: Some(Arc::new(objects::cluster_role_binding(cluster, &labels()))),
        registration: Some(Arc::new(objects::registration_binding(cluster, &labels()))),
        work: Some(Arc::new(objects::work_binding(cluster, &labels()))),
    }
}

fn once_accepted() -> ManagedCluster {
    with_accepted(&cluster("c1"), "True", reasons::HUB_CLUSTER_ADMIN_ACCEPTED)
}

fn complete() -> ManagedCluster {
    let mut cluster = with_accepted(&accepted("c1"), "True", reasons::HUB_CLUSTER_ADMIN_ACCEPTED);
    cluster.metadata.finalizers = Some(vec![finalizers::CLUSTER_API_RESOURCE_CLEANUP.into()]);
    cluster
}

fn reported(observed: &Observed) -> Option<(String, String)> {
    let applied = Applied::nothing(observed, plan(observed).waits_for);
    let (_, new) = report::status(&applied, now())?;
    let condition = condition(&new, "HubAcceptedManagedCluster")?.clone();
    Some((condition.status, condition.reason))
}

#[test]
fn a_cluster_that_nobody_has_accepted_gets_nothing() {
    assert_eq!(observed(Some(cluster("c1"))).phase, Phase::Pending);
    assert_eq!(plan(&observed(Some(cluster("c1")))), Plan::default());
}

#[test]
fn a_denied_cluster_whose_condition_was_removed_loses_its_rights_and_gets_the_condition_back() {
    let observed = with_rights(Some(cluster("c1")));
    assert_eq!(observed.phase, Phase::Denied);
    let plan = plan(&observed);
    assert!(matches!(plan.role, Some(Step::Update { .. })));
    assert!(matches!(plan.registration, Some(Step::Remove { .. })));
    assert!(matches!(plan.work, Some(Step::Remove { release: true, .. })));
    assert_eq!(reported(&observed), Some(("False".into(), reasons::HUB_CLUSTER_ADMIN_DENIED.into())));
}

/// A cluster that was registered after its name had been given rights.
fn registered_again() -> Observed {
    let mut cluster = cluster("c1");
    cluster.metadata.creation_timestamp = Some(Time(now()));
    let mut rights = rights("c1");
    let before = Some(Time(now() - jiff::SignedDuration::from_secs(1)));
    Arc::make_mut(rights.role.as_mut().unwrap()).metadata.creation_timestamp.clone_from(&before);
    Arc::make_mut(rights.role_binding.as_mut().unwrap()).metadata.creation_timestamp.clone_from(&before);
    Arc::make_mut(rights.registration.as_mut().unwrap()).metadata.creation_timestamp.clone_from(&before);
    Arc::make_mut(rights.work.as_mut().unwrap()).metadata.creation_timestamp = before;
    Observed { phase: phase(Some(&cluster), &rights), rights, ..observed(Some(cluster)) }
}

#[test]
fn rights_of_a_former_cluster_are_no_rights_of_the_new_one_of_that_name() {
    let observed = registered_again();
    assert_eq!(observed.phase, Phase::Pending);
    let removed = plan(&observed);
    assert!(matches!(removed.role, Some(Step::Remove { .. })));
    assert!(matches!(removed.role_binding, Some(Step::Remove { .. })));
    assert!(matches!(removed.registration, Some(Step::Remove { .. })));
    assert!(matches!(removed.work, Some(Step::Remove { release: true, .. })));
    assert_eq!(reported(&observed), None, "nobody has decided about the new one");
}

fn refused(cluster: ManagedCluster) -> Observed {
    Observed { refusal: Some("it belongs to others"), ..with_rights(Some(cluster)) }
}

#[test]
fn a_refused_name_gets_nothing_in_any_phase_and_loses_what_it_has() {
    let deleting = deleting(complete(), &[finalizers::CLUSTER_API_RESOURCE_CLEANUP]);
    for cluster in [accepted("c1"), complete(), once_accepted(), cluster("c1"), deleting] {
        let observed = refused(cluster);
        let removed = plan(&observed);
        assert_eq!((&removed.namespace, &removed.with_finalizer), (&None, &None), "{:?}", observed.phase);
        assert!(matches!(removed.role, Some(Step::Remove { .. })));
        assert!(matches!(removed.role_binding, Some(Step::Remove { .. })));
        assert!(matches!(removed.registration, Some(Step::Remove { .. })));
        assert!(matches!(removed.work, Some(Step::Remove { release: true, .. })));
        assert_eq!(removed.without_finalizer.is_some(), observed.phase == Phase::Deleting);
    }
    let nothing = Observed { rights: ClusterRbac::default(), ..refused(once_accepted()) };
    assert_eq!(plan(&nothing), Plan::default());
}

#[test]
fn an_accepted_cluster_gets_namespace_finalizer_and_rights_and_its_condition_says_so() {
    let observed = observed(Some(accepted("c1")));
    let plan = plan(&observed);
    let Some(NamespaceStep::Create(namespace)) = plan.namespace else { panic!() };
    assert_eq!(*namespace, objects::namespace("c1", &labels()));
    assert_eq!(plan.with_finalizer.unwrap().metadata.finalizers.unwrap(), [finalizers::CLUSTER_API_RESOURCE_CLEANUP]);
    assert_eq!(plan.role, Some(Step::Create(Box::new(objects::cluster_role("c1", true, &labels())))));
    assert!(matches!(plan.role_binding, Some(Step::Create(_))));
    assert!(matches!(plan.registration, Some(Step::Create(_))));
    assert_eq!(plan.work, Some(Step::Create(Box::new(objects::work_binding("c1", &labels())))));
    assert_eq!(reported(&observed), Some(("True".into(), reasons::HUB_CLUSTER_ADMIN_ACCEPTED.into())));
}

#[test]
fn a_cluster_that_has_everything_is_left_alone() {
    let observed = with_rights(Some(complete()));
    assert_eq!(plan(&observed), Plan::default());
    assert_eq!(reported(&observed), None);
}

#[test]
fn an_existing_namespace_keeps_its_labels_and_gets_ours() {
    let mut namespace = Namespace::default();
    namespace.metadata.name = Some("c1".into());
    namespace.metadata.labels = Some(BTreeMap::from([("theirs".into(), "x".into())]));
    let observed = Observed { namespace: Some(namespace), ..with_rights(Some(complete())) };
    let Some(NamespaceStep::Label { new, .. }) = plan(&observed).namespace else { panic!() };
    let labels: Vec<_> = new.metadata.labels.unwrap().into_keys().collect();
    assert_eq!(labels, ["open-cluster-management.io/cluster-name", "team", "theirs"]);
}

#[test]
fn nothing_is_bound_before_the_shared_roles_exist() {
    let observed = Observed { shared_roles_exist: false, ..observed(Some(accepted("c1"))) };
    assert_eq!(plan(&observed), Plan { waits_for: WaitReason::SharedRoles, ..Plan::default() });
    assert_eq!(reported(&observed), None);
    assert_eq!(report::next(Applied::nothing(&observed, WaitReason::SharedRoles)).unwrap(), Requeue::BackOff);
}

#[test]
fn the_condition_of_a_refused_cluster_says_why_when_it_is_accepted() {
    assert_eq!(reported(&refused(accepted("c1"))), Some(("False".into(), reasons::ERROR.into())));
    let denied = refused(with_accepted(&cluster("c1"), "False", reasons::ERROR));
    assert_eq!(reported(&denied), Some(("False".into(), reasons::HUB_CLUSTER_ADMIN_DENIED.into())));
}

#[test]
fn a_denied_cluster_keeps_the_right_to_read_itself_and_loses_the_rest() {
    let observed = with_rights(Some(once_accepted()));
    let plan = plan(&observed);
    let Some(Step::Update { new, .. }) = plan.role else { panic!() };
    assert_eq!(new.rules, objects::cluster_role("c1", false, &labels()).rules);
    assert_eq!(plan.role_binding, None);
    assert!(matches!(plan.registration, Some(Step::Remove { .. })));
    assert!(matches!(plan.work, Some(Step::Remove { release: true, .. })));
    assert_eq!(reported(&observed), Some(("False".into(), reasons::HUB_CLUSTER_ADMIN_DENIED.into())));
}

#[test]
fn a_cluster_denied_while_it_could_not_be_set_up_loses_its_rights_too() {
    let failed = with_accepted(&cluster("c1"), "False", reasons::ERROR);
    let observed = with_rights(Some(failed));
    assert!(matches!(plan(&observed).registration, Some(Step::Remove { .. })));
    assert_eq!(reported(&observed), Some(("False".into(), reasons::HUB_CLUSTER_ADMIN_DENIED.into())));
}

#[test]
fn a_denied_cluster_with_works_keeps_the_work_binding_and_its_condition() {
    let observed = Observed { works_remain: true, ..with_rights(Some(once_accepted())) };
    assert!(matches!(plan(&observed).work, Some(Step::Remove { release: false, .. })));
    assert_eq!(reported(&observed), None);
    let next = report::next(Applied::nothing(&observed, plan(&observed).waits_for)).unwrap();
    assert_eq!(next, Requeue::After(limits::CLUSTER_DELETION_RECHECK));
}

#[test]
fn a_deleted_cluster_loses_its_rights_and_the_finalizer_once_its_works_are_gone() {
    let leaving = deleting(complete(), &[finalizers::CLUSTER_API_RESOURCE_CLEANUP, "other"]);
    let waiting = Observed { works_remain: true, ..with_rights(Some(leaving)) };
    let early = plan(&waiting);
    assert!(matches!(early.role, Some(Step::Remove { .. })));
    assert!(matches!(early.registration, Some(Step::Remove { .. })));
    assert!(matches!(early.work, Some(Step::Remove { release: false, .. })));
    assert_eq!((early.without_finalizer, early.namespace), (None, None));
    let done = plan(&Observed { works_remain: false, ..waiting.clone() });
    assert!(matches!(done.work, Some(Step::Remove { release: true, .. })));
    assert_eq!(done.without_finalizer.unwrap().metadata.finalizers.unwrap(), ["other"]);
    assert_eq!(reported(&waiting), None);
}

#[test]
fn a_work_binding_of_an_accepted_cluster_that_is_being_deleted_stays_until_the_works_are_gone() {
    let mut observed = Observed { works_remain: true, ..with_rights(Some(complete())) };
    let mut binding = objects::work_binding("c1", &labels());
    binding.metadata.deletion_timestamp = Some(Time(now()));
    observed.rights.work = Some(Arc::new(binding));
    assert_eq!(plan(&observed), Plan { waits_for: WaitReason::Works, ..Plan::default() });
    observed.works_remain = false;
    assert!(matches!(plan(&observed).work, Some(Step::Replace { .. })));
}

#[test]
fn nothing_is_made_in_a_namespace_that_is_being_deleted_and_nothing_keeps_it_but_works() {
    let mut observed = Observed { works_remain: true, ..with_rights(Some(complete())) };
    let leaving = Some(Time(now()));
    observed.namespace.as_mut().unwrap().metadata.deletion_timestamp = leaving.clone();
    let mut binding = objects::work_binding("c1", &labels());
    binding.metadata.deletion_timestamp = leaving;
    observed.rights = ClusterRbac { work: Some(Arc::new(binding)), ..ClusterRbac::default() };
    assert_eq!(plan(&observed), Plan { waits_for: WaitReason::Namespace, ..Plan::default() });
    assert_eq!(reported(&observed), Some(("False".into(), reasons::ERROR.into())));
    observed.works_remain = false;
    assert!(matches!(plan(&observed).work, Some(Step::Remove { release: true, .. })));
}

#[test]
fn rights_of_a_cluster_that_is_gone_are_removed() {
    let plan = plan(&with_rights(None));
    assert!(matches!(plan.role, Some(Step::Remove { .. })));
    assert!(matches!(plan.role_binding, Some(Step::Remove { .. })));
    assert!(matches!(plan.work, Some(Step::Remove { release: true, .. })));
    assert_eq!(plan.without_finalizer, None);
}

fn answered(code: u16, message: &str) -> Error {
    let status = Status::failure(message, "").with_code(code).boxed();
    let source = Box::new(kube::Error::Api(status));
    ocm_runtime::Error::Request { verb: "create", noun: "Namespace c1".into(), source }.into()
}

#[test]
fn the_condition_of_an_accepted_cluster_says_what_keeps_it_from_its_rights() {
    let observed = observed(Some(accepted("c1")));
    let failed = |error| Applied { errors: vec![error], ..Applied::nothing(&observed, WaitReason::None) };
    let message = |applied: &Applied| {
        let (_, new) = report::status(applied, now()).unwrap();
        condition(&new, "HubAcceptedManagedCluster").unwrap().message.clone()
    };
    let passing = failed(answered(500, "no leader"));
    assert!(message(&passing).ends_with("failed to create Namespace c1: no leader. The hub retries."));
    assert!(report::next(passing).is_err());
    for denied in [answered(403, "quota exceeded"), answered(422, "denied by policy p"), answered(400, "no")] {
        let denied = failed(denied);
        assert!(message(&denied).ends_with("The hub retries every few minutes."), "{}", message(&denied));
        assert_eq!(report::next(denied).unwrap_err().class(), Class::Refused);
    }
    let both = Applied { errors: vec![answered(422, "no"), answered(500, "no")], ..failed(answered(422, "no")) };
    assert_eq!(report::next(both).unwrap_err().class(), Class::Transient, "the first retry is for both");
}

#[test]
fn of_several_errors_of_a_denied_cluster_the_one_that_is_retried_first_counts() {
    let observed = with_rights(Some(once_accepted()));
    let noted = |codes: &[u16]| {
        let results = codes.iter().map(|code| Err(answered(*code, "no")));
        Applied::nothing(&observed, WaitReason::None).note(results).unwrap_err().class()
    };
    assert_eq!(noted(&[422, 500]), Class::Transient);
    assert_eq!(noted(&[422, 409]), Class::Conflict);
}

#[test]
fn the_condition_of_a_deleted_cluster_with_a_refused_name_says_which_works_hold_it() {
    let leaving = || deleting(complete(), &[finalizers::CLUSTER_API_RESOURCE_CLEANUP]);
    let deleting = |works_remain| {
        let observed = Observed { works_remain, ..refused(leaving()) };
        let applied = Applied::nothing(&observed, plan(&observed).waits_for);
        let (_, new) = report::status(&applied, now())?;
        condition(&new, "Deleting").cloned()
    };
    let held = deleting(true).unwrap();
    assert_eq!((held.status.as_str(), held.reason.as_str()), ("False", reasons::RESOURCE_REMAINING));
    assert!(held.message.contains("it belongs to others. Delete the ManifestWorks"), "{}", held.message);
    assert_eq!(deleting(false), None);
}

#[test]
fn works_are_counted_only_where_the_decision_depends_on_them() {
    let matter = |cluster: Option<ManagedCluster>, is_refused, rights: ClusterRbac| {
        works_matter(phase(cluster.as_ref(), &rights), is_refused, cluster.as_ref(), &rights)
    };
    let (all, none) = (|| rights("c1"), ClusterRbac::default);
    let mut leaving = all();
    Arc::make_mut(leaving.work.as_mut().unwrap()).metadata.deletion_timestamp = Some(Time(now()));
    assert!(!matter(Some(complete()), false, all()), "accepted");
    assert!(matter(Some(complete()), false, leaving));
    assert!(matter(Some(complete()), true, all()));
    assert!(matter(Some(once_accepted()), false, none()), "the condition waits for works");
    let denied = with_accepted(&cluster("c1"), "False", reasons::HUB_CLUSTER_ADMIN_DENIED);
    assert!(!matter(Some(denied.clone()), false, none()));
    assert!(matter(Some(denied), false, all()));
    assert!(matter(Some(deleting(complete(), &[finalizers::CLUSTER_API_RESOURCE_CLEANUP])), false, none()));
    assert!(!matter(Some(deleting(complete(), &["other"])), false, none()));
    assert!(matter(None, false, all()));
    assert!(!matter(None, false, none()));
}
