use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use ocm_runtime::conditions::NewCondition;
use serde_json::json;

use super::{
    super::testing::{config_map, now, observed, work},
    *,
};

fn refusal(observed: &Observed) -> String {
    match plan(observed).deploy {
        Deploy::Refused(reason) => reason,
        other => panic!("{other:?}"),
    }
}

fn hook() -> serde_json::Value {
    let metadata = json!({"name": "clean-up", "annotations": {(annotations::ADDON_PRE_DELETE): ""}});
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata})
}

#[test]
fn a_new_add_on_gets_its_identity_and_its_work_at_once() {
    let plan = plan(&observed());
    assert!(matches!(&plan.registration, Registering::As(wanted) if wanted.identity.is_some()));
    assert!(matches!(&plan.deploy, Deploy::Works(steps) if matches!(steps[..], [Step::Create(_)])));
    assert_eq!(plan.finalizers, None);
}

#[test]
fn before_the_hub_owns_it_nothing_happens() {
    let mut unowned = observed().with_addon(|addon| addon.metadata.owner_references = None);
    unowned.registrations = None;
    let nothing = Plan { finalizers: None, registration: Registering::Nothing, deploy: Deploy::Nothing };
    assert_eq!(plan(&unowned), nothing);
    let anothers =
        observed().with_addon(|addon| addon.metadata.owner_references.as_mut().unwrap()[0].name = "b".into());
    assert!(!unowned.is_adopted() && !anothers.is_adopted());
}

#[test]
fn an_add_on_that_was_registered_earlier_keeps_being_deployed_without_its_owner() {
    let condition = NewCondition::is_false("RegistrationApplied", "R", "");
    let orphan = observed()
        .with_addon(|addon| addon.metadata.owner_references = None)
        .with_status(|status| status.conditions = vec![condition.at(now(), None)]);
    assert!(matches!(plan(&orphan).deploy, Deploy::Works(_)));
}

#[test]
fn an_add_on_without_registration_needs_no_identity() {
    let plain = |former: &str, registrations: usize| {
        let mut plain = observed().with_status(|status| {
            status.conditions = vec![NewCondition::is_true("RegistrationApplied", "R", "").at(now(), None)];
            status.conditions[0].reason = former.into();
            status.registrations = vec![Default::default(); registrations];
        });
        plain.registrations = Some(Ok(Vec::new()));
        plan(&plain).registration
    };
    assert_eq!(plain("SetPermissionApplied", 2), Registering::NotNeeded { former: 2 });
    assert_eq!(plain("NilRegistration", 2), Registering::NotNeeded { former: 0 }, "somebody else wrote them");
}

#[test]
fn identities_that_cannot_be_determined_or_that_share_a_signer_are_refused_by_name() {
    let refused = |registrations| {
        let mut observed = observed();
        observed.registrations = Some(registrations);
        match plan(&observed).registration {
            Registering::Refused(reason) => reason,
            other => panic!("{other:?}"),
        }
    };
    assert!(refused(Err("no inventory".into())).contains("on cluster c1: no inventory"));
    let one = || ("example.com/s".to_owned(), Identity::default());
    assert!(refused(Ok(vec![one(), one()])).contains("two registrations with signer example.com/s"));
}

#[test]
fn the_agent_of_a_cluster_that_is_not_accepted_gets_no_permissions_and_the_reason_is_named() {
    let mut unaccepted = observed();
    Arc::make_mut(&mut unaccepted.cluster).spec.hub_accepts_client = false;
    let plan = plan(&unaccepted);
    let Registering::As(registrations) = plan.registration else { panic!("{:?}", plan.registration) };
    assert_eq!((registrations.identity, registrations.configs.len()), (None, 1));
    assert!(registrations.fault.unwrap().contains("clusteradm accept --clusters c1"));
    assert!(matches!(plan.deploy, Deploy::Works(_)), "its works are written all the same, as by OCM");
}

#[test]
fn an_add_on_that_is_being_deleted_or_whose_cluster_is_is_not_deployed() {
    assert_eq!(plan(&observed().deleting()).deploy, Deploy::Nothing);
    assert_eq!(plan(&observed().deleting()).registration, Registering::Nothing);
    let mut deleting = observed();
    Arc::make_mut(&mut deleting.cluster).metadata.deletion_timestamp = Some(Time(now()));
    assert_eq!(plan(&deleting).deploy, Deploy::Nothing);
}

