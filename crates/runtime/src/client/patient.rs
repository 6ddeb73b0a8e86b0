//! Waits as long as a busy server asks for, and asks again.

use std::{
    task::{Context, Poll},
    time::Duration,
};

use futures::{FutureExt as _, future::BoxFuture};
use http::{Request, Response, StatusCode, header::RETRY_AFTER};
use kube::client::Body;
use tokio::time::sleep;
use tower::Service;
use tracing::debug;

/// The longest wait, whatever the server asks for.
const LONGEST: Duration = Duration::from_secs(30);
/// So many times a request is made again; who asked for it decides what comes then.
const TRIES: usize = 4;

/// A service that honours `Retry-After`.
#[derive(Clone)]
pub(super) struct Patient<S>(S);

impl<S> Patient<S> {
    pub(super) fn new(service: S) -> Self {
        Self(service)
    }
}

impl<S, B> Service<Request<Body>> for Patient<S>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, task: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(task)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        // The one that is ready is the one to call.
        let fresh = self.0.clone();
        ask(std::mem::replace(&mut self.0, fresh), request).boxed()
    }
}

async fn ask<S, B>(mut service: S, mut request: Request<Body>) -> Result<Response<B>, S::Error>
where
    S: Service<Request<Body>, Response = Response<B>>,
{
    for _ in 0..TRIES {
        let Some(again) = copy(&request) else { break };
        let response = service.call(request).await?;
        let Some(wait) = asks_to_wait(&response) else { return Ok(response) };
        debug!(code = response.status().as_u16(), ?wait, "the API server is too busy, asking again later");
        drop(response);
        // Not all at once, if it told many the same.
        sleep(wait.mul_f64(rand::random_range(1.0..=1.25))).await;
        std::future::poll_fn(|task| service.poll_ready(task)).await?;
        request = again;
    }
    service.call(request).await
}

/// The same request again; nothing when its body can be read only once.
fn copy(request: &Request<Body>) -> Option<Request<Body>> {
    let mut copy = Request::new(request.body().try_clone()?);
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.version_mut() = request.version();
    *copy.headers_mut() = request.headers().clone();
    *copy.extensions_mut() = request.extensions().clone();
    Some(copy)
}

fn asks_to_wait<B>(response: &Response<B>) -> Option<Duration> {
    let is_busy = [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE].contains(&response.status());
    let after = response.headers().get(RETRY_AFTER).filter(|_| is_busy)?;
    let seconds = after.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds).min(LONGEST))
}
