//! Sends requests with the current credentials, within time limits.

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

/// How long the response to a read may take to start, and the longest pause within any response.
const READ_TIMEOUT: Duration = Duration::from_secs(15);
/// How long the response to a write may take to start. The API server has a limit of a minute; if the client gives up
/// sooner, while the write waits for an admission webhook, the server cancels the write.
const WRITE_TIMEOUT: Duration = Duration::from_secs(65);
/// How long a watch may receive nothing. API servers send a bookmark about every minute, so a watch that receives nothing
/// for longer is broken, even if its connection is open.
const WATCH_TIMEOUT: Duration = Duration::from_secs(100);

/// Sends every request with the credentials that are current at that moment.
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

/// Sends a request. If the server rejects the credential (401) and it can be renewed, sends the request once more.
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

/// The server did not respond in time.
#[derive(Debug, thiserror::Error)]
#[error("no answer within {} s", .0.as_secs())]
pub(super) struct NoAnswer(Duration);

fn is_watch(request: &Request<Body>) -> bool {
    let query = request.uri().query().unwrap_or_default();
    query.split('&').any(|parameter| parameter == "watch=true")
}
