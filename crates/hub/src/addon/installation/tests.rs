use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};
use kube::core::Status;
use ocm_api::addon::v1alpha1::ManagedClusterAddOn;
use ocm_runtime::{ObjectKey, conditions};
use serde_json::{Value, json};

use super::{failure, observe::Observed, plan::Plan, plan::plan, report::reported};
use crate::{
    addon::{
        decision::{Desired, DesiredState},
        facts::{Cluster, Work},
        testing,
    },
    testing::now,
};

fn observed(state: DesiredState, addon: Option<ManagedClusterAddOn>) -> Observed {
    Observed {
        key: ObjectKey::new("c1", "a"),
        desired: Desired { owner: "owner".into(), state, refusal: None },
        addon: addon.map(Arc::new),
        cluster: Some(Cluster::default()),
        works: Vec::new(),
    }
}

fn wanted() -> Observed {
    observed(DesiredState::Installed, None)
}

fn addon(spec: Value) -> ManagedClusterAddOn {
    testing::addon("c1", "a", spec)
}

fn created(observed: &Observed) -> ManagedClusterAddOn {
    match plan(observed) {
        Plan::Create(addon) => *addon,
        other => panic!("{other:?}"),
    }
}

fn owners_after(owners: Vec<OwnerReference>) -> Vec<OwnerReference> {
    let mut addon = addon(json!({}));
    addon.metadata.owner_references = Some(owners);
    match plan(&observed(DesiredState::Kept, Some(addon))) {
        Plan::Keep(_, new) => new.metadata.owner_references.unwrap(),
        other => panic!("{other:?}"),
    }
}

fn owner(api_version: &str, kind: &str, name: &str, uid: &str, controller: Option<bool>) -> OwnerReference {
    OwnerReference {
        api_version: api_version.into(),
        kind: kind.into(),
        name: name.into(),
        uid: uid.into(),
        controller,
        block_owner_deletion: Some(true),
    }
}

fn management() -> OwnerReference {
    owner("addon.open-cluster-management.io/v1beta1", "ClusterManagementAddOn", "a", "owner", Some(true))
}

#[test]
fn an_addon_is_created_with_its_owner_and_the_annotations_of_its_cluster() {
    let mut observed = wanted();
    let host = "addon.open-cluster-management.io/hosting-cluster-name";
    let namespace = "addon.open-cluster-management.io/v1alpha1-install-namespace";
    observed.cluster.as_mut().unwrap().annotations =
        [(host.to_owned(), "h".to_owned()), (namespace.to_owned(), "ns".to_owned())].into();
    let addon = created(&observed);
    assert_eq!(addon.metadata.namespace.as_deref(), Some("c1"));
    assert_eq!(addon.metadata.owner_references, Some(vec![management()]));
    assert_eq!(addon.metadata.annotations, Some([(host.to_owned(), "h".to_owned())].into()));
    assert_eq!(addon.spec.install_namespace.as_deref(), Some("ns"));
}

#[test]
fn an_addon_is_not_created_on_a_cluster_that_is_gone_or_going() {
    let mut observed = wanted();
    observed.cluster.as_mut().unwrap().is_deleting = true;
    assert_eq!(plan(&observed), Plan::Nothing);
    observed.cluster = None;
    assert_eq!(plan(&observed), Plan::Nothing);
}

#[test]
fn an_addon_that_exists_and_cannot_be_read_is_a_failure_and_a_conflict_is_not() {
    let failure_of = |code: u16, reason: &str| {
        let status = Status::failure("no", reason).with_code(code).boxed();
        let source = Box::new(kube::Error::Api(status));
        failure(&ocm_runtime::Error::Request { verb: "create", noun: "a".into(), source })
    };
    assert!(failure_of(409, "AlreadyExists").unwrap().contains("cannot read it"));
    assert_eq!(failure_of(409, "Conflict"), None);
    assert_eq!(failure_of(422, "Invalid").unwrap(), "failed to create a: no");
}

