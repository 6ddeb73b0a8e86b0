//! The cluster in memory: its promises to clients, and that a kube-apiserver responds the same.

mod differential;
mod script;

use std::collections::BTreeMap;
use std::fmt::Debug;

use anyhow::{Context as _, Result, bail};
use futures::{StreamExt as _, TryStreamExt as _};
use http::Request;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{
    DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams, Preconditions, WatchEvent, WatchParams,
};
use kube::runtime::{WatchStreamExt as _, reflector, watcher};
use kube::{Api, ResourceExt};
use ocm_testing::{MemoryCluster, eventually};
use serde_json::json;

fn maps(cluster: &MemoryCluster) -> Api<ConfigMap> {
    Api::default_namespaced(cluster.client("default"))
}

fn map(name: &str, labels: &[(&str, &str)]) -> ConfigMap {
    let labels: BTreeMap<_, _> = labels.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
    let metadata = ObjectMeta { name: Some(name.into()), labels: Some(labels), ..ObjectMeta::default() };
    ConfigMap { metadata, ..ConfigMap::default() }
}

async fn create(api: &Api<ConfigMap>, name: &str) -> Result<ConfigMap> {
    Ok(api.create(&PostParams::default(), &map(name, &[])).await?)
}

/// The HTTP status of an error.
fn code<T: Debug>(outcome: kube::Result<T>) -> Result<u16> {
    match outcome {
        Err(kube::Error::Api(status)) => Ok(status.code),
        Err(error) => Err(error.into()),
        Ok(answer) => bail!("it was not refused: {answer:?}"),
    }
}

fn data(value: &str) -> Patch<serde_json::Value> {
    Patch::Merge(json!({"data": {"key": value}}))
}

#[tokio::test]
async fn what_was_created_is_read_listed_changed_and_deleted() -> Result<()> {
    let api = maps(&MemoryCluster::new());
    let created = create(&api, "a").await?;
    assert!(created.uid().is_some() && created.metadata.creation_timestamp.is_some());
    assert_eq!(api.get("a").await?, created);
    let patched = api.patch("a", &PatchParams::default(), &data("value")).await?;
    assert_eq!(patched.uid(), created.uid());
    assert_ne!(patched.resource_version(), created.resource_version());
    assert_eq!(api.list(&ListParams::default()).await?.items.len(), 1);
    api.delete("a", &DeleteParams::default()).await?;
    assert_eq!(code(api.get("a").await)?, 404);
    Ok(())
}

#[tokio::test]
async fn a_write_that_changes_nothing_is_none() -> Result<()> {
    let api = maps(&MemoryCluster::new());
    let created = create(&api, "a").await?;
    let patched = api.patch("a", &PatchParams::default(), &Patch::Merge(json!({"data": null}))).await?;
    assert_eq!(patched.resource_version(), created.resource_version());
    let replaced = api.replace("a", &PostParams::default(), &created).await?;
    assert_eq!(replaced.resource_version(), created.resource_version());
    Ok(())
}

#[tokio::test]
async fn a_write_based_on_an_old_version_is_a_conflict() -> Result<()> {
    let api = maps(&MemoryCluster::new());
    let old = create(&api, "a").await?;
    api.patch("a", &PatchParams::default(), &data("new")).await?;
    assert_eq!(code(api.replace("a", &PostParams::default(), &old).await)?, 409);
    let guarded = json!({"metadata": {"resourceVersion": old.resource_version()}, "data": {"key": "late"}});
    assert_eq!(code(api.patch("a", &PatchParams::default(), &Patch::Merge(guarded)).await)?, 409);
    assert_eq!(api.get("a").await?.data, Some([("key".to_owned(), "new".to_owned())].into()));
    Ok(())
}

#[tokio::test]
async fn another_object_of_the_same_name_is_not_taken_for_the_object() -> Result<()> {
    let api = maps(&MemoryCluster::new());
    let first = create(&api, "a").await?;
    api.delete("a", &DeleteParams::default()).await?;
    create(&api, "a").await?;
    let only_this = Preconditions { uid: first.uid(), ..Preconditions::default() };
    let params = DeleteParams { preconditions: Some(only_this), ..DeleteParams::default() };
    assert_eq!(code(api.delete("a", &params).await)?, 409);
    let patch = json!({"metadata": {"uid": first.uid()}, "data": {"key": "lost"}});
    assert_eq!(code(api.patch("a", &PatchParams::default(), &Patch::Merge(patch)).await)?, 422);
    api.get("a").await?;
    Ok(())
}

