use k8s_openapi::api::core::v1::ConfigMap;

use std::{
    ops::ControlFlow,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use http::{Request, Response};
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::{Bytes, Frame};
use kube::{client::Body, runtime::watcher::Event};
use tower::service_fn;

use super::*;
use crate::client::Endpoint;

fn config_map(name: &str, version: &str) -> ConfigMap {
    let mut object = ConfigMap::default();
    object.metadata.name = Some(name.into());
    object.metadata.namespace = Some("ns".into());
    object.metadata.resource_version = Some(version.into());
    object
}

/// A cache and a record of what a subscriber is told.
fn watched() -> (Cache<ConfigMap>, Arc<Mutex<Vec<String>>>) {
    let cache = Cache::default();
    (cache.clone(), record(&cache))
}

fn record(cache: &Cache<ConfigMap>) -> Arc<Mutex<Vec<String>>> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    cache.subscribe(move |change| {
        let verb = match change {
            Change::Added(_) => "added",
            Change::Updated { .. } => "updated",
            Change::Deleted(_) => "deleted",
        };
        let name = change.object().metadata.name.clone().unwrap();
        log.lock().unwrap().push(format!("{verb} {name}"));
        ControlFlow::Continue(())
    });
    seen
}

fn list(cache: &Cache<ConfigMap>, objects: Vec<ConfigMap>) {
    cache.take(Event::Init, "configmaps");
    for object in objects {
        cache.take(Event::InitApply(Ok(object)), "configmaps");
    }
    cache.take(Event::InitDone, "configmaps");
}

fn taken(seen: &Arc<Mutex<Vec<String>>>) -> Vec<String> {
    std::mem::take(&mut seen.lock().unwrap())
}

#[test]
fn a_late_subscriber_first_sees_what_is_there() {
    let (cache, _) = watched();
    list(&cache, vec![config_map("a", "1"), config_map("b", "2")]);
    let late = record(&cache);
    assert_eq!(taken(&late), ["added a", "added b"]);
    assert!(cache.is_synced());
}

#[test]
fn after_a_gap_the_difference_is_reported_and_nothing_else() {
    let (cache, seen) = watched();
    list(&cache, vec![config_map("same", "1"), config_map("changed", "2"), config_map("gone", "3")]);
    taken(&seen);
    list(&cache, vec![config_map("same", "1"), config_map("changed", "5"), config_map("new", "6")]);
    assert_eq!(taken(&seen), ["updated changed", "added new", "deleted gone"]);
}

#[test]
fn what_a_write_returned_is_seen_once_and_older_news_do_not_undo_it() {
    let (cache, seen) = watched();
    list(&cache, vec![config_map("a", "1")]);
    taken(&seen);
    cache.learn(config_map("a", "7"));
    cache.take(Event::Apply(Ok(config_map("a", "5"))), "configmaps");
    cache.take(Event::Apply(Ok(config_map("a", "7"))), "configmaps");
    assert_eq!(taken(&seen), ["updated a"]);
    let held = cache.get(&ObjectKey::new("ns", "a")).unwrap();
    assert_eq!(held.metadata.resource_version.as_deref(), Some("7"));
}

#[test]
fn what_a_write_returned_does_not_bring_back_an_object_that_is_gone() {
    let (cache, _) = watched();
    list(&cache, vec![config_map("a", "1")]);
    cache.take(Event::Delete(Ok(config_map("a", "2"))), "configmaps");
    cache.learn(config_map("a", "1"));
    assert!(cache.is_empty());
}

#[test]
fn an_object_that_cannot_be_read_is_left_out_and_the_rest_goes_on() {
    let (cache, seen) = watched();
    cache.take(Event::Init, "configmaps");
    let guard: DeserializeGuard<ConfigMap> =
        serde_json::from_value(serde_json::json!({"metadata": {"name": "bad"}, "data": 1})).unwrap();
    cache.take(Event::InitApply(guard.0.map_err(Box::new)), "configmaps");
    cache.take(Event::InitApply(Ok(config_map("good", "1"))), "configmaps");
    cache.take(Event::InitDone, "configmaps");
    assert_eq!(taken(&seen), ["added good"]);
}

#[test]
fn a_namespace_lists_its_own_objects_only() {
    let (cache, _) = watched();
    let mut other = config_map("x", "9");
    other.metadata.namespace = Some("ns2".into());
    list(&cache, vec![config_map("a", "1"), config_map("b", "2"), other]);
    assert_eq!(cache.in_namespace("ns").len(), 2);
    assert_eq!(cache.in_namespace("n").len(), 0);
}

#[test]
fn what_a_write_created_is_seen_before_the_watch_brings_it() {
    let (cache, seen) = watched();
    list(&cache, vec![config_map("a", "1")]);
    taken(&seen);
    cache.learn(config_map("b", "2"));
    cache.take(Event::Apply(Ok(config_map("b", "2"))), "configmaps");
    assert_eq!(taken(&seen), ["added b"]);
}

