//! Many informers that lose their connections at the same time.

use std::{
    convert::Infallible,
    io,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::{Bytes, Frame};
use kube::client::Body;
use tokio::{
    sync::watch as signal,
    time::{Instant, sleep},
};
use tower::service_fn;

use super::{servers::is_watch_or_list, *};
use crate::{Clock, client::Endpoint};

const INFORMERS: usize = 300;

/// A server whose connections can be cut, and which can be down.
#[derive(Default)]
struct Server {
    cuts: signal::Sender<u64>,
    is_down: AtomicBool,
    /// When it has answered lists.
    lists: Mutex<Vec<Instant>>,
}

impl Server {
    fn endpoint(self: Arc<Self>) -> Endpoint {
        let service = service_fn(move |request: Request<Body>| {
            let response = self.answer(request.uri());
            async move { Ok::<_, Infallible>(response) }
        });
        Endpoint::over("http://cut".parse().unwrap(), "default", service)
    }

    fn answer(&self, uri: &http::Uri) -> Response<UnsyncBoxBody<Bytes, io::Error>> {
        let mut response = Response::new(UnsyncBoxBody::default());
        let (is_watch, is_list) = is_watch_or_list(uri);
        if self.is_down.load(Ordering::SeqCst) {
            *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        } else if is_watch {
            *response.body_mut() = self.events();
        } else {
            let list = serde_json::json!({
                "kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "9"},
                "items": [config_map("a", "9")],
            });
            *response.body_mut() = Full::new(Bytes::from(list.to_string())).map_err(|no| match no {}).boxed_unsync();
            if is_list {
                self.lists.lock().unwrap().push(Instant::now());
            }
        }
        response
    }

    /// Events that never come, until the connection is cut.
    fn events(&self) -> UnsyncBoxBody<Bytes, io::Error> {
        let mut cuts = self.cuts.subscribe();
        let cut = async move {
            cuts.changed().await.unwrap();
            Err::<Frame<Bytes>, _>(io::Error::from(io::ErrorKind::ConnectionReset))
        };
        StreamBody::new(futures::stream::once(cut)).boxed_unsync()
    }

    /// How many lists were answered since the last call, in each second.
    fn lists_per_second(&self) -> Vec<usize> {
        let lists = std::mem::take(&mut *self.lists.lock().unwrap());
        let seconds = lists.iter().map(|list| (*list - lists[0]).as_secs());
        let mut counts = vec![0; 120];
        seconds.for_each(|second| counts[usize::try_from(second).unwrap()] += 1);
        counts
    }
}

/// Informers of a server, each of another process, that are synced.
async fn synced(server: &Arc<Server>, context: &Context) -> Vec<Cache<ConfigMap>> {
    let endpoint = server.clone().endpoint();
    let informers = |_| Informers::new(endpoint.client("test").unwrap(), context.clone());
    let caches = (0..INFORMERS).map(informers).map(|informers| informers.all::<ConfigMap>(WatchFilter::all()));
    let caches: Vec<_> = caches.collect();
    futures::future::join_all(caches.iter().map(Cache::synced)).await;
    caches
}

fn is_spread(lists: &[usize]) -> bool {
    lists.iter().sum::<usize>() == INFORMERS && lists.iter().all(|count| *count <= INFORMERS / 5)
}

#[tokio::test(start_paused = true)]
async fn informers_that_lose_their_connection_at_once_do_not_list_at_once_and_new_ones_list_without_delay() {
    let (server, context) =
        (Arc::new(Server::default()), Context::with_clock(Clock::manual(jiff::Timestamp::UNIX_EPOCH)));
    let start = Instant::now();
    let _caches = synced(&server, &context).await;
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    // Until all watch.
    sleep(Duration::from_secs(1)).await;
    server.lists_per_second();
    server.cuts.send_modify(|cuts| *cuts += 1);
    sleep(Duration::from_secs(11)).await;
    let lists = server.lists_per_second();
    assert!(is_spread(&lists), "after a cut: {lists:?}");
    server.is_down.store(true, Ordering::SeqCst);
    server.cuts.send_modify(|cuts| *cuts += 1);
    sleep(Duration::from_secs(90)).await;
    server.is_down.store(false, Ordering::SeqCst);
    sleep(Duration::from_secs(31)).await;
    let lists = server.lists_per_second();
    assert!(is_spread(&lists), "after an outage: {lists:?}");
    context.stop().await;
}
