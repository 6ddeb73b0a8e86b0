//! Reading an object and writing it again loses nothing.

use k8s_openapi::Resource;
use ocm_api::cluster::v1::{ManagedCluster, TaintEffect};
use ocm_api::cluster::v1alpha1::{AddOnPlacementScore, ClusterClaim};
use ocm_api::cluster::v1beta1::Placement;
use ocm_api::work::v1::{ManifestWork, UpdateStrategyType};
use serde_json::{Value, json};

use crate::crds::every;
use crate::kinds;

/// Objects that show every field of every kind.
const FIXTURES: &[&str] = &[
    include_str!("fixtures/addondeploymentconfig.yaml"),
    include_str!("fixtures/addonplacementscore.yaml"),
    include_str!("fixtures/addontemplate.yaml"),
    include_str!("fixtures/appliedmanifestwork.yaml"),
    include_str!("fixtures/clusterclaim.yaml"),
    include_str!("fixtures/clustermanagementaddon.yaml"),
    include_str!("fixtures/clustermanager.yaml"),
    include_str!("fixtures/clusterprofile.yaml"),
    include_str!("fixtures/clusterproperty.yaml"),
    include_str!("fixtures/klusterlet.yaml"),
    include_str!("fixtures/managedcluster.yaml"),
    include_str!("fixtures/managedclusteraddon.yaml"),
    include_str!("fixtures/managedclusterset.yaml"),
    include_str!("fixtures/managedclustersetbinding.yaml"),
    include_str!("fixtures/manifestwork.yaml"),
    include_str!("fixtures/manifestworkreplicaset.yaml"),
    include_str!("fixtures/placement.yaml"),
    include_str!("fixtures/placementdecision.yaml"),
];

pub(crate) fn fixtures() -> Vec<Value> {
    let objects = FIXTURES.iter().flat_map(|text| ocm_apimachinery::yaml::from_str_multi::<Value>(text).unwrap());
    objects.collect()
}

fn again(value: &Value) -> Value {
    (kinds::of(value).again)(value).unwrap_or_else(|error| panic!("{error}: {value}"))
}

#[test]
fn every_kind_keeps_every_field() {
    for value in fixtures() {
        assert_eq!(again(&value), value);
    }
}

#[test]
fn the_fixtures_hold_every_field_that_the_schemas_have() {
    let objects = fixtures();
    for crd in every() {
        let spec = crd.definition.spec;
        for version in spec.versions {
            let api_version = format!("{}/{}", spec.group, version.name);
            let examples = objects.iter().filter(|object| object["apiVersion"] == api_version);
            let examples: Vec<&Value> = examples.filter(|object| object["kind"] == spec.names.kind).collect();
            let schema = serde_json::to_value(version.schema.unwrap()).unwrap()["openAPIV3Schema"].take();
            assert_shown(&format!("{api_version} {}", spec.names.kind), &schema, &examples);
        }
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
    assert_eq!(again(&value), value);
    assert_eq!(TaintEffect::from("NoSelect"), TaintEffect::NoSelect);
}

#[test]
fn a_kind_without_spec_is_written_without_one() {
    let score = AddOnPlacementScore::new("c1", "latency");
    let expected = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1alpha1", "kind": "AddOnPlacementScore",
        "metadata": { "namespace": "c1", "name": "latency" },
    });
    assert_eq!(serde_json::to_value(score).unwrap(), expected);
}

#[test]
fn a_selector_that_selects_everything_is_not_one_that_is_absent() {
    let placement = |selector: Value| {
        let spec = json!({ "predicates": [{ "requiredClusterSelector": selector }] });
        serde_json::from_value::<Placement>(json!({ "metadata": { "name": "a" }, "spec": spec })).unwrap()
    };
    let selector = |placement: &Placement| placement.spec.predicates[0].required_cluster_selector.clone();
    assert!(selector(&placement(json!({ "labelSelector": {} }))).label_selector.is_some());
    assert!(selector(&placement(json!({}))).label_selector.is_none());
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
    let configs = |version: &str| format!("/apis/addon.open-cluster-management.io/{version}/addondeploymentconfigs");
    assert_eq!(ocm_api::addon::v1alpha1::AddOnDeploymentConfig::url_path(&(), None), configs("v1alpha1"));
    assert_eq!(ocm_api::addon::v1beta1::AddOnDeploymentConfig::url_path(&(), None), configs("v1beta1"));
}