#[test]
fn an_error_of_the_author_and_an_invalid_manifest_are_reported_and_nothing_is_written() {
    let mut failed = observed();
    failed.manifests = Some(Err("no licence".into()));
    assert!(refusal(&failed).contains("for cluster c1: no licence"), "{}", refusal(&failed));
    let mut nameless = config_map("a");
    nameless["metadata"]["name"] = json!("");
    let bad = refusal(&observed().rendering(vec![config_map("b"), nameless]));
    assert!(bad.contains("manifest 1 (ConfigMap default/) has no metadata.name"), "{bad}");
}

#[test]
fn hosted_mode_is_refused_by_the_name_of_its_annotation() {
    let hosted = observed().with_addon(|addon| {
        addon.annotations_mut().insert(annotations::ADDON_HOSTING_CLUSTER.into(), "host".into());
    });
    assert!(refusal(&hosted).contains("addon.open-cluster-management.io/hosting-cluster-name"));
    assert!(matches!(plan(&hosted).registration, Registering::Refused(reason) if reason.contains("host")));
}

#[test]
fn hooks_are_refused_and_hold_the_finalizer_that_waits_for_them() {
    let held = |observed: Observed| {
        observed.rendering(vec![config_map("a"), hook()]).with_addon(|addon| {
            addon.metadata.finalizers = Some(vec![finalizers::ADDON_PRE_DELETE.into()]);
        })
    };
    for observed in [held(observed()), held(observed().deleting())] {
        assert!(refusal(&observed).contains("Job clean-up"), "{}", refusal(&observed));
        assert_eq!(plan(&observed).finalizers, None);
    }
}

#[test]
fn a_finalizer_for_hooks_that_are_none_comes_off_with_old_ones_and_others_stay() {
    let all = [finalizers::ADDON_PRE_DELETE, finalizers::ADDON_DEPRECATED[0], "example.com/mine"];
    let finalized = |observed: Observed| {
        observed.with_addon(|addon| addon.metadata.finalizers = Some(all.map(str::to_owned).to_vec()))
    };
    for observed in [finalized(observed()), finalized(observed().deleting())] {
        assert_eq!(plan(&observed).finalizers, Some(vec!["example.com/mine".to_owned()]));
    }
}

#[test]
fn as_long_as_nobody_knows_whether_there_are_hooks_the_finalizer_stays_and_the_condition_says_why() {
    let held = || {
        observed().deleting().with_addon(|addon| {
            addon.metadata.finalizers = Some(vec![finalizers::ADDON_PRE_DELETE.into()]);
        })
    };
    let mut failed = held();
    failed.manifests = Some(Err("no licence".into()));
    assert_eq!(plan(&failed).finalizers, None);
    assert!(refusal(&failed).contains("no licence"));
    let mut nameless = config_map("a");
    nameless["metadata"]["name"] = json!("");
    for manifests in [vec![nameless.clone(), hook()], vec![hook(), nameless]] {
        let unreadable = held().rendering(manifests);
        assert_eq!(plan(&unreadable).finalizers, None);
        assert!(refusal(&unreadable).contains("cannot be put into a ManifestWork"));
    }
}

#[test]
fn a_finalizer_of_old_versions_alone_comes_off_too() {
    for old in finalizers::ADDON_DEPRECATED {
        let held = observed().deleting().with_addon(|addon| addon.metadata.finalizers = Some(vec![old.into()]));
        assert_eq!(plan(&held).finalizers, Some(vec![]));
    }
}

#[test]
fn a_finalizer_of_a_manager_that_let_the_agent_run_elsewhere_is_named_when_it_holds_the_add_on() {
    for finalizer in HOSTING {
        let held =
            |observed: Observed| observed.with_addon(|addon| addon.metadata.finalizers = Some(vec![finalizer.into()]));
        let mut deleting = held(observed().deleting());
        deleting.manifests = None;
        assert!(refusal(&deleting).contains(finalizer));
        assert_eq!(plan(&deleting).finalizers, None);
        assert!(matches!(plan(&held(observed())).deploy, Deploy::Works(_)));
    }
}

#[test]
fn what_a_work_that_is_being_deleted_holds_is_waited_for() {
    let mut waiting = observed();
    let mut deleting = work(None);
    deleting.metadata.deletion_timestamp = Some(Time(now()));
    deleting.spec.workload.manifests = vec![config_map("a").into()];
    waiting.works = vec![Arc::new(deleting)];
    assert_eq!(plan(&waiting).deploy, Deploy::Works(vec![Step::Wait(waiting.works[0].clone())]));
}
