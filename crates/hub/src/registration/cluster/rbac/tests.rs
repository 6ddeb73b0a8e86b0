use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;

use super::{objects::*, *};
use crate::testing::client_answered_with;

fn none() -> BTreeMap<String, String> {
    BTreeMap::new()
}

fn is_same<K: Granting>(object: K, expected: &serde_json::Value) {
    let mut value = serde_json::to_value(object).unwrap();
    for field in ["apiVersion", "kind"] {
        value.as_object_mut().unwrap().remove(field);
    }
    assert_eq!(&value, expected);
}

#[test]
fn a_clusters_objects_are_those_that_agents_of_other_makers_expect() {
    is_same(
        cluster_role("c1", true, &none()),
        &json!({
            "metadata": {
                "name": "open-cluster-management:managedcluster:c1",
                "labels": {"open-cluster-management.io/cluster-name": "c1"},
            },
            "rules": [
                {"apiGroups": ["certificates.k8s.io"], "resources": ["certificatesigningrequests"],
                 "verbs": ["create", "get", "list", "watch"]},
                {"apiGroups": ["register.open-cluster-management.io"],
                 "resources": ["managedclusters/clientcertificates"], "verbs": ["renew"]},
                {"apiGroups": ["cluster.open-cluster-management.io"], "resourceNames": ["c1"],
                 "resources": ["managedclusters"], "verbs": ["get", "list", "update", "watch"]},
                {"apiGroups": ["cluster.open-cluster-management.io"], "resourceNames": ["c1"],
                 "resources": ["managedclusters/status"], "verbs": ["patch", "update"]},
            ],
        }),
    );
    is_same(
        work_binding("c1", &none()),
        &json!({
            "metadata": {
                "name": "open-cluster-management:managedcluster:c1:work", "namespace": "c1",
                "labels": {"open-cluster-management.io/cluster-name": "c1"},
                "finalizers": ["cluster.open-cluster-management.io/manifest-work-cleanup"],
            },
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                        "name": "open-cluster-management:managedcluster:work"},
            "subjects": [
                {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:open-cluster-management:c1"},
                {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "open-cluster-management:c1"},
            ],
        }),
    );
}

#[test]
fn a_denied_cluster_may_only_look_at_itself() {
    let rules = cluster_role("c1", false, &none()).rules.unwrap();
    assert_eq!(rules.len(), 1);
    assert_eq!(rules[0].verbs, ["get", "list", "watch"]);
    assert_eq!(rules[0].resource_names.as_deref(), Some(&["c1".to_owned()][..]));
}

#[test]
fn labels_of_the_command_line_are_added_and_never_take_the_clusters_place() {
    let more = BTreeMap::from([("team".into(), "a".into()), (ocm_api::labels::CLUSTER_NAME.into(), "other".into())]);
    let labels = registration_binding("c1", &more).metadata.labels.unwrap();
    assert_eq!(labels[ocm_api::labels::CLUSTER_NAME], "c1");
    assert_eq!(labels["team"], "a");
    assert_eq!(shared_roles(&none())[0].labels()[ocm_api::labels::CLUSTER_NAME], "");
}

#[test]
fn what_is_missing_is_made_and_what_is_right_is_left_alone() {
    let desired = cluster_role("c1", true, &none());
    assert!(matches!(upsert(None, desired.clone()), Some(Step::Create(_))));
    assert_eq!(upsert(Some(&Arc::new(desired.clone())), desired), None);
}

#[test]
fn rights_are_restored_and_what_others_added_stays() {
    let mut drifted = work_binding("c1", &none());
    drifted.subjects.as_mut().unwrap().truncate(1);
    drifted.metadata.labels = Some(BTreeMap::from([("theirs".into(), "x".into())]));
    drifted.metadata.finalizers = None;
    let Some(Step::Update { new, .. }) = upsert(Some(&Arc::new(drifted)), work_binding("c1", &none())) else {
        panic!()
    };
    assert_eq!(new.subjects.unwrap().len(), 2);
    assert_eq!(new.metadata.labels.unwrap().len(), 2);
    assert_eq!(new.metadata.finalizers.unwrap(), [MANIFEST_WORK]);
}

#[test]
fn an_aggregated_role_becomes_an_ordinary_one() {
    let mut drifted = cluster_role("c1", true, &none());
    drifted.aggregation_rule = Some(k8s_openapi::api::rbac::v1::AggregationRule::default());
    let step = upsert(Some(&Arc::new(drifted)), cluster_role("c1", true, &none()));
    assert!(matches!(step, Some(Step::Update { new, .. }) if new.aggregation_rule.is_none()));
}

#[test]
fn a_binding_to_another_role_or_on_its_way_out_is_made_anew() {
    let mut elsewhere = registration_binding("c1", &none());
    elsewhere.role_ref.name = "cluster-admin".into();
    let step = upsert(Some(&Arc::new(elsewhere)), registration_binding("c1", &none()));
    assert!(matches!(step, Some(Step::Replace { .. })));
    let step = upsert(Some(&Arc::new(leaving())), work_binding("c1", &none()));
    assert!(matches!(step, Some(Step::Replace { .. })));
}

fn leaving() -> RoleBinding {
    let mut binding = work_binding("c1", &none());
    binding.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
    binding
}

#[test]
fn a_binding_with_a_finalizer_is_released_only_when_asked() {
    let there = Arc::new(work_binding("c1", &none()));
    assert!(matches!(removal(Some(&there), false), Some(Step::Remove { release: false, .. })));
    assert!(matches!(removal(Some(&there), true), Some(Step::Remove { release: true, .. })));
    assert_eq!(removal(Some(&Arc::new(leaving())), false), None, "it waits");
    assert!(matches!(removal(Some(&Arc::new(leaving())), true), Some(Step::Remove { release: true, .. })));
    assert_eq!(removal::<RoleBinding>(None, true), None);
}

fn status(code: u16, reason: &str) -> (u16, serde_json::Value) {
    (code, json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code}))
}

async fn created(answers: Vec<(u16, serde_json::Value)>) -> Result<()> {
    let step = Step::Create(Box::new(cluster_role("c1", true, &none())));
    step.run(&client_answered_with(answers), &Cache::default()).await
}

#[tokio::test]
async fn a_role_that_exists_and_is_gone_when_it_is_read_has_not_been_created() {
    assert!(created(vec![status(409, "AlreadyExists"), status(404, "NotFound")]).await.unwrap_err().is_conflict());
}

#[tokio::test]
async fn a_role_that_exists_is_adopted_only_if_it_lost_its_label() {
    let labelled = |labels: serde_json::Value| {
        let mut role = serde_json::to_value(cluster_role("c1", true, &none())).unwrap();
        role["metadata"]["labels"] = labels;
        (200, role)
    };
    let adopted = |labels| created(vec![status(409, "AlreadyExists"), labelled(labels), labelled(json!({}))]);
    assert!(adopted(json!({"theirs": "x"})).await.is_ok());
    for owner in ["c2", ""] {
        let error = adopted(json!({ocm_api::labels::CLUSTER_NAME: owner})).await.unwrap_err();
        assert!(matches!(&error, crate::error::Error::Foreign { owner: found, .. } if found == owner), "{error}");
    }
}
