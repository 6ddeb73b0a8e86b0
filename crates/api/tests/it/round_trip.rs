//! Reading an object and writing it again loses nothing.

use k8s_openapi::Resource;
use ocm_api::cluster::v1::{ManagedCluster, TaintEffect};
use ocm_api::cluster::v1alpha1::ClusterClaim;
use ocm_api::cluster::v1beta2::ManagedClusterSet;
use ocm_api::work::v1::{AppliedManifestWork, ManifestWork, UpdateStrategyType};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

const MANAGED_CLUSTER: &str = include_str!("fixtures/managedcluster.yaml");
const MANAGED_CLUSTER_SET: &str = include_str!("fixtures/managedclusterset.yaml");
const CLUSTER_CLAIM: &str = include_str!("fixtures/clusterclaim.yaml");
const MANIFEST_WORK: &str = include_str!("fixtures/manifestwork.yaml");
const APPLIED_MANIFEST_WORK: &str = include_str!("fixtures/appliedmanifestwork.yaml");

fn again<K: Serialize + DeserializeOwned>(value: &Value) -> Value {
    let object: K = serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{error}: {value}"));
    serde_json::to_value(object).unwrap()
}

fn check<K: Serialize + DeserializeOwned>(text: &str) {
    for value in ocm_apimachinery::yaml::from_str_multi::<Value>(text).unwrap() {
        assert_eq!(again::<K>(&value), value);
    }
}

#[test]
fn a_managed_cluster_keeps_every_field() {
    check::<ManagedCluster>(MANAGED_CLUSTER);
}

#[test]
fn a_managed_cluster_set_keeps_every_field() {
    check::<ManagedClusterSet>(MANAGED_CLUSTER_SET);
}

#[test]
fn a_cluster_claim_keeps_every_field() {
    check::<ClusterClaim>(CLUSTER_CLAIM);
}

#[test]
fn a_manifest_work_keeps_every_field() {
    check::<ManifestWork>(MANIFEST_WORK);
}

#[test]
fn an_applied_manifest_work_keeps_every_field() {
    check::<AppliedManifestWork>(APPLIED_MANIFEST_WORK);
}

#[test]
fn the_fixtures_hold_every_field_that_the_schemas_have() {
    let fixtures =
        [MANAGED_CLUSTER, MANAGED_CLUSTER_SET, CLUSTER_CLAIM, MANIFEST_WORK, APPLIED_MANIFEST_WORK].join("\n---\n");
    let objects: Vec<Value> = ocm_apimachinery::yaml::from_str_multi(&fixtures).unwrap();
    for crd in ocm_api::crds::all().unwrap() {
        let crd = serde_json::to_value(crd.definition).unwrap();
        let kind = &crd["spec"]["names"]["kind"];
        let examples: Vec<&Value> = objects.iter().filter(|object| object["kind"] == *kind).collect();
        let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        assert_shown(kind.as_str().unwrap(), schema, &examples);
    }
}

fn assert_shown(path: &str, schema: &Value, examples: &[&Value]) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        let values: Vec<&Value> = examples.iter().filter_map(|example| example.get(name)).collect();
        assert!(!values.is_empty(), "no fixture has {path}");
        let items: Vec<&Value> = values.iter().filter_map(|value| value.as_array()).flatten().collect();
        assert_shown(&path, property, &values);
        assert_shown(&path, &property["items"], &items);
    }
}

#[test]
fn an_empty_object_is_written_with_what_go_clients_expect() {
    let metadata = json!({ "name": "c1" });
    let cluster = ManagedCluster::new("c1", Default::default());
    let expected = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster", "metadata": metadata,
        "spec": { "hubAcceptsClient": false },
    });
    assert_eq!(serde_json::to_value(cluster).unwrap(), expected);
    let work = ManifestWork::new("c1", "w1", Default::default());
    assert_eq!(serde_json::to_value(work).unwrap()["spec"], json!({ "workload": {} }));
    let manifest = json!({ "resourceMeta": { "ordinal": 0 }, "conditions": null });
    let status: ocm_api::work::v1::ManifestCondition = serde_json::from_value(manifest).unwrap();
    let expected = json!({
        "resourceMeta": {
            "ordinal": 0, "group": "", "version": "", "kind": "", "resource": "", "name": "", "namespace": "",
        },
        "statusFeedback": {}, "conditions": [],
    });
    assert_eq!(serde_json::to_value(status).unwrap(), expected);
}

#[test]
fn a_value_that_is_not_known_is_kept_and_named() {
    let value = json!({
        "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork", "metadata": {},
        "spec": { "workload": {}, "manifestConfigs": [{
            "resourceIdentifier": { "group": "", "resource": "configmaps", "name": "a", "namespace": "" },
            "updateStrategy": { "type": "Recreate" },
        }] },
    });
    let work: ManifestWork = serde_json::from_value(value.clone()).unwrap();
    let strategy = work.spec.manifest_configs[0].update_strategy.clone().unwrap();
    assert_eq!(strategy.type_, UpdateStrategyType::Other("Recreate".to_owned()));
    assert_eq!(strategy.type_.to_string(), "Recreate");
    assert_eq!(again::<ManifestWork>(&value), value);
    assert_eq!(TaintEffect::from("NoSelect"), TaintEffect::NoSelect);
}

#[test]
fn an_object_with_metadata_alone_is_readable() {
    let value = json!({ "metadata": { "name": "a" } });
    assert!(serde_json::from_value::<ManagedCluster>(value.clone()).unwrap().status.is_none());
    assert!(serde_json::from_value::<ManifestWork>(value).is_ok());
}

#[test]
fn kinds_know_their_place_in_the_api() {
    use kube_core::Resource as _;
    assert_eq!(ManagedCluster::url_path(&(), None), "/apis/cluster.open-cluster-management.io/v1/managedclusters");
    let works = "/apis/work.open-cluster-management.io/v1/namespaces/c1/manifestworks";
    assert_eq!(ManifestWork::url_path(&(), Some("c1")), works);
    assert_eq!(ClusterClaim::API_VERSION, "cluster.open-cluster-management.io/v1alpha1");
}
