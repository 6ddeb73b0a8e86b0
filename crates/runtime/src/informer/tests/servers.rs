//! Caches of servers that fail, send nothing, or go back in time.

use std::{
    convert::Infallible,
    io,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::{Bytes, Frame};
use kube::client::Body;
use tower::service_fn;

use super::*;
use crate::{client::Endpoint, logs::testing::captured};

type TestBody = UnsyncBoxBody<Bytes, Infallible>;

/// The name of the object that a request is about, as those of the continuity check are.
fn asked_for(uri: &http::Uri) -> Option<String> {
    let (_, name) = uri.query()?.split_once("fieldSelector=metadata.name%3D")?;
    Some(name.split('&').next()?.to_owned())
}

/// Lists one config map, at these versions one after another, and never sends anything on a watch.
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
                    "items": [config_map(&asked_for(request.uri()).unwrap_or(format!("list-{number}")), &version)],
                });
                Full::new(Bytes::from(list.to_string())).boxed_unsync()
            };
            Ok::<_, Infallible>(Response::new(body))
        }
    });
    Endpoint::over("http://silent".parse().unwrap(), "default", service)
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_receives_nothing_for_too_long_is_replaced_by_a_list_and_a_new_watch() {
    let lists = Arc::new(AtomicUsize::new(0));
    let context = Context::new();
    let informers = Informers::new(silent_server(lists.clone(), &[9]).client("test").unwrap(), context.clone());
    let cache = informers.all::<ConfigMap>(WatchFilter::all());
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
    let informers = Informers::new(endpoint.client("test").unwrap(), context.clone());
    let cache = informers.all::<ConfigMap>(WatchFilter::all());
    cache.synced().await;
    assert_eq!(cache.list()[0].metadata.resource_version.as_deref(), Some("9"));
    tokio::time::sleep(Duration::from_secs(59)).await;
    assert_eq!(cache.list()[0].metadata.resource_version.as_deref(), Some("5"));
    context.stop().await;
}

/// Whether a request is one for a watch, and whether it is one for a list by an informer.
pub(super) fn is_watch_or_list(uri: &http::Uri) -> (bool, bool) {
    let query = uri.query().unwrap_or_default();
    (query.contains("watch=true"), query.contains("limit=500"))
}

/// Lists one config map, and ends the first watch like this: in good order or not. Counts lists and watches.
fn interrupting_server(counts: Arc<[AtomicUsize; 2]>, in_good_order: bool) -> Endpoint {
    let service = service_fn(move |request: Request<Body>| {
        let (is_watch, is_list) = is_watch_or_list(request.uri());
        let number = counts[usize::from(is_watch)].fetch_add(usize::from(is_watch || is_list), Ordering::SeqCst);
        let list = serde_json::json!({
            "kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "9"},
            "items": [config_map("a", "9")],
        });
        let error = (!in_good_order).then(|| Err(io::Error::from(io::ErrorKind::ConnectionReset)));
        let end = futures::stream::iter(error);
        let body: UnsyncBoxBody<Bytes, io::Error> = match (is_watch, number) {
            (false, _) => Full::new(Bytes::from(list.to_string())).map_err(|never| match never {}).boxed_unsync(),
            (true, 0) => StreamBody::new(end).boxed_unsync(),
            (true, _) => StreamBody::new(futures::stream::pending()).boxed_unsync(),
        };
        async { Ok::<_, Infallible>(Response::new(body)) }
    });
    Endpoint::over("http://interrupting".parse().unwrap(), "default", service)
}