#[test]
fn an_addon_that_is_only_to_be_kept_is_not_created() {
    assert_eq!(plan(&observed(DesiredState::Kept, None)), Plan::Nothing);
    assert!(matches!(plan(&observed(DesiredState::Kept, Some(addon(json!({}))))), Plan::Keep(..)));
}

#[test]
fn an_addon_that_no_placement_chooses_is_left_alone_until_it_is_to_be_deleted() {
    let plan_for = |state, addon| plan(&observed(state, addon));
    let there = || Some(addon(json!({})));
    assert_eq!(plan_for(DesiredState::Leaving { since: now() }, there()), Plan::Nothing);
    assert!(matches!(plan_for(DesiredState::Absent { since: now() }, there()), Plan::Delete(_)));
    assert_eq!(plan_for(DesiredState::Absent { since: now() }, None), Plan::Nothing);
}

#[test]
fn an_addon_that_is_being_deleted_is_left_alone_and_created_again_when_it_is_gone() {
    let mut deleting = addon(json!({}));
    deleting.metadata.deletion_timestamp = Some(Time(now()));
    for state in [DesiredState::Installed, DesiredState::Kept, DesiredState::Absent { since: now() }] {
        assert_eq!(plan(&observed(state, Some(deleting.clone()))), Plan::Nothing);
    }
    created(&wanted());
}

#[test]
fn the_owner_is_added_and_replaced_when_it_is_another_object_of_the_same_name() {
    assert_eq!(owners_after(vec![]), [management()]);
    assert_eq!(owners_after(vec![management()]), [management()]);
    let older = owner("addon.open-cluster-management.io/v1alpha1", "ClusterManagementAddOn", "a", "before", Some(true));
    let other = owner("v1", "ConfigMap", "a", "x", None);
    assert_eq!(owners_after(vec![older, other.clone()]), [other, management()]);
}

#[test]
fn where_somebody_else_is_the_controller_the_owner_is_one_like_others() {
    let controller = owner("apps/v1", "Deployment", "d", "x", Some(true));
    let owners = owners_after(vec![controller.clone()]);
    assert_eq!(owners, [controller, OwnerReference { controller: Some(false), ..management() }]);
}

/// Status and reason of both conditions.
fn conditions_of(addon: &ManagedClusterAddOn, observed: &Observed) -> (String, String) {
    let status = reported(addon, observed, now()).status.unwrap();
    let of = |type_| {
        let found = conditions::find(&status.conditions, type_).unwrap();
        format!("{} {}", found.status, found.reason)
    };
    (of("Configured"), of("Progressing"))
}

fn message(addon: &ManagedClusterAddOn, observed: &Observed, type_: &str) -> String {
    let status = reported(addon, observed, now()).status.unwrap();
    conditions::find(&status.conditions, type_).unwrap().message.clone()
}

