//! Sends requests: over which connection, with which credential, and for how long.

use std::{
    sync::Arc,
    task::{Context as Task, Poll},
    time::Duration,
};

use arc_swap::ArcSwap;
use futures::{FutureExt as _, future::BoxFuture};
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use kube::client::Body;
use tokio::time::timeout;
use tower::{BoxError, Service, ServiceExt as _};
use tower_http::timeout::TimeoutBody;

use super::{
    AnswerBody,
    retry::copy,
    transport::{Session, Transport},
};

/// How long the answer to a read may take to begin, and every answer to go on.
const READ_TIMEOUT: Duration = Duration::from_secs(15);
/// How long the answer to a write may take to begin. The API server itself gives up after a minute; a write that is
/// given up sooner, while it waits for an admission webhook, is cancelled there and never made.
const WRITE_TIMEOUT: Duration = Duration::from_secs(65);
/// How long a watch may be silent. API servers send a bookmark about every minute, so one that is
/// silent for longer is not watching, whatever the connection says.
const WATCH_TIMEOUT: Duration = Duration::from_secs(100);

/// Sends every request over the connection of the credentials that are current at that moment.
#[derive(Clone)]
pub(super) struct Current(pub(super) Arc<ArcSwap<Transport>>);

impl Service<Request<Body>> for Current {
    type Response = Response<AnswerBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Task<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        send(self.0.load_full(), request).boxed()
    }
}

/// Sends a request, and again with a new credential if the one in use is refused and can be renewed.
async fn send(transport: Arc<Transport>, request: Request<Body>) -> Result<Response<AnswerBody>, BoxError> {
    let session = transport.session().await?;
    let again = transport.has_plugin().then(|| copy(&request)).flatten();
    let response = send_over(&session, request).await?;
    let Some(again) = again.filter(|_| response.status() == StatusCode::UNAUTHORIZED) else { return Ok(response) };
    match transport.after_refusal(session).await {
        Some(renewed) => send_over(&renewed, again).await,
        None => Ok(response),
    }
}

async fn send_over(session: &Session, request: Request<Body>) -> Result<Response<AnswerBody>, BoxError> {
    let silence = if is_watch(&request) { WATCH_TIMEOUT } else { READ_TIMEOUT };
    let limit = if request.method().is_safe() { READ_TIMEOUT } else { WRITE_TIMEOUT };
    let answer = session.http.clone().oneshot(request);
    let response = timeout(limit, answer).await.map_err(|_| NoAnswer(limit))??;
    Ok(response.map(|body| TimeoutBody::new(silence, body).boxed_unsync()))
}

/// The server accepted a request and does not answer it.
#[derive(Debug, thiserror::Error)]
#[error("no answer within {} s", .0.as_secs())]
struct NoAnswer(Duration);

fn is_watch(request: &Request<Body>) -> bool {
    let query = request.uri().query().unwrap_or_default();
    query.split('&').any(|parameter| parameter == "watch=true")
}
