//! Caches of servers that fail, keep silent, or go back in time.

use std::{
    convert::Infallible,
    io::{self, Write},
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::{Bytes, Frame};
use kube::client::Body;
use tower::service_fn;

use super::*;
use crate::client::Endpoint;

type TestBody = UnsyncBoxBody<Bytes, Infallible>;

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
            Ok::<_, Infallible>(Response::new(body))
        }
    });
    Endpoint::over("http://silent".parse().unwrap(), "default", service)
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_silent_for_too_long_is_begun_anew_with_a_list() {
    let lists = Arc::new(AtomicUsize::new(0));
    let context = Context::new();
    let watches = Informers::new(silent_server(lists.clone(), &[9]).client("test").unwrap(), context.clone());
    let cache = watches.all::<ConfigMap>(WatchFilter::all());
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
    let watches = Informers::new(endpoint.client("test").unwrap(), context.clone());
    let cache = watches.all::<ConfigMap>(WatchFilter::all());
    cache.synced().await;
    assert_eq!(cache.list()[0].metadata.resource_version.as_deref(), Some("9"));
    tokio::time::sleep(Duration::from_secs(59)).await;
    assert_eq!(cache.list()[0].metadata.resource_version.as_deref(), Some("5"));
    context.stop().await;
}

#[tokio::test(start_paused = true)]
async fn parts_share_the_question_where_the_server_stands_and_outlive_one_another() {
    let lists = Arc::new(AtomicUsize::new(0));
    let context = Context::new();
    let watches = Informers::new(silent_server(lists.clone(), &[9, 9, 9, 5]).client("test").unwrap(), context.clone());
    let parts: Vec<_> = (0..3).map(|_| context.child()).collect();
    let part = |context: &Context| watches.part(context.clone()).all::<ConfigMap>(WatchFilter::all());
    let caches: Vec<_> = parts.iter().map(part).collect();
    futures::future::join_all(caches.iter().map(Cache::synced)).await;
    assert_eq!(lists.load(Ordering::SeqCst), 3, "each lists for itself");
    parts[0].stop().await;
    tokio::time::sleep(Duration::from_secs(46)).await;
    let version = caches[2].list()[0].metadata.resource_version.clone();
    assert_eq!(version.as_deref(), Some("5"), "all begin anew, though the part that began with asking has ended");
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

/// What was logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(text)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_fails_each_time_is_tried_later_each_time_and_told_of() {
    let (log, asked) = (Log::default(), Arc::new(AtomicUsize::new(0)));
    let writer = log.clone();
    let logs = tracing_subscriber::fmt().with_max_level(tracing::Level::WARN).with_writer(move || writer.clone());
    let _guard = tracing::subscriber::set_default(logs.finish());
    let context = Context::new();
    let watches = Informers::new(forbidding_server(asked.clone()).client("test").unwrap(), context.clone());
    let cache = watches.all::<ConfigMap>(WatchFilter::all());
    tokio::time::sleep(Duration::from_secs(60)).await;
    context.stop().await;
    assert!(!cache.is_synced());
    // The backstop asks in vain as well.
    let asked = asked.load(Ordering::SeqCst);
    assert!((10..60).contains(&asked), "asked {asked} times");
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains("watch keeps failing") && log.contains("not for you"), "{log}");
}
