//! A kube-apiserver and a cluster in memory give the same responses to the same requests.

use std::fmt::Write as _;

use anyhow::Result;
use http::Method;
use kube::Client;
use ocm_testing::{Kind, MemoryCluster, fixture, unique};
use serde_json::{Value, json};

use super::script::{Step, run, step};

const CRDS: [&str; 2] = [
    include_str!("../../../../../crds/work.open-cluster-management.io_appliedmanifestworks.yaml"),
    include_str!("../../../../../crds/cluster.open-cluster-management.io_clusterclaims.yaml"),
];

/// The hub's kube-apiserver, with the definitions that a cluster in memory has.
async fn real() -> Result<Client> {
    let hub = fixture::hub();
    for crd in CRDS {
        hub.apply_yaml(crd).await?;
    }
    hub.client().await
}

async fn compare(steps: &[Step]) -> Result<()> {
    let real = run(&real().await?, steps).await?;
    let ours = run(&MemoryCluster::new().client("default"), steps).await?;
    let mut differences = String::new();
    for (index, step) in steps.iter().enumerate().filter(|(index, _)| ours[*index] != real[*index]) {
        let ((our_code, our_answer), (real_code, real_answer)) = (&ours[index], &real[index]);
        let _ = writeln!(differences, "step {index}: {}", step.describe());
        let _ = writeln!(differences, "  in memory: {our_code} {}", json!(our_answer));
        let _ = writeln!(differences, "  real:      {real_code} {}", json!(real_answer));
    }
    assert!(differences.is_empty(), "\n{differences}");
    Ok(())
}

fn get(path: &str) -> Step {
    step(Method::GET, path, &Value::Null)
}

fn post(path: &str, body: &Value) -> Step {
    step(Method::POST, path, body)
}

fn put(path: &str, body: &Value) -> Step {
    step(Method::PUT, path, body)
}

fn patch(path: &str, body: &Value) -> Step {
    step(Method::PATCH, path, body)
}

fn delete(path: &str, body: &Value) -> Step {
    step(Method::DELETE, path, body)
}

fn map(name: &str, more: &Value) -> Value {
    let mut map =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"key": "value"}});
    ocm_apimachinery::merge::apply(&mut map, more);
    map
}

#[tokio::test]
async fn the_life_of_a_built_in_object_is_the_same() -> Result<()> {
    let base = "/api/v1/namespaces/default/configmaps";
    let name = unique("life");
    let path = format!("{base}/{name}");
    let other = "00000000-0000-4000-8000-000000000000";
    compare(&[
        get(&path),
        post(base, &map(&name, &json!({"metadata": {"labels": {"a": "b"}}}))),
        post(base, &map(&name, &json!({}))),
        get(&path),
        get(&path).metadata(),
        get(&format!("{base}?fieldSelector=metadata.name%3D{name}")),
        get(&format!("{base}?fieldSelector=metadata.name%3D{name}")).metadata_list(),
        patch(&path, &json!({"metadata": {"labels": {"a": null}}, "data": {"key": "new"}})),
        patch(&path, &json!({"metadata": {"resourceVersion": "{version:1}"}, "data": {"key": "stale"}})),
        patch(&path, &json!({"metadata": {"resourceVersion": "{version:7}", "uid": "{uid:1}"}, "data": null})),
        patch(&path, &json!({"metadata": {"uid": other}, "data": {"key": "lost"}})),
        patch(&path, &json!({"metadata": {"name": "other"}})),
        put(&path, &map(&name, &json!({"metadata": {"resourceVersion": "{version:1}"}}))),
        put(&path, &map(&name, &json!({"metadata": {"uid": other}}))),
        put(&path, &map("other", &json!({}))),
        put(&path, &map(&name, &json!({"data": {"key": "unconditional"}}))),
        put(&format!("{base}/{name}-absent"), &map(&format!("{name}-absent"), &json!({}))),
        delete(&path, &json!({"preconditions": {"uid": other}})),
        delete(&path, &json!({"preconditions": {"resourceVersion": "1"}})),
        delete(&path, &json!({"preconditions": {"uid": "{uid:1}"}})),
        delete(&path, &Value::Null),
        patch(&path, &json!({"data": {}})),
    ])
    .await
}

