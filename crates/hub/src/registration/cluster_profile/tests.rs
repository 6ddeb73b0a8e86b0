use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use ocm_api::{
    cluster::v1::ManagedClusterClaim,
    labels::{CLUSTER_PROFILE_MANAGER_KEY, CLUSTER_SET},
    multicluster::v1alpha1::{AccessProvider, ClusterProfileSpec, ClusterProfileStatus},
};
use serde_json::json;

use super::{plan::is_ours, *};
use crate::testing::{cluster, now, with_condition};

/// A cluster of the set `blue` with all that a profile repeats.
fn member() -> ManagedCluster {
    let mut cluster = with_condition(&cluster("c1"), "ManagedClusterConditionAvailable", "False", "KubeAPIServerDown");
    cluster = with_condition(&cluster, "ManagedClusterJoined", "True", "ManagedClusterJoined");
    cluster.labels_mut().insert(CLUSTER_SET.into(), "blue".into());
    let status = cluster.status.as_mut().unwrap();
    status.version.kubernetes = Some("v1.36.3".into());
    status.cluster_claims = vec![ManagedClusterClaim { name: "id.k8s.io".into(), value: "7".into() }];
    cluster
}

fn observed(cluster: Option<ManagedCluster>, profile: Option<ClusterProfile>, selected: Selected) -> Observed {
    Observed { cluster: cluster.map(Arc::new), profile: profile.map(Arc::new), namespace: "ns".into(), selected }
}

fn planned(cluster: Option<ManagedCluster>, profile: Option<ClusterProfile>, selected: Selected) -> Step {
    ClusterProfileController::plan(&observed(cluster, profile, selected), now())
}

fn created() -> ClusterProfile {
    match planned(Some(member()), None, Selected::Yes) {
        Step::Create(profile) => *profile,
        step => panic!("{step:?}"),
    }
}

#[test]
fn a_selected_cluster_gets_a_profile_with_the_names_and_labels_of_ocm() {
    let expected = json!({
        "apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ClusterProfile",
        "metadata": {"name": "c1", "namespace": "ns", "labels": {
            "x-k8s.io/cluster-manager": "open-cluster-management",
            "open-cluster-management.io/cluster-name": "c1",
            "multicluster.x-k8s.io/clusterset": "blue",
        }},
        "spec": {"displayName": "c1", "clusterManager": {"name": "open-cluster-management"}},
    });
    let mut found = serde_json::to_value(created()).unwrap();
    found.as_object_mut().unwrap().remove("status");
    assert_eq!(found, expected);
    assert!(is_ours(&created()));
    assert_eq!(planned(Some(member()), Some(created()), Selected::Yes), Step::Keep);
}

#[test]
fn the_label_of_the_set_follows_the_cluster_and_is_empty_without_one() {
    let mut alone = member();
    alone.labels_mut().remove(CLUSTER_SET);
    let Step::Label(new) = planned(Some(alone), Some(created()), Selected::Yes) else { panic!() };
    assert_eq!(new.labels()["multicluster.x-k8s.io/clusterset"], "");
    assert_eq!(new.labels().len(), 3);
}

#[test]
fn a_profile_goes_when_the_namespace_may_no_longer_use_the_cluster_or_the_cluster_is_gone() {
    assert_eq!(planned(Some(member()), Some(created()), Selected::No), Step::Delete);
    assert_eq!(planned(None, Some(created()), Selected::No), Step::Delete);
    assert_eq!(planned(Some(member()), None, Selected::No), Step::None);
}

#[test]
fn nothing_is_deleted_or_created_while_it_is_unknown_what_the_namespace_may_use() {
    assert_eq!(planned(Some(member()), Some(created()), Selected::Unknown), Step::None);
    assert_eq!(planned(None, Some(created()), Selected::Unknown), Step::None);
    assert_eq!(planned(Some(member()), None, Selected::Unknown), Step::None);
}

/// Profiles that lack our label, or have another manager.
fn foreign() -> [ClusterProfile; 3] {
    let spec = |manager: &str| -> ClusterProfileSpec {
        serde_json::from_value(json!({"clusterManager": {"name": manager}})).unwrap()
    };
    let (mut unlabelled, mut relabelled, mut other) = (created(), created(), created());
    unlabelled.labels_mut().remove(CLUSTER_PROFILE_MANAGER_KEY);
    relabelled.labels_mut().insert(CLUSTER_PROFILE_MANAGER_KEY.into(), "other".into());
    other.spec = spec("other");
    [unlabelled, relabelled, other]
}

#[test]
fn a_profile_of_somebody_else_is_reported_where_it_takes_a_name_and_never_deleted() {
    for profile in foreign() {
        assert_eq!(planned(Some(member()), Some(profile.clone()), Selected::Yes), Step::Report, "{profile:?}");
        assert_eq!(planned(Some(member()), Some(profile.clone()), Selected::No), Step::None);
        assert_eq!(planned(None, Some(profile), Selected::No), Step::None);
    }
}

#[test]
fn the_status_repeats_version_claims_and_both_conditions_of_the_cluster() {
    let status = plan::status(&created(), &member(), now());
    assert_eq!(status.version.kubernetes.as_deref(), Some("v1.36.3"));
    assert_eq!((status.properties[0].name.as_str(), status.properties[0].value.as_str()), ("id.k8s.io", "7"));
    let said: Vec<_> =
        status.conditions.iter().map(|it| (&*it.type_, &*it.status, &*it.reason, &*it.message)).collect();
    let expected =
        [("ControlPlaneHealthy", "False", "KubeAPIServerDown", "m"), ("Joined", "True", "ManagedClusterJoined", "m")];
    assert_eq!(said, expected);
}

#[test]
fn a_status_that_says_it_all_stays_as_it_is_with_what_others_wrote() {
    let mut profile = created();
    let mut status = plan::status(&profile, &member(), now());
    status.access_providers = vec![AccessProvider { name: "theirs".into(), cluster: None }];
    profile.status = Some(status.clone());
    assert_eq!(plan::status(&profile, &member(), now() + jiff::SignedDuration::from_secs(60)), status);
    let unknown = plan::status(&profile, &cluster("c1"), now());
    assert_eq!(unknown.conditions, status.conditions, "a condition that the cluster lacks is kept");
    assert_eq!((unknown.properties.len(), unknown.version.kubernetes), (0, None));
    assert_eq!(plan::status(&created(), &cluster("c1"), now()), ClusterProfileStatus::default());
}

#[test]
fn a_profile_that_is_being_deleted_is_not_deleted_again() {
    let mut leaving = created();
    leaving.metadata.deletion_timestamp = Some(Time(now()));
    assert_eq!(planned(Some(member()), Some(leaving), Selected::No), Step::None);
}