#[tokio::test]
async fn a_finalizer_holds_what_is_being_deleted() -> Result<()> {
    let api = maps(&MemoryCluster::new());
    create(&api, "a").await?;
    let finalizers = |list: &[&str]| Patch::Merge(json!({"metadata": {"finalizers": list}}));
    api.patch("a", &PatchParams::default(), &finalizers(&["test/hold"])).await?;
    let held = api.delete("a", &DeleteParams::default()).await?.left().context("it is gone")?;
    assert!(held.metadata.deletion_timestamp.is_some());
    let again = api.delete("a", &DeleteParams::default()).await?.left().context("it is gone")?;
    assert_eq!(again.resource_version(), held.resource_version());
    let more = api.patch("a", &PatchParams::default(), &finalizers(&["test/hold", "test/more"])).await;
    assert_eq!(code(more)?, 422);
    api.patch("a", &PatchParams::default(), &finalizers(&[])).await?;
    assert_eq!(code(api.get("a").await)?, 404);
    Ok(())
}

#[tokio::test]
async fn a_watch_sends_the_events_after_its_version() -> Result<()> {
    let api = maps(&MemoryCluster::new());
    let first = create(&api, "a").await?.resource_version().unwrap_or_default();
    create(&api, "b").await?;
    api.patch("b", &PatchParams::default(), &data("value")).await?;
    let watch = api.watch(&WatchParams::default(), &first).await?;
    api.delete("a", &DeleteParams::default()).await?;
    let told: Vec<_> = watch.take(3).try_collect().await?;
    let told: Vec<_> = told.iter().map(describe).collect();
    assert_eq!(told, ["added b", "modified b", "deleted a"]);
    Ok(())
}

fn describe(event: &WatchEvent<ConfigMap>) -> String {
    match event {
        WatchEvent::Added(object) => format!("added {}", object.name_any()),
        WatchEvent::Modified(object) => format!("modified {}", object.name_any()),
        WatchEvent::Deleted(object) => format!("deleted {}", object.name_any()),
        WatchEvent::Bookmark(_) => "bookmark".into(),
        WatchEvent::Error(status) => format!("error {}", status.code),
    }
}

#[tokio::test]
async fn a_watch_that_asks_for_bookmarks_ends_with_one() -> Result<()> {
    let api = maps(&MemoryCluster::new());
    let version = create(&api, "a").await?.resource_version().unwrap_or_default();
    create(&api, "b").await?;
    let params = WatchParams { bookmarks: true, ..WatchParams::default().timeout(1) };
    let told: Vec<_> = api.watch(&params, &version).await?.try_collect().await?;
    assert_eq!(told.iter().map(describe).collect::<Vec<_>>(), ["added b", "bookmark"]);
    Ok(())
}

#[tokio::test]
async fn a_watch_of_an_old_version_gets_the_error_that_it_is_too_old() -> Result<()> {
    let api = maps(&MemoryCluster::new());
    let version = create(&api, "a").await?.resource_version().unwrap_or_default();
    for round in 0..300 {
        api.patch("a", &PatchParams::default(), &data(&round.to_string())).await?;
    }
    let told: Vec<_> = api.watch(&WatchParams::default(), &version).await?.try_collect().await?;
    assert_eq!(told.iter().map(describe).collect::<Vec<_>>(), ["error 410"]);
    Ok(())
}

#[tokio::test]
async fn a_selection_is_listed_and_watched() -> Result<()> {
    let cluster = MemoryCluster::new();
    let api = maps(&cluster);
    let before = create(&api, "plain").await?.resource_version().unwrap_or_default();
    api.create(&PostParams::default(), &map("red", &[("colour", "red")])).await?;
    let selected = |params: ListParams| {
        let api = api.clone();
        async move { anyhow::Ok(api.list(&params).await?.iter().map(ResourceExt::name_any).collect::<Vec<_>>()) }
    };
    assert_eq!(selected(ListParams::default().labels("colour=red")).await?, ["red"]);
    assert_eq!(selected(ListParams::default().labels("colour notin (red)")).await?, ["plain"]);
    assert_eq!(selected(ListParams::default().fields("metadata.name=plain")).await?, ["plain"]);
    let unsupported = api.list(&ListParams::default().fields("spec.x=y")).await;
    assert_eq!(code(unsupported)?, 400);
    let watch = api.watch(&WatchParams::default().labels("colour=red"), &before).await?;
    let blue = Patch::Merge(json!({"metadata": {"labels": {"colour": "blue"}}}));
    api.patch("red", &PatchParams::default(), &blue).await?;
    let told: Vec<_> = watch.take(2).try_collect().await?;
    assert_eq!(told.iter().map(describe).collect::<Vec<_>>(), ["added red", "deleted red"]);
    Ok(())
}