#[tokio::test]
async fn refusals_are_the_same() -> Result<()> {
    let base = "/api/v1/namespaces/default/configmaps";
    let name = unique("refused");
    compare(&[
        get("/api/v1/widgets"),
        get("/apis/example.com/v1/widgets"),
        get("/api/v1/configmaps/a"),
        post(base, &map("Not A Name", &json!({}))),
        post(base, &json!({"apiVersion": "v1", "kind": "ConfigMap"})),
        post(base, &map(&name, &json!({"metadata": {"namespace": "other"}}))),
        post(base, &map(&name, &json!({"apiVersion": "v2"}))),
        post("/api/v1/namespaces/absent/configmaps", &map(&name, &json!({}))),
        get(&format!("{base}?fieldSelector=spec.x%3Dy")),
        get(&format!("{base}?labelSelector=a%20b%20c")),
        post(base, &map(&name, &json!({}))),
        patch(&format!("{base}/{name}"), &json!({"data": {"a": "b"}})).media("application/unknown"),
        step(Method::POST, &format!("{base}/{name}"), &map(&name, &json!({}))),
        delete(&format!("{base}/{name}"), &Value::Null),
    ])
    .await
}

#[tokio::test]
async fn finalizers_hold_objects_in_the_same_way() -> Result<()> {
    let base = "/api/v1/namespaces/default/configmaps";
    let name = unique("held");
    let path = format!("{base}/{name}");
    compare(&[
        post(base, &map(&name, &json!({"metadata": {"finalizers": ["test.io/hold", "test.io/more"]}}))),
        delete(&path, &Value::Null),
        delete(&path, &Value::Null),
        patch(&path, &json!({"metadata": {"finalizers": ["test.io/hold", "test.io/new"]}})),
        patch(&path, &json!({"metadata": {"finalizers": ["test.io/hold"]}})),
        patch(&path, &json!({"metadata": {"finalizers": null}})),
        get(&path),
    ])
    .await
}

fn record(name: &str, more: &Value) -> Value {
    let mut record = json!({
        "apiVersion": "work.open-cluster-management.io/v1", "kind": "AppliedManifestWork", "metadata": {"name": name},
        "spec": {"hubHash": "hash", "agentID": "agent", "manifestWorkName": "work"},
    });
    ocm_apimachinery::merge::apply(&mut record, more);
    record
}

#[tokio::test]
async fn a_custom_resource_with_a_status_is_written_in_the_same_way() -> Result<()> {
    let base = "/apis/work.open-cluster-management.io/v1/appliedmanifestworks";
    let name = unique("record");
    let path = format!("{base}/{name}");
    let status = format!("{path}/status");
    let applied = json!({"appliedResources": [{"version": "v1", "resource": "configmaps", "name": "a"}]});
    compare(&[
        post(base, &record(&name, &json!({"status": applied}))),
        patch(&status, &json!({"status": applied, "spec": {"agentID": "ignored"}})),
        patch(&path, &json!({"status": {"appliedResources": []}, "spec": {"agentID": "other"}})),
        patch(&path, &json!({"metadata": {"finalizers": ["test.io/hold"]}})),
        get(&status),
        put(&path, &record(&name, &json!({}))),
        put(
            &path,
            &record(&name, &json!({"metadata": {"resourceVersion": "{version:3}"}, "spec": {"hubHash": "new"}})),
        ),
        put(&path, &record(&name, &json!({"metadata": {"resourceVersion": "{version:3}"}}))),
        patch(&path, &json!({"metadata": {"uid": "other"}})),
        post(base, &record(&format!("{name}-2"), &json!({"metadata": {"finalizers": ["test.io/hold"]}}))),
        delete(&format!("{base}/{name}-2"), &Value::Null),
        patch(&format!("{base}/{name}-2"), &json!({"metadata": {"finalizers": []}})),
        delete(&path, &json!({"preconditions": {"uid": "00000000-0000-4000-8000-000000000000"}})),
        delete(&path, &Value::Null),
        get(&path),
        get("/apis/work.open-cluster-management.io/v1/widgets"),
        get(&format!("{base}?labelSelector=nobody%3Dhas")),
        get(&format!("{base}?labelSelector=nobody%3Dhas")).metadata_list(),
    ])
    .await
}

