use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::{Value, json};

use super::*;
use crate::work::manifest;

fn owner() -> Ownership {
    Ownership::Owned(OwnerReference {
        api_version: "work.open-cluster-management.io/v1".into(),
        kind: "AppliedManifestWork".into(),
        name: "hash-work".into(),
        uid: "1".into(),
        ..OwnerReference::default()
    })
}

fn desired(value: Value) -> DesiredObject {
    manifest::parse(&[value.into()]).remove(0).desired.unwrap()
}

/// The object on the cluster: what was created of a manifest, and what the cluster added.
fn existing(value: Value, additions: Value) -> DynamicObject {
    let mut created = serde_json::to_value(to_create(&desired(value), &owner()).unwrap()).unwrap();
    merge(&mut created, additions);
    serde_json::from_value(created).unwrap()
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}

fn change(existing: &DynamicObject, value: Value) -> Change {
    to_update(existing, &desired(value), &owner()).unwrap()
}

fn updated(existing: &DynamicObject, value: Value) -> Value {
    match change(existing, value) {
        Change::Update(object) => serde_json::to_value(object).unwrap(),
        other => panic!("expected an update, got {other:?}"),
    }
}

fn object(api_version: &str, kind: &str, body: Value) -> Value {
    let mut value = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a", "namespace": "b"}});
    merge(&mut value, body);
    value
}

#[test]
fn labels_and_annotations_are_merged_and_a_trailing_dash_removes() {
    let old =
        existing(object("v1", "ConfigMap", json!({})), json!({"metadata": {"labels": {"theirs": "1", "old": "1"}}}));
    let new = updated(&old, object("v1", "ConfigMap", json!({"metadata": {"labels": {"ours": "1", "old-": ""}}})));
    assert_eq!(new["metadata"]["labels"], json!({"theirs": "1", "ours": "1"}));
}

#[test]
fn a_key_that_is_set_and_removed_is_not_written_again_and_again() {
    let manifest = || object("v1", "ConfigMap", json!({"metadata": {"labels": {"a": "1", "a-": ""}}}));
    let new = updated(&existing(manifest(), json!({})), manifest());
    assert_eq!(new["metadata"]["labels"].get("a"), None);
    assert_eq!(change(&serde_json::from_value(new).unwrap(), manifest()), Change::Nothing);
}

#[test]
fn a_new_object_has_no_keys_that_ask_for_a_removal() {
    let created =
        to_create(&desired(object("v1", "ConfigMap", json!({"metadata": {"labels": {"x-": "", "y": "1"}}}))), &owner());
    assert_eq!(created.unwrap().metadata.labels.unwrap().into_keys().collect::<Vec<_>>(), ["y"]);
}

#[test]
fn an_orphaned_object_is_created_without_an_owner() {
    let Ownership::Owned(reference) = owner() else { unreachable!() };
    let created =
        to_create(&desired(object("v1", "ConfigMap", json!({}))), &Ownership::Orphaned(vec![reference])).unwrap();
    assert_eq!(created.metadata.owner_references, None);
}

#[test]
fn finalizers_and_what_the_server_keeps_are_left_alone() {
    let additions = json!({"metadata": {"finalizers": ["f"], "resourceVersion": "5", "managedFields": []}});
    let old = existing(object("v1", "ConfigMap", json!({"data": {"a": "1"}})), additions);
    let new = updated(&old, object("v1", "ConfigMap", json!({"data": {"a": "2"}})));
    assert_eq!(new["metadata"]["finalizers"], json!(["f"]));
    assert_eq!(new["metadata"]["resourceVersion"], "5");
    assert_eq!(new["metadata"].get("managedFields"), None);
}

#[test]
fn the_body_of_pods_namespaces_and_service_accounts_is_never_updated() {
    for kind in ["Pod", "Namespace", "ServiceAccount"] {
        let old = existing(object("v1", kind, json!({"spec": {"a": 1}})), json!({}));
        assert_eq!(change(&old, object("v1", kind, json!({"spec": {"a": 2}}))), Change::Nothing, "{kind}");
    }
}

#[test]
fn a_config_map_loses_keys_that_its_manifest_lost() {
    let additions = json!({"data": {"ca-bundle.crt": "old", "service-ca.crt": "old"}, "immutable": false});
    let old = existing(object("v1", "ConfigMap", json!({"data": {"a": "1", "b": "2"}})), additions);
    let new = updated(&old, object("v1", "ConfigMap", json!({"data": {"a": "1"}})));
    assert_eq!(new["data"], json!({"a": "1"}));
    assert_eq!(new["immutable"], false, "sections that the manifest is not about stay");
}

