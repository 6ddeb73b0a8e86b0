//! The generated CRDs equal OCM's, field by field.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use ocm_api::crds::{Crd, Side, With};
use serde_json::{Value, json};

use crate::upstream;

/// Differences that must stay, as `<CRD name><path>`, each with its reason.
const ACCEPTED: [(&str, &str); 2] = [
    ("clustermanagementaddons.addon.open-cluster-management.io.spec.conversion", BY_OPERATOR),
    ("managedclusteraddons.addon.open-cluster-management.io.spec.conversion", BY_OPERATOR),
];
const BY_OPERATOR: &str = "upstream's operator adds how versions are converted when it installs the definition";

/// Every definition there is.
pub(crate) fn every() -> Vec<Crd> {
    let mut every = ocm_api::crds::all().unwrap();
    every.extend(ocm_api::crds::optional().unwrap());
    every
}

#[test]
fn every_definition_equals_upstreams_in_all_but_descriptions() {
    let differences = differences();
    let unexpected: Vec<&String> =
        differences.iter().filter(|line| !ACCEPTED.iter().any(|(path, _)| line.starts_with(path))).collect();
    assert!(unexpected.is_empty(), "{} differences:\n{unexpected:#?}", unexpected.len());
}

#[test]
fn every_accepted_difference_is_one() {
    let differences = differences();
    for (path, reason) in ACCEPTED {
        assert!(differences.iter().any(|line| line.starts_with(path)), "{path} ({reason}) is no difference any more");
    }
}

fn differences() -> Vec<String> {
    let mut differences = Vec::new();
    for Crd { definition, .. } in every() {
        let name = definition.metadata.name.clone().unwrap();
        let ours = comparable(serde_json::to_value(&definition).unwrap());
        let theirs = comparable(upstream::crd(&name));
        compare(&name, &theirs, &ours, &mut differences);
    }
    differences
}

/// kubectl takes the newest version that is served, so one more would be another API.
#[test]
fn a_hub_serves_the_versions_that_a_hub_of_ocm_serves() {
    let served = |crd: &Crd| {
        let versions = crd.definition.spec.versions.iter().filter(|version| version.served);
        (crd.definition.spec.names.kind.clone(), versions.map(|version| version.name.clone()).collect::<Vec<_>>())
    };
    let served: Vec<_> = every().iter().filter(|crd| crd.side == Side::Hub).map(served).collect();
    let addons = ["v1alpha1", "v1beta1"].as_slice();
    let expected = [
        ("ManagedCluster", ["v1"].as_slice()),
        ("ManagedClusterSet", &["v1beta2"]),
        ("ManagedClusterSetBinding", &["v1beta2"]),
        ("Placement", &["v1beta1"]),
        ("PlacementDecision", &["v1beta1"]),
        ("AddOnPlacementScore", &["v1alpha1"]),
        ("ManifestWork", &["v1"]),
        ("ManifestWorkReplicaSet", &["v1alpha1"]),
        ("ClusterManagementAddOn", addons),
        ("ManagedClusterAddOn", addons),
        ("AddOnDeploymentConfig", addons),
        ("AddOnTemplate", &["v1alpha1"]),
        ("ClusterManager", &["v1"]),
        ("ClusterProfile", &["v1alpha1"]),
    ];
    let expected =
        expected.map(|(kind, versions)| (kind.to_owned(), versions.iter().map(ToString::to_string).collect()));
    assert_eq!(served, expected);
}

#[test]
fn every_definition_names_a_side_and_a_file() {
    let all = ocm_api::crds::all().unwrap();
    assert!(all.iter().all(|crd| crd.with == With::Always));
    let on = |side| -> Vec<String> { all.iter().filter(|crd| crd.side == side).map(Crd::file_name).collect() };
    let hub = [
        "cluster.open-cluster-management.io_managedclusters.yaml",
        "cluster.open-cluster-management.io_managedclustersets.yaml",
        "cluster.open-cluster-management.io_managedclustersetbindings.yaml",
        "cluster.open-cluster-management.io_placements.yaml",
        "cluster.open-cluster-management.io_placementdecisions.yaml",
        "cluster.open-cluster-management.io_addonplacementscores.yaml",
        "work.open-cluster-management.io_manifestworks.yaml",
        "work.open-cluster-management.io_manifestworkreplicasets.yaml",
        "addon.open-cluster-management.io_clustermanagementaddons.yaml",
        "addon.open-cluster-management.io_managedclusteraddons.yaml",
        "addon.open-cluster-management.io_addondeploymentconfigs.yaml",
        "addon.open-cluster-management.io_addontemplates.yaml",
    ];
    let managed = [
        "cluster.open-cluster-management.io_clusterclaims.yaml",
        "work.open-cluster-management.io_appliedmanifestworks.yaml",
    ];
    assert_eq!(on(Side::Hub), hub);
    assert_eq!(on(Side::Managed), managed);
}