#[tokio::test]
async fn claims_secrets_and_nodes_are_completed_in_the_same_way() -> Result<()> {
    let claims = "/apis/cluster.open-cluster-management.io/v1alpha1/clusterclaims";
    let secrets = "/api/v1/namespaces/default/secrets";
    let name = unique("completed");
    let claim = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1alpha1", "kind": "ClusterClaim",
        "metadata": {"name": name}, "spec": {"value": "a"},
    });
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"key": "value"},
    });
    let one = |base: &str| format!("{base}/{name}");
    compare(&[
        post(claims, &claim),
        patch(&one(claims), &json!({"spec": {"value": "b"}})),
        delete(&one(claims), &Value::Null),
        post(secrets, &secret),
        patch(&one(secrets), &json!({"data": {"more": "dmFsdWU="}})),
        patch(&one(secrets), &json!({"type": "other"})),
        patch(&one(secrets), &json!({"immutable": true})),
        patch(&one(secrets), &json!({"data": {"more": null}})),
        delete(&one(secrets), &Value::Null),
        delete(&one("/api/v1/nodes"), &Value::Null),
    ])
    .await
}

#[tokio::test]
async fn a_watch_sends_the_same_events() -> Result<()> {
    let base = "/api/v1/namespaces/default/configmaps";
    let name = unique("watched");
    let path = format!("{base}/{name}");
    let mark = |value: &str| json!({"metadata": {"labels": {"watched": value}}});
    let watch = |more: &str| {
        format!("{base}?watch=true&resourceVersion={{version:0}}&timeoutSeconds=1&allowWatchBookmarks=true{more}")
    };
    compare(&[
        post(base, &map(&name, &mark("no"))),
        patch(&path, &mark(&name)),
        patch(&path, &json!({"data": {"key": "new"}})),
        patch(&path, &mark("no")),
        patch(&path, &mark(&name)),
        delete(&path, &Value::Null),
        get(&watch(&format!("&fieldSelector=metadata.name%3D{name}"))),
        get(&watch(&format!("&labelSelector=watched%3D{name}"))),
        get(&watch(&format!("&labelSelector=watched%3D{name}"))).metadata(),
        post(base, &map(&name, &mark(&name))),
        get(&format!("{base}?watch=true&timeoutSeconds=1&labelSelector=watched%3D{name}")),
        get(&format!("{base}?watch=1&resourceVersion=0&timeoutSeconds=1&labelSelector=watched%20in%20({name},x)")),
        get(&format!(
            "{base}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true\
             &timeoutSeconds=1&labelSelector=watched%3D{name}"
        )),
        step(Method::DELETE, &format!("{base}?labelSelector=watched%3D{name}"), &Value::Null),
    ])
    .await
}

/// Name, singular name, kind, and whether it is namespaced.
async fn discovered(client: &Client, kind: &Kind) -> Result<Vec<(String, String, String, bool)>> {
    let list = match kind.group {
        "" => client.list_core_api_resources(kind.version).await?,
        _ => client.list_api_group_resources(&kind.api_version()).await?,
    };
    let (name, status) = (kind.plural.to_owned(), format!("{}/status", kind.plural));
    let resources = list.resources.into_iter().filter(|resource| resource.name == name || resource.name == status);
    let facts = resources.map(|it| (it.name, it.singular_name, it.kind, it.namespaced));
    Ok(facts.collect())
}

#[tokio::test]
async fn every_kind_is_discovered_as_on_a_kube_apiserver() -> Result<()> {
    let (real, ours) = (real().await?, MemoryCluster::new().client("default"));
    for kind in Kind::ALL {
        assert_eq!(discovered(&ours, kind).await?, discovered(&real, kind).await?, "{kind:?}");
    }
    Ok(())
}