/// How many lists and watches there were.
async fn lists_and_watches(in_good_order: bool) -> (usize, usize) {
    let counts = Arc::<[AtomicUsize; 2]>::default();
    let context = Context::new();
    let client = interrupting_server(counts.clone(), in_good_order).client("test").unwrap();
    let informers = Informers::new(client, context.clone());
    informers.all::<ConfigMap>(WatchFilter::all()).synced().await;
    tokio::time::sleep(Duration::from_secs(11)).await;
    context.stop().await;
    (counts[0].load(Ordering::SeqCst), counts[1].load(Ordering::SeqCst))
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_the_server_ends_in_good_order_resumes_and_one_that_breaks_begins_with_a_list() {
    assert_eq!(lists_and_watches(true).await, (1, 2));
    assert_eq!(lists_and_watches(false).await, (2, 2));
}

#[tokio::test(start_paused = true)]
async fn parts_share_the_continuity_check_and_outlive_one_another() {
    let lists = Arc::new(AtomicUsize::new(0));
    let context = Context::new();
    let informers =
        Informers::new(silent_server(lists.clone(), &[9, 9, 9, 5]).client("test").unwrap(), context.clone());
    let parts: Vec<_> = (0..3).map(|_| context.child()).collect();
    let part = |context: &Context| informers.part(context.clone()).all::<ConfigMap>(WatchFilter::all());
    let caches: Vec<_> = parts.iter().map(part).collect();
    futures::future::join_all(caches.iter().map(Cache::synced)).await;
    assert_eq!(lists.load(Ordering::SeqCst), 3, "each lists for itself");
    parts[0].stop().await;
    tokio::time::sleep(Duration::from_secs(46)).await;
    let version = caches[2].list()[0].metadata.resource_version.clone();
    assert_eq!(version.as_deref(), Some("5"), "all list again, though the part that asked first has ended");
    assert_eq!(lists.load(Ordering::SeqCst), 3 + 1 + 2, "one question, and a list by each of those that are left");
    context.stop().await;
}

/// Answers every request with 403.
fn forbidding_server(asked: Arc<AtomicUsize>) -> Endpoint {
    let service = service_fn(move |_: Request<Body>| {
        asked.fetch_add(1, Ordering::SeqCst);
        async {
            let status = serde_json::json!({
                "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403, "reason": "Forbidden",
                "message": "not for you",
            });
            let mut response = Response::new(Full::new(Bytes::from(status.to_string())));
            *response.status_mut() = StatusCode::FORBIDDEN;
            Ok::<_, Infallible>(response)
        }
    });
    Endpoint::over("http://forbidding".parse().unwrap(), "default", service)
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_refused_each_time_is_retried_later_each_time_and_logged() {
    let (logs, asked) = (captured(), Arc::new(AtomicUsize::new(0)));
    let context = Context::new();
    let informers = Informers::new(forbidding_server(asked.clone()).client("test").unwrap(), context.clone());
    let cache = informers.all::<ConfigMap>(WatchFilter::all());
    tokio::time::sleep(Duration::from_secs(60)).await;
    context.stop().await;
    assert!(!cache.is_synced());
    let asked = asked.load(Ordering::SeqCst);
    assert!((8..16).contains(&asked), "asked {asked} times");
    let logs = logs();
    let is_ours = |line: &str| line.contains("watch keeps failing") && line.contains("not for you");
    assert!(logs.lines().any(is_ours), "{logs}");
}

#[tokio::test(start_paused = true)]
async fn where_only_metadata_is_kept_no_request_asks_for_more() {
    let accepted = Arc::new(Mutex::new(Vec::new()));
    let (log, silent) = (accepted.clone(), silent_server(Arc::default(), &[9]).client("test").unwrap());
    let service = service_fn(move |request: Request<Body>| {
        log.lock().unwrap().push(request.headers()[http::header::ACCEPT].to_str().unwrap().to_owned());
        let silent = silent.clone();
        async move { silent.send(request).await }
    });
    let context = Context::new();
    let client = Endpoint::over("http://metadata".parse().unwrap(), "default", service).client("test").unwrap();
    Informers::new(client, context.clone()).metadata::<ConfigMap>(WatchFilter::all()).synced().await;
    tokio::time::sleep(Duration::from_secs(46)).await;
    context.stop().await;
    let accepted = accepted.lock().unwrap();
    assert_eq!(accepted.len(), 3, "a list, a watch and a question of the continuity check: {accepted:?}");
    assert!(accepted.iter().all(|accept| accept.contains("as=PartialObjectMetadata")), "{accepted:?}");
}

#[tokio::test(start_paused = true)]
async fn readiness_does_not_wait_for_an_optional_kind_and_the_log_says_what_to_install() {
    let (logs, context) = (captured(), Context::new());
    let informers = Informers::new(forbidding_server(Arc::default()).client("test").unwrap(), context.clone());
    let cache = informers.optional::<ConfigMap>(WatchFilter::all(), "install them all");
    assert!(context.health().awaited().is_empty());
    tokio::time::sleep(Duration::from_secs(60)).await;
    context.stop().await;
    assert!(!cache.is_synced());
    let logs = logs();
    let is_ours = |line: &str| line.contains("watch keeps failing") && line.contains("install them all");
    assert!(logs.lines().any(is_ours), "{logs}");
}