#[test]
fn a_config_map_keeps_the_certificates_whose_injection_its_manifest_asks_for() {
    for (section, request, key) in [
        ("labels", "config.openshift.io/inject-trusted-cabundle", "ca-bundle.crt"),
        ("annotations", "service.beta.openshift.io/inject-cabundle", "service-ca.crt"),
    ] {
        let manifest = |value: &str, data: Value| {
            object("v1", "ConfigMap", json!({"metadata": {section: {request: value}}, "data": data}))
        };
        let injected = json!({"data": {"ca-bundle.crt": "injected", "service-ca.crt": "injected"}});
        let old = existing(manifest("true", json!({"a": "1"})), injected);
        let new = updated(&old, manifest("true", json!({"a": "2"})));
        assert_eq!(new["data"], json!({"a": "2", key: "injected"}), "the other key was not asked for");
        let old = existing(manifest("true", json!({"a": "1"})), json!({"data": {key: "injected"}}));
        assert_eq!(change(&old, manifest("true", json!({"a": "1"}))), Change::Nothing);
        assert_eq!(updated(&old, manifest("false", json!({"a": "1"})))["data"], json!({"a": "1"}));
        assert_eq!(
            updated(&old, manifest("true", json!({"a": "1", key: "own"})))["data"],
            json!({"a": "1", key: "own"})
        );
    }
}

#[test]
fn string_data_of_a_secret_is_folded_into_data() {
    let manifest = object("v1", "Secret", json!({"stringData": {"a": "hello"}}));
    let created = to_create(&desired(manifest.clone()), &owner()).unwrap();
    assert_eq!(created.data, json!({"data": {"a": "aGVsbG8="}}));
    let old = existing(manifest.clone(), json!({"type": "Opaque"}));
    assert_eq!(change(&old, manifest), Change::Nothing);
    let both = object("v1", "Secret", json!({"data": {"a": "eA=="}, "stringData": {"a": "y"}}));
    assert_eq!(to_create(&desired(both), &owner()), Err(UpdateError::SecretConflict("a".into())));
}

#[test]
fn string_data_that_is_no_text_is_left_for_the_server_to_refuse() {
    let created = to_create(&desired(object("v1", "Secret", json!({"stringData": {"a": 1}}))), &owner()).unwrap();
    assert_eq!(created.data, json!({"stringData": {"a": 1}}));
}

#[test]
fn a_secret_of_another_type_is_created_again() {
    let old = existing(object("v1", "Secret", json!({"type": "Opaque"})), json!({}));
    assert!(matches!(change(&old, object("v1", "Secret", json!({"type": "example.com/x"}))), Change::Recreate(_)));
}

#[test]
fn what_is_created_again_keeps_the_owners_and_labels_that_others_gave_it() {
    let Ownership::Owned(ours) = owner() else { unreachable!() };
    let theirs = OwnerReference { name: "other-work".into(), uid: "2".into(), ..ours.clone() };
    let additions = json!({"metadata": {"labels": {"theirs": "1"}, "uid": "3", "resourceVersion": "4",
        "finalizers": ["f"], "ownerReferences": [theirs, ours]}});
    let classes = [json!({"type": "example.com/x"}), json!({"type": "example.com/y"})];
    let [old, new] = classes.map(|body| object("v1", "Secret", body));
    let Change::Recreate(made) = change(&existing(old, additions), new) else { panic!("not created again") };
    assert_eq!(made.metadata.owner_references, Some(vec![theirs, ours]));
    assert_eq!(made.metadata.labels.unwrap()["theirs"], "1");
    assert_eq!((made.metadata.uid, made.metadata.resource_version, made.metadata.finalizers), (None, None, None));
    assert_eq!(made.data["type"], "example.com/y");
}

#[test]
fn a_service_account_token_keeps_the_keys_its_controller_made() {
    let manifest = object("v1", "Secret", json!({"type": SERVICE_ACCOUNT_TOKEN_TYPE}));
    let old = existing(manifest.clone(), json!({"data": {"token": "eA=="}}));
    assert_eq!(change(&old, manifest), Change::Nothing);
}

const SERVICE_ACCOUNT_TOKEN_TYPE: &str = "kubernetes.io/service-account-token";

#[test]
fn a_service_is_updated_when_its_manifest_changes_and_not_for_what_the_server_added() {
    let manifest =
        |port: u16| object("v1", "Service", json!({"spec": {"selector": {"a": "b"}, "ports": [{"port": port}]}}));
    let old = existing(manifest(80), json!({"spec": {"clusterIP": "10.0.0.1", "type": "ClusterIP"}}));
    assert_eq!(change(&old, manifest(80)), Change::Nothing);
    let new = updated(&old, manifest(81));
    assert_eq!(new["spec"], json!({"selector": {"a": "b"}, "ports": [{"port": 81}]}));
    let hash = old.metadata.annotations.as_ref().unwrap()["operator.openshift.io/spec-hash"].clone();
    assert_eq!(hash.len(), 64);
    assert_ne!(new["metadata"]["annotations"]["operator.openshift.io/spec-hash"], hash);
}