#[tokio::test]
async fn only_the_metadata_is_returned_on_request() -> Result<()> {
    let api = maps(&MemoryCluster::new());
    let created = create(&api, "a").await?;
    let metadata = api.get_metadata("a").await?;
    assert_eq!(metadata.metadata, created.metadata);
    assert_eq!(metadata.types.map(|types| types.kind).as_deref(), Some("PartialObjectMetadata"));
    let listed = api.list_metadata(&ListParams::default()).await?;
    assert_eq!(listed.items[0].metadata.uid, created.uid());
    Ok(())
}

#[tokio::test]
async fn a_kind_that_is_not_served_is_not_found() -> Result<()> {
    let client = MemoryCluster::new().client("default");
    for path in ["/apis/example.com/v1/widgets", "/api/v1/widgets", "/api/v1/configmaps/a", "/api/v1/nodes/a/scale"] {
        let request = Request::get(path).body(Vec::new())?;
        assert_eq!(code(client.request_text(request).await)?, 404, "{path}");
    }
    let listed = client.list_api_group_resources("work.open-cluster-management.io/v1").await?;
    let names: Vec<_> = listed.resources.iter().map(|resource| resource.name.as_str()).collect();
    assert_eq!(names, ["appliedmanifestworks", "appliedmanifestworks/status"]);
    assert_eq!(code(client.list_api_group_resources("example.com/v1").await)?, 404);
    assert!(client.apiserver_version().await?.git_version.starts_with("v1."));
    Ok(())
}

#[tokio::test]
async fn objects_need_their_namespace_and_are_deleted_with_it() -> Result<()> {
    let cluster = MemoryCluster::new();
    let inside: Api<ConfigMap> = Api::namespaced(cluster.client("default"), "new");
    assert_eq!(code(inside.create(&PostParams::default(), &map("a", &[])).await)?, 404);
    let namespaces: Api<Namespace> = Api::all(cluster.client("default"));
    let namespace = serde_json::from_value(json!({"metadata": {"name": "new"}}))?;
    namespaces.create(&PostParams::default(), &namespace).await?;
    let mut held = map("held", &[]);
    held.metadata.finalizers = Some(vec!["test/hold".into()]);
    for map in [&map("a", &[]), &held] {
        inside.create(&PostParams::default(), map).await?;
    }
    namespaces.delete("new", &DeleteParams::default()).await?;
    assert_eq!(code(inside.get("a").await)?, 404);
    assert_eq!(code(inside.create(&PostParams::default(), &map("late", &[])).await)?, 403);
    let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    inside.patch("held", &PatchParams::default(), &release).await?;
    assert_eq!(code(namespaces.get("new").await)?, 404);
    Ok(())
}

#[tokio::test]
async fn a_patch_of_another_kind_is_refused() -> Result<()> {
    let api = maps(&MemoryCluster::new());
    create(&api, "a").await?;
    let strategic = Patch::Strategic(json!({"data": {"key": "value"}}));
    assert_eq!(code(api.patch("a", &PatchParams::default(), &strategic).await)?, 415);
    Ok(())
}

#[tokio::test]
async fn a_cache_follows_it_in_both_ways_of_starting() -> Result<()> {
    for config in [watcher::Config::default(), watcher::Config::default().streaming_lists()] {
        let api = maps(&MemoryCluster::new());
        create(&api, "before").await?;
        let (reader, writer) = reflector::store();
        let following = watcher(api.clone(), config).reflect(writer).for_each(|_| std::future::ready(()));
        let following = tokio::spawn(following);
        reader.wait_until_ready().await?;
        create(&api, "after").await?;
        api.delete("before", &DeleteParams::default()).await?;
        eventually("the cache shows what is there", || async {
            let names: Vec<_> = reader.state().iter().map(|map| map.name_any()).collect();
            names == ["after"]
        })
        .await?;
        following.abort();
    }
    Ok(())
}
