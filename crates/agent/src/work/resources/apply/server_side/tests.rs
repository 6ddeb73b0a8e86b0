use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::{Value, json};

use super::super::{
    Application,
    testing::{config_map, desired, mapping, metadata, options, owned, verbs},
};
use crate::{
    testing::{Mock, conflict, not_found},
    work::{
        manifest::DesiredObject,
        ownership::tests::owner,
        resources::{ApplyError, Resources},
    },
};

fn ours() -> OwnerReference {
    owner("hub-w", "1")
}

/// The metadata after server-side apply, with the fields that the agent owns.
fn applied(version: &str, fields: &Value) -> (u16, Value) {
    let (code, mut object) = metadata(version, &[ours()]);
    let entry = |manager: &str, operation: &str| {
        json!({"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsV1": fields,
            "time": "2026-01-01T00:00:00Z"})
    };
    object["metadata"]["managedFields"] = json!([entry("kubectl", "Update"), entry("work-agent", "Apply")]);
    (code, object)
}

/// The same, after somebody wrote the status in a later second.
fn with_later_status(mut object: (u16, Value)) -> (u16, Value) {
    let status = json!({"manager": "kcm", "operation": "Update", "subresource": "status", "apiVersion": "v1",
        "fieldsV1": {}, "time": "2026-01-01T00:00:01Z"});
    object.1["metadata"]["managedFields"].as_array_mut().unwrap().push(status);
    object
}

fn hashed(mut object: (u16, Value), hash: &Value) -> (u16, Value) {
    object.1["metadata"]["annotations"] = json!({"open-cluster-management.io/config-spec-hash": hash});
    object
}

async fn apply(
    resources: &Resources,
    object: &DesiredObject,
    settings: &Value,
) -> Result<Option<kube::core::DynamicObject>, ApplyError> {
    let options = options(&json!({"type": "ServerSideApply", "serverSideApply": settings}));
    let (mapping, ownership) = (mapping("ConfigMap", "configmaps"), owned());
    let application =
        Application { object, mapping: &mapping, options: &options, ownership: &ownership, is_new: false };
    resources.apply(application).await
}

#[tokio::test]
async fn the_manifest_is_applied_by_the_field_manager_and_the_owner_is_patched() {
    let server = Mock::answering(vec![metadata("1", &[]), metadata("2", &[ours()])]);
    let mut manifest = config_map("new");
    manifest.object.data["spec"] = json!({"template": {"metadata": {"creationTimestamp": null, "name": "t"}}});
    let resources = Resources::new(server.client());
    let object = apply(&resources, &manifest, &json!({"force": true, "fieldManager": "work-agent-x"})).await.unwrap();
    assert_eq!(object.unwrap().metadata.resource_version.as_deref(), Some("2"));
    assert_eq!(verbs(&server), "PATCH PATCH");
    assert_eq!(server.queries()[0], "force=true&fieldManager=work-agent-x");
    let sent = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "ns"},
        "data": {"a": "new"}, "spec": {"template": {"metadata": {"name": "t"}}}});
    let owners = json!({"metadata": {"uid": "1", "resourceVersion": "1", "ownerReferences": [ours()]}});
    assert_eq!(server.bodies(), [sent, owners]);
}

#[tokio::test]
async fn nothing_is_applied_again_while_the_manifest_and_its_fields_are_as_they_were_left() {
    let fields = || json!({"f:data": {"f:a": {}}});
    let server = Mock::answering(vec![
        with_later_status(applied("1", &fields())),
        with_later_status(applied("1", &fields())),
        // Somebody writes the status, or other fields.
        with_later_status(applied("2", &fields())),
        // Somebody takes a field over.
        applied("3", &json!({"f:data": {}})),
        applied("4", &fields()),
        applied("4", &fields()),
        applied("5", &fields()),
    ]);
    let resources = Resources::new(server.client());
    for data in ["1", "1", "1", "1", "2"] {
        apply(&resources, &config_map(data), &json!({})).await.unwrap();
    }
    assert_eq!(verbs(&server), "PATCH GET GET GET PATCH GET PATCH");
}

#[tokio::test]
async fn what_the_same_manager_may_have_written_in_the_same_second_is_applied_once_more() {
    let fields = || json!({"f:data": {"f:a": {}}});
    let later = |version| with_later_status(applied(version, &fields()));
    let answers =
        vec![applied("1", &fields()), applied("1", &fields()), later("2"), later("2"), later("3"), later("4")];
    let server = Mock::answering(answers);
    let resources = Resources::new(server.client());
    for _ in 0..5 {
        apply(&resources, &config_map("1"), &json!({})).await.unwrap();
    }
    assert_eq!(verbs(&server), "PATCH GET GET PATCH GET GET");
}