#[test]
fn the_rules_of_an_aggregated_cluster_role_are_the_clusters() {
    let rbac = "rbac.authorization.k8s.io/v1";
    let manifest = object(rbac, "ClusterRole", json!({"aggregationRule": {"clusterRoleSelectors": [{}]}, "rules": []}));
    let old = existing(manifest.clone(), json!({"rules": [{"verbs": ["get"]}]}));
    assert_eq!(change(&old, manifest), Change::Nothing);
    let plain = object(rbac, "ClusterRole", json!({"rules": [{"verbs": ["list"]}]}));
    let old = existing(plain, json!({"rules": [{"verbs": ["get"]}]}));
    let new = updated(&old, object(rbac, "ClusterRole", json!({"rules": [{"verbs": ["list"]}]})));
    assert_eq!(new["rules"], json!([{"verbs": ["list"]}]));
}

#[test]
fn bindings_are_compared_with_the_groups_the_server_fills_in() {
    let rbac = "rbac.authorization.k8s.io/v1";
    let body = json!({"roleRef": {"kind": "Role", "name": "r"}, "subjects": [{"kind": "User", "name": "u"}]});
    let manifest = object(rbac, "RoleBinding", body);
    let old = existing(manifest.clone(), json!({}));
    assert_eq!(old.data["roleRef"]["apiGroup"], "rbac.authorization.k8s.io");
    assert_eq!(change(&old, manifest), Change::Nothing);
}

#[test]
fn a_storage_class_keeps_the_administrators_choice_of_default_and_is_created_again_when_it_must() {
    let class = |body: Value| object("storage.k8s.io/v1", "StorageClass", body);
    let key = "storageclass.kubernetes.io/is-default-class";
    let manifest = class(json!({"provisioner": "p", "metadata": {"annotations": {key: "true"}}}));
    let old =
        existing(manifest.clone(), json!({"metadata": {"annotations": {key: "false"}}, "reclaimPolicy": "Delete"}));
    assert_eq!(change(&old, manifest), Change::Nothing);
    assert!(matches!(change(&old, class(json!({"provisioner": "other"}))), Change::Recreate(_)));
    let grown = updated(&old, class(json!({"provisioner": "p", "allowVolumeExpansion": true})));
    assert_eq!((grown["allowVolumeExpansion"].clone(), grown["reclaimPolicy"].clone()), (json!(true), json!("Delete")));
}

#[test]
fn a_csi_driver_is_created_again_when_its_spec_changes_and_needs_a_profile_when_ephemeral() {
    let driver = |spec: Value| object("storage.k8s.io/v1", "CSIDriver", json!({"spec": spec}));
    let old = existing(driver(json!({"attachRequired": true})), json!({"spec": {"podInfoOnMount": false}}));
    assert_eq!(change(&old, driver(json!({"attachRequired": true}))), Change::Nothing);
    assert!(matches!(change(&old, driver(json!({"attachRequired": false}))), Change::Recreate(_)));
    let ephemeral = desired(driver(json!({"volumeLifecycleModes": ["Ephemeral"]})));
    assert_eq!(to_create(&ephemeral, &owner()), Err(UpdateError::EphemeralProfile));
}

#[test]
fn webhooks_keep_certificates_that_were_put_into_them() {
    let api = "admissionregistration.k8s.io/v1";
    let manifest = |url: &str| {
        object(
            api,
            "ValidatingWebhookConfiguration",
            json!({"webhooks": [{"name": "w", "clientConfig": {"url": url}}]}),
        )
    };
    let mut old = existing(manifest("https://a"), json!({}));
    old.data["webhooks"][0]["clientConfig"]["caBundle"] = json!("QQ==");
    assert_eq!(change(&old, manifest("https://a")), Change::Nothing);
    let new = updated(&old, manifest("https://b"));
    assert_eq!(new["webhooks"][0]["clientConfig"], json!({"url": "https://b", "caBundle": "QQ=="}));
}