#[test]
fn what_a_write_removed_is_gone_before_the_watch_tells() {
    let (cache, seen) = watched();
    list(&cache, vec![config_map("a", "1")]);
    taken(&seen);
    cache.forget(&config_map("a", "1"));
    cache.take(Event::Apply(Ok(config_map("a", "1"))), "configmaps");
    cache.take(Event::Delete(Ok(config_map("a", "2"))), "configmaps");
    assert_eq!(taken(&seen), ["deleted a"]);
}

#[test]
fn a_subscriber_that_breaks_is_not_called_again() {
    let (cache, _) = watched();
    let calls = Arc::new(Mutex::new(0));
    let count = calls.clone();
    cache.subscribe(move |_| {
        *count.lock().unwrap() += 1;
        ControlFlow::Break(())
    });
    list(&cache, vec![config_map("a", "1"), config_map("b", "2")]);
    assert_eq!(*calls.lock().unwrap(), 1);
}

#[test]
fn what_nobody_reads_is_not_kept() {
    let (cache, _) = watched();
    let mut object = config_map("a", "1");
    object.metadata.managed_fields = Some(Vec::default());
    list(&cache, vec![object.clone()]);
    let key = ObjectKey::new("ns", "a");
    assert_eq!(cache.get(&key).unwrap().metadata.managed_fields, None);
    object.metadata.resource_version = Some("2".into());
    cache.learn(object);
    let learned = cache.get(&key).unwrap().metadata.clone();
    assert_eq!((learned.resource_version.as_deref(), learned.managed_fields), (Some("2"), None));
}

#[test]
fn a_view_follows_its_cache_and_is_ahead_of_later_subscribers() {
    let (cache, _) = watched();
    list(&cache, vec![config_map("a", "1"), config_map("left-out", "1")]);
    let view = cache.view(|object| {
        let name = object.metadata.name.clone()?;
        (name != "left-out").then(|| object.metadata.resource_version.clone())
    });
    let (seen, reader) = (Arc::new(Mutex::new(Vec::new())), view.clone());
    let log = seen.clone();
    cache.subscribe(move |change| {
        log.lock().unwrap().push(reader.get(&ObjectKey::of(change.object().as_ref())).flatten());
        ControlFlow::Continue(())
    });
    cache.take(Event::Apply(Ok(config_map("a", "3"))), "configmaps");
    cache.take(Event::Delete(Ok(config_map("a", "4"))), "configmaps");
    assert_eq!(*seen.lock().unwrap(), [Some("1".to_owned()), None, Some("3".to_owned()), None]);
    assert_eq!(view.get(&ObjectKey::new("ns", "a")), None);
}

#[test]
fn a_view_that_nobody_holds_is_let_go() {
    let (cache, _) = watched();
    let inner = Arc::new(());
    let weak = Arc::downgrade(&inner);
    drop(cache.view(move |_| Some(inner.clone())));
    list(&cache, vec![config_map("a", "1")]);
    assert_eq!(weak.strong_count(), 0);
}

type TestBody = UnsyncBoxBody<Bytes, std::convert::Infallible>;

/// Lists one config map, at these versions one after another, and never says anything on a watch.
fn silent_server(lists: Arc<AtomicUsize>, versions: &'static [u64]) -> Endpoint {
    let service = service_fn(move |request: Request<Body>| {
        let lists = lists.clone();
        async move {
            let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
            let body: TestBody = if is_watch {
                StreamBody::new(futures::stream::pending::<Result<Frame<Bytes>, _>>()).boxed_unsync()
            } else {
                let number = lists.fetch_add(1, Ordering::SeqCst);
                let version = versions[number.min(versions.len() - 1)].to_string();
                let list = serde_json::json!({
                    "kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": version},
                    "items": [config_map(&format!("list-{number}"), &version)],
                });
                Full::new(Bytes::from(list.to_string())).boxed_unsync()
            };
            Ok::<_, std::convert::Infallible>(Response::new(body))
        }
    });
    Endpoint::over("http://silent".parse().unwrap(), "default", service)
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_silent_for_too_long_is_begun_anew_with_a_list() {
    let lists = Arc::new(AtomicUsize::new(0));
    let context = Context::new();
    let watches = Watches::new(silent_server(lists.clone(), &[9]).client("test").unwrap(), context.clone());
    let cache = watches.all::<ConfigMap>(Scope::all());
    cache.synced().await;
    let first = cache.list()[0].metadata.name.clone();
    tokio::time::sleep(Duration::from_secs(130)).await;
    assert_ne!(cache.list()[0].metadata.name, first);
    context.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_whose_data_went_back_in_time_is_read_again_within_a_minute() {
    let lists = Arc::new(AtomicUsize::new(0));
    let context = Context::new();
    let endpoint = silent_server(lists.clone(), &[9, 5]);
    let watches = Watches::new(endpoint.client("test").unwrap(), context.clone());
    let cache = watches.all::<ConfigMap>(Scope::all());
    cache.synced().await;
    assert_eq!(cache.list()[0].metadata.resource_version.as_deref(), Some("9"));
    tokio::time::sleep(Duration::from_secs(59)).await;
    assert_eq!(cache.list()[0].metadata.resource_version.as_deref(), Some("5"));
    context.stop().await;
}