#[tokio::test]
async fn a_conflict_names_the_field_its_manager_and_what_to_do_and_is_not_retried_soon() {
    let cause = json!({"reason": "FieldManagerConflict", "field": ".spec.replicas",
        "message": "conflict with \"kubectl\" using apps/v1"});
    let refused = json!({"kind": "Status", "status": "Failure", "code": 409, "reason": "Conflict",
        "message": "Apply failed with 1 conflict", "details": {"causes": [cause]}});
    let server = Mock::answering(vec![(409, refused)]);
    let error = apply(&Resources::new(server.client()), &config_map("new"), &json!({})).await.unwrap_err();
    let text = error.explain();
    for expected in [".spec.replicas", "kubectl", "updateStrategy.serverSideApply.force", "ignoreFields"] {
        assert!(text.contains(expected), "{text}");
    }
    assert_eq!((verbs(&server).as_str(), error.reason()), ("PATCH", "AppliedManifestFailed"));
    assert_eq!(ocm_runtime::Classified::class(&error), ocm_runtime::Class::Refused);
}

fn with_annotation() -> DesiredObject {
    let metadata = json!({"name": "a", "namespace": "ns", "annotations": {"x": "1"}});
    desired(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "1", "b": "2"}}))
}

fn ignoring(condition: &str) -> Value {
    json!({"ignoreFields": [{"condition": condition, "jsonPointers": ["/metadata/annotations/x", "/data/b"]}]})
}

fn hash(body: &Value) -> Value {
    body["metadata"]["annotations"]["open-cluster-management.io/config-spec-hash"].clone()
}

#[tokio::test]
async fn fields_that_are_ignored_once_the_object_exists_are_part_of_its_creation_only() {
    let (object, settings) = (with_annotation(), ignoring("OnSpokePresent"));
    let server = Mock::answering(vec![not_found(), metadata("1", &[ours()])]);
    apply(&Resources::new(server.client()), &object, &settings).await.unwrap();
    let created = &server.bodies()[1];
    assert_eq!(
        (&created["data"], &created["metadata"]["annotations"]["x"]),
        (&json!({"a": "1", "b": "2"}), &json!("1"))
    );

    let current = hashed(metadata("7", &[ours()]), &hash(created));
    let server = Mock::answering(vec![current]);
    apply(&Resources::new(server.client()), &object, &settings).await.unwrap();
    assert_eq!(verbs(&server), "GET", "whatever happened to the object");

    let outdated = hashed(metadata("7", &[ours()]), &json!("other"));
    let server = Mock::answering(vec![outdated, metadata("8", &[ours()])]);
    apply(&Resources::new(server.client()), &object, &settings).await.unwrap();
    let applied = &server.bodies()[1];
    assert_eq!((&applied["data"], applied["metadata"]["annotations"].get("x")), (&json!({"a": "1"}), None));
    assert_eq!((hash(applied), &applied["metadata"]["uid"]), (hash(created), &json!("1")));
}

#[tokio::test]
async fn fields_that_are_ignored_until_the_manifest_changes_are_applied_with_it() {
    let (object, settings) = (with_annotation(), ignoring("OnSpokeChange"));
    let server = Mock::answering(vec![metadata("7", &[ours()]), metadata("8", &[ours()])]);
    apply(&Resources::new(server.client()), &object, &settings).await.unwrap();
    let applied = &server.bodies()[1];
    assert_eq!(applied["data"], json!({"a": "1", "b": "2"}));
    let server = Mock::answering(vec![hashed(metadata("9", &[ours()]), &hash(applied))]);
    apply(&Resources::new(server.client()), &object, &settings).await.unwrap();
    assert_eq!(verbs(&server), "GET");
}

#[tokio::test]
async fn fields_that_cannot_be_ignored_are_an_error_that_names_them_and_nothing_is_sent() {
    let settings = json!({"ignoreFields": [{"condition": "OnSpokePresent", "jqPathExpressions": [".spec["]}]});
    let server = Mock::default();
    let error = apply(&Resources::new(server.client()), &config_map("a"), &settings).await.unwrap_err();
    assert_eq!(error.reason(), "AppliedManifestSSAIgnoreFieldError");
    let text = error.explain();
    assert!(text.contains("ignoreFields[0]: JQ expression error in '.spec['"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_deleted_while_it_is_applied_is_created_with_all_fields() {
    let (object, settings) = (with_annotation(), ignoring("OnSpokePresent"));
    let answers = vec![
        metadata("7", &[ours()]),
        conflict(),
        not_found(),
        metadata("1", &[]),
        not_found(),
        not_found(),
        metadata("1", &[ours()]),
    ];
    let server = Mock::answering(answers);
    apply(&Resources::new(server.client()), &object, &settings).await.unwrap();
    assert_eq!(verbs(&server), "GET PATCH GET PATCH PATCH GET PATCH");
    assert_eq!(server.bodies()[3]["data"], json!({"a": "1", "b": "2"}));
}