#[test]
fn of_some_kinds_only_the_spec_is_compared_and_replaced() {
    for (api_version, kind) in [
        ("networking.k8s.io/v1", "NetworkPolicy"),
        ("policy/v1", "PodDisruptionBudget"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"),
        ("admissionregistration.k8s.io/v1beta1", "ValidatingAdmissionPolicyBinding"),
        ("monitoring.coreos.com/v1", "ServiceMonitor"),
        ("monitoring.coreos.com/v1", "PrometheusRule"),
        ("monitoring.coreos.com/v1", "Alertmanager"),
        ("monitoring.coreos.com/v1", "Prometheus"),
        ("snapshot.storage.k8s.io/v1", "VolumeSnapshotClass"),
    ] {
        let manifest = |value: u8| object(api_version, kind, json!({"spec": {"a": value}}));
        let old = existing(manifest(1), json!({"theirs": true, "status": {"ok": true}}));
        assert_eq!(change(&old, manifest(1)), Change::Nothing, "{kind}");
        let new = updated(&old, manifest(2));
        assert_eq!((&new["spec"]["a"], &new["theirs"], &new["status"]["ok"]), (&json!(2), &json!(true), &json!(true)));
    }
}

#[test]
fn a_custom_resource_definition_is_compared_with_the_defaults_of_the_server() {
    let definition = |names: Value, service: Value| {
        let conversion = json!({"strategy": "Webhook", "webhook": {"clientConfig": {"service": service}}});
        object(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            json!({"spec": {"names": names, "conversion": conversion}}),
        )
    };
    let manifest = || definition(json!({"kind": "Thing", "plural": "things"}), json!({"name": "w"}));
    let names = json!({"kind": "Thing", "plural": "things", "singular": "thing", "listKind": "ThingList"});
    let stored = existing(definition(names, json!({"name": "w", "port": 443})), json!({}));
    assert_eq!(change(&stored, manifest()), Change::Nothing);
    let plain = object("apiextensions.k8s.io/v1", "CustomResourceDefinition", json!({"spec": {"group": "a"}}));
    let stored = existing(plain.clone(), json!({"spec": {"conversion": {"strategy": "None"}}}));
    assert_eq!(change(&stored, plain), Change::Nothing);
}

#[test]
fn any_other_kind_becomes_what_its_manifest_says_but_keeps_its_status() {
    let old =
        existing(object("example.com/v1", "Thing", json!({"spec": {"a": 1, "b": 2}})), json!({"status": {"ok": true}}));
    assert_eq!(change(&old, object("example.com/v1", "Thing", json!({"spec": {"a": 1, "b": 2}}))), Change::Nothing);
    let new = updated(&old, object("example.com/v1", "Thing", json!({"spec": {"a": 1}, "status": {"ok": false}})));
    assert_eq!((new["spec"].clone(), new["status"].clone()), (json!({"a": 1}), json!({"ok": true})));
}

/// Any JSON, with the fields that matter to the kinds above more likely than chance would have it.
fn any_json() -> impl proptest::strategy::Strategy<Value = Value> {
    use proptest::prelude::*;
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-zA-Z=/-]{0,8}".prop_map(Value::from)
    ];
    let key = prop_oneof![
        proptest::sample::select(vec![
            "data",
            "stringData",
            "binaryData",
            "spec",
            "rules",
            "aggregationRule",
            "subjects",
            "roleRef",
            "webhooks",
            "clientConfig",
            "caBundle",
            "name",
            "type",
            "kind",
            "status",
            "selector",
            "ca-bundle.crt",
            "provisioner",
            "volumeLifecycleModes",
        ])
        .prop_map(str::to_owned),
        "[a-z]{1,4}"
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(key.clone(), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect()))
        ]
    })
}

fn any_body() -> impl proptest::strategy::Strategy<Value = Value> {
    use proptest::strategy::Strategy as _;
    any_json().prop_map(|value| if value.is_object() { value } else { json!({"spec": value}) })
}

const KINDS: [(&str, &str); 11] = [
    ("v1", "ConfigMap"),
    ("v1", "Secret"),
    ("v1", "Service"),
    ("v1", "Pod"),
    ("rbac.authorization.k8s.io/v1", "ClusterRole"),
    ("rbac.authorization.k8s.io/v1", "RoleBinding"),
    ("storage.k8s.io/v1", "StorageClass"),
    ("storage.k8s.io/v1", "CSIDriver"),
    ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"),
    ("networking.k8s.io/v1", "NetworkPolicy"),
    ("example.com/v1", "Thing"),
];

proptest::proptest! {
    #[test]
    fn no_manifest_and_no_object_makes_the_agent_panic(desired_body in any_body(), existing_body in any_body()) {
        for (api_version, kind) in KINDS {
            let with = |body: &Value| {
                let mut value = body.clone();
                merge(&mut value, json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}}));
                value
            };
            let (desired, existing) = (desired(with(&desired_body)), serde_json::from_value(with(&existing_body)).unwrap());
            let _ = to_create(&desired, &owner());
            if let Ok(Change::Update(updated) | Change::Recreate(updated)) = to_update(&existing, &desired, &owner()) {
                // Whatever was written, writing it again changes nothing.
                let again = to_update(&updated, &desired, &owner()).unwrap();
                proptest::prop_assert_eq!(again, Change::Nothing, "{}", kind);
            }
        }
    }
}