#[test]
fn definitions_that_not_everyone_needs_say_who_does() {
    let optional = ocm_api::crds::optional().unwrap();
    let found: Vec<_> = optional.iter().map(|crd| (crd.file_name(), crd.side, crd.with)).collect();
    let expected = [
        ("operator.open-cluster-management.io_clustermanagers.yaml", Side::Hub, With::Operator),
        ("multicluster.x-k8s.io_clusterprofiles.yaml", Side::Hub, With::FeatureGate("ClusterProfile")),
        ("operator.open-cluster-management.io_klusterlets.yaml", Side::Managed, With::Operator),
        ("about.k8s.io_clusterproperties.yaml", Side::Managed, With::FeatureGate("ClusterProperty")),
    ];
    assert_eq!(found, expected.map(|(file, side, with)| (file.to_owned(), side, with)));
}

#[test]
fn the_hubs_webhook_converts_the_kinds_whose_versions_differ() {
    let converted = |crd: &Crd| Some((crd.definition.spec.names.kind.clone(), crd.definition.spec.conversion.clone()?));
    let converted: Vec<_> = every().iter().filter_map(converted).collect();
    let kinds: Vec<&str> = converted.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(kinds, ["ClusterManagementAddOn", "ManagedClusterAddOn"]);
    for (_, conversion) in &converted {
        let expected = json!({
            "strategy": "Webhook",
            "webhook": {
                "clientConfig": { "service": {
                    "name": "cluster-manager-addon-webhook", "namespace": "open-cluster-management-hub",
                    "path": "/convert", "port": 9443,
                } },
                "conversionReviewVersions": ["v1", "v1beta1"],
            },
        });
        assert_eq!(serde_json::to_value(conversion).unwrap(), expected);
    }
}

#[test]
fn a_webhook_outside_the_cluster_is_found_by_its_url_and_trusted_by_its_certificates() {
    for mut crd in every() {
        crd.convert_at("https://127.0.0.1:9443/convert");
        crd.trust_converter(b"CA");
        let Some(conversion) = &crd.definition.spec.conversion else { continue };
        let client = &serde_json::to_value(conversion).unwrap()["webhook"]["clientConfig"];
        assert_eq!(client, &json!({ "url": "https://127.0.0.1:9443/convert", "caBundle": "Q0E=" }));
    }
}

#[test]
fn versions_without_conversion_have_the_same_fields() {
    for Crd { definition, .. } in every().into_iter().filter(|crd| crd.definition.spec.conversion.is_none()) {
        let schemas = definition.spec.versions.into_iter().map(|version| version.schema);
        let schemas: Vec<Value> = schemas.map(|schema| serde_json::to_value(schema).unwrap()).collect();
        assert!(schemas.windows(2).all(|pair| pair[0] == pair[1]), "{:?}", definition.metadata.name);
    }
}

#[test]
fn every_part_of_a_schema_has_a_description() {
    for Crd { definition, .. } in every() {
        for version in &definition.spec.versions {
            let schema = serde_json::to_value(version).unwrap()["schema"]["openAPIV3Schema"].take();
            let mut missing = Vec::new();
            undescribed("", &schema, &mut missing);
            assert!(missing.is_empty(), "{:?} {}: {missing:#?}", definition.metadata.name, version.name);
        }
    }
}

fn undescribed(path: &str, schema: &Value, missing: &mut Vec<String>) {
    if path == ".metadata" {
        // The API server refuses a description there.
        assert_eq!(schema, &serde_json::json!({"type": "object"}));
        return;
    }
    if schema.get("description").is_none() && !path.ends_with("[]") {
        missing.push(path.to_owned());
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        undescribed(&format!("{path}.{name}"), property, missing);
    }
    if schema.get("items").is_some() {
        undescribed(&format!("{path}[]"), &schema["items"], missing);
    }
}

/// A definition in one spelling: read into Kubernetes' type, which knows every field, and without what is not compared.
fn comparable(value: Value) -> Value {
    let typed: CustomResourceDefinition = serde_json::from_value(without_descriptions(value)).unwrap();
    let mut value = serde_json::to_value(typed).unwrap();
    value.as_object_mut().unwrap().remove("status");
    value
}

fn without_descriptions(value: Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .into_iter()
            .filter(|(key, value)| !(key == "description" && value.is_string()))
            .map(|(key, value)| (key, without_descriptions(value)))
            .collect(),
        Value::Array(items) => items.into_iter().map(without_descriptions).collect(),
        other => other,
    }
}

fn compare(path: &str, theirs: &Value, ours: &Value, differences: &mut Vec<String>) {
    match (theirs, ours) {
        (Value::Object(left), Value::Object(right)) => {
            let keys: std::collections::BTreeSet<&String> = left.keys().chain(right.keys()).collect();
            for key in keys {
                let path = format!("{path}.{key}");
                match (left.get(key), right.get(key)) {
                    (Some(left), Some(right)) => compare(&path, left, right, differences),
                    (left, right) => differences.push(format!("{path}: upstream {left:?}, ours {right:?}")),
                }
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() && !path.ends_with(".required") => {
            for (index, (left, right)) in left.iter().zip(right).enumerate() {
                compare(&format!("{path}[{index}]"), left, right, differences);
            }
        }
        (left, right) if sorted(path, left) == sorted(path, right) => {}
        (left, right) => differences.push(format!("{path}: upstream {left}, ours {right}")),
    }
}

/// `required` is a set.
fn sorted(path: &str, value: &Value) -> Value {
    let mut value = value.clone();
    if let (true, Value::Array(items)) = (path.ends_with(".required"), &mut value) {
        items.sort_by_key(ToString::to_string);
    }
    value
}
