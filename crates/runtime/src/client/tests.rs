//! Time limits and retries.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use http_body_util::Full;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, api::PostParams};
use serde_json::json;
use tokio::time::{Instant, sleep};
use tower::service_fn;

use super::*;

fn answer(code: u16, retry_after: Option<&str>) -> Response<Full<Bytes>> {
    let body = match code {
        200 => json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}}),
        _ => json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code}),
    };
    let mut answer = Response::builder().status(code);
    if let Some(value) = retry_after {
        answer = answer.header("retry-after", value);
    }
    answer.body(Full::new(Bytes::from(body.to_string()))).unwrap()
}

/// Config maps at a server that answers each request with what `answers` says about its number.
fn config_maps(answers: fn(usize) -> Response<Full<Bytes>>, takes: Duration) -> (Api<ConfigMap>, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let service = service_fn(move |_: Request<Body>| {
        let number = count.fetch_add(1, Ordering::SeqCst);
        async move {
            sleep(takes).await;
            Ok::<_, Infallible>(answers(number))
        }
    });
    let endpoint = Endpoint::over("http://server".parse().unwrap(), "default", service);
    (Api::default_namespaced(endpoint.client("test").unwrap()), asked)
}

async fn create(api: &Api<ConfigMap>) -> kube::Result<ConfigMap> {
    api.create(&PostParams::default(), &ConfigMap::default()).await
}

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_write_may_take_the_minute_that_api_servers_give_it_and_a_read_may_not() {
    let (api, _) = config_maps(|_| answer(200, None), 60 * SECOND);
    assert!(create(&api).await.is_ok());
    let (start, read) = (Instant::now(), api.get("a").await);
    assert!(read.is_err() && start.elapsed() < 20 * SECOND, "{read:?} after {:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_write_that_is_never_answered_fails() {
    let (api, asked) = config_maps(|_| answer(200, None), 3600 * SECOND);
    let error = crate::error::chain(&create(&api).await.unwrap_err());
    assert!(error.contains("no answer within 65 s"), "{error}");
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_too_busy_is_asked_again_when_it_says() {
    let busy_twice = |number| match number {
        0 => answer(429, Some("7")),
        1 => answer(503, Some("3600")),
        _ => answer(200, None),
    };
    let ((api, asked), start) = (config_maps(busy_twice, Duration::ZERO), Instant::now());
    assert!(create(&api).await.is_ok());
    assert_eq!(asked.load(Ordering::SeqCst), 3);
    assert!((37 * SECOND..60 * SECOND).contains(&start.elapsed()), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stays_too_busy_is_not_asked_for_ever() {
    let (api, asked) = config_maps(|_| answer(429, Some("1")), Duration::ZERO);
    assert!(matches!(create(&api).await, Err(kube::Error::Api(status)) if status.code == 429));
    assert_eq!(asked.load(Ordering::SeqCst), 5);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_say_when_is_not_asked_again_here() {
    for (code, after) in [(429, None), (503, None), (500, Some("1")), (429, Some("tomorrow"))] {
        let status = move || answer(code, after);
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let service = service_fn(move |_: Request<Body>| {
            count.fetch_add(1, Ordering::SeqCst);
            let answer = status();
            async move { Ok::<_, Infallible>(answer) }
        });
        let endpoint = Endpoint::over("http://server".parse().unwrap(), "default", service);
        assert!(create(&Api::default_namespaced(endpoint.client("test").unwrap())).await.is_err());
        assert_eq!(asked.load(Ordering::SeqCst), 1, "{code} {after:?}");
    }
}