fn with_conditions(spec: Value, types: &[&'static str]) -> ManagedClusterAddOn {
    let mut addon = addon(spec);
    let known = &mut addon.status.get_or_insert_default().conditions;
    known.extend(types.iter().map(|type_| conditions::NewCondition::is_true(type_, "R", "m").at(now(), None)));
    addon
}

fn work(name: &str) -> Work {
    Work { name: name.into(), addon: ObjectKey::new("c1", "a"), is_hosted: false, is_plain: true, is_ready: true }
}

fn progressing(addon: &ManagedClusterAddOn, works: Vec<Work>) -> String {
    conditions_of(addon, &Observed { works, ..wanted() }).1
}

#[test]
fn without_configuration_an_addon_is_configured_at_once_and_waits_for_its_manager() {
    let (configured, progressing) = conditions_of(&addon(json!({})), &wanted());
    assert_eq!(configured, "True ConfigurationsConfigured");
    assert_eq!(progressing, "False WaitingForManifestApplied");
}

#[test]
fn it_progresses_until_all_its_works_are_ready_and_then_is_completed() {
    let addon = with_conditions(json!({}), &["ManifestApplied"]);
    assert_eq!(progressing(&addon, vec![]), "True Progressing");
    let unready = Work { is_ready: false, ..work("addon-a-deploy-1") };
    assert_eq!(progressing(&addon, vec![work("addon-a-deploy-0"), unready]), "True Progressing");
    let configured = Work { is_plain: false, ..work("addon-a-deploy-0") };
    assert_eq!(progressing(&addon, vec![configured]), "True Progressing");
    assert_eq!(progressing(&addon, vec![work("addon-a-deploy-0")]), "False Completed");
    let hook = Work { is_ready: false, ..work("addon-a-pre-delete") };
    assert_eq!(progressing(&addon, vec![work("addon-a-deploy-0"), hook]), "False Completed");
}

#[test]
fn a_hosted_addon_waits_for_both_clusters_and_counts_the_works_on_the_other_one() {
    let host = |types: &[&'static str]| {
        let mut addon = with_conditions(json!({}), types);
        let key = "addon.open-cluster-management.io/hosting-cluster-name".to_owned();
        addon.metadata.annotations = Some([(key, "h".to_owned())].into());
        addon
    };
    let hosted = || vec![Work { is_hosted: true, ..work("addon-a-deploy-hosting-c1-0") }];
    assert_eq!(progressing(&host(&["ManifestApplied"]), hosted()), "False WaitingForHostingManifestApplied");
    assert_eq!(progressing(&host(&["ManifestApplied", "HostingManifestApplied"]), hosted()), "False Completed");
    assert_eq!(progressing(&with_conditions(json!({}), &["ManifestApplied"]), hosted()), "True Progressing");
}

#[test]
fn a_configuration_is_refused_by_the_name_of_its_field() {
    let mut configured =
        with_conditions(json!({"configs": [{"group": "g", "resource": "r", "name": "x"}]}), &["ManifestApplied"]);
    let expected = ("False ConfigurationsNotConfigured".to_owned(), "False ConfigurationUnsupported".to_owned());
    assert_eq!(conditions_of(&configured, &wanted()), expected);
    assert!(message(&configured, &wanted(), "Configured").starts_with("spec.configs "));
    assert!(
        message(&configured, &wanted(), "Progressing")
            .contains("kind r.g, which is not in the status.supportedConfigs")
    );
    let supported = serde_json::from_value(json!([{"group": "g", "resource": "r"}])).unwrap();
    configured.status.as_mut().unwrap().supported_configs = supported;
    assert_eq!(conditions_of(&configured, &wanted()), expected);
    assert!(message(&configured, &wanted(), "Progressing").contains("which this hub does not support yet"));
}

#[test]
fn an_addon_reports_what_its_management_addon_asks_for_and_keeps_its_references() {
    let mut observed = wanted();
    observed.desired.refusal = Some("spec.x".into());
    let mut addon = addon(json!({}));
    addon.status.get_or_insert_default().config_references =
        serde_json::from_value(json!([{"resource": "r", "name": "x"}])).unwrap();
    assert_eq!(message(&addon, &observed, "Configured"), "spec.x");
    let references = |observed: &Observed| reported(&addon, observed, now()).status.unwrap().config_references.len();
    assert_eq!(references(&observed), 1);
    assert_eq!(references(&wanted()), 0, "there is no configuration any more");
}

#[test]
fn a_different_message_alone_is_not_written_where_all_is_well() {
    let mut addon = with_conditions(json!({}), &["ManifestApplied"]);
    let theirs = conditions::NewCondition::is_true("Configured", "ConfigurationsConfigured", "theirs").at(now(), None);
    let completed = conditions::NewCondition::is_false("Progressing", "Completed", "theirs").at(now(), None);
    addon.status.as_mut().unwrap().conditions.extend([theirs, completed]);
    let observed = Observed { works: vec![work("addon-a-deploy-0")], ..wanted() };
    assert_eq!(reported(&addon, &observed, now()), addon);
}
