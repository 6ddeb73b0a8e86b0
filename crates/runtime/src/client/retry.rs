//! Asks a busy server again when its `Retry-After` says.
//!
//! kube's policy is not used as it is: it repeats writes after 503 and 504 without the server having asked for it, and waits
//! for as long as a server says. The copying of requests is kube's.

use std::time::Duration;

use http::{Request, Response, StatusCode, header::RETRY_AFTER};
use kube::client::{Body, retry::RetryPolicy};
use tokio::time::{Sleep, sleep};
use tower::{BoxError, retry::Policy};
use tracing::debug;

/// The longest wait, whatever the server asks for.
const LONGEST: Duration = Duration::from_secs(30);
/// How often a request is repeated; then the caller gets the answer.
const RETRIES: usize = 4;

/// Honours `Retry-After` of 429 and 503. The server has not begun to do what was asked, so writes are repeated as well.
#[derive(Clone)]
pub(super) struct RetryAfter {
    left: usize,
}

impl RetryAfter {
    pub(super) fn new() -> Self {
        Self { left: RETRIES }
    }
}

impl<B> Policy<Request<Body>, Response<B>, BoxError> for RetryAfter {
    type Future = Sleep;

    fn retry(&mut self, _: &mut Request<Body>, answer: &mut Result<Response<B>, BoxError>) -> Option<Self::Future> {
        let response = answer.as_ref().ok()?;
        let wait = retry_after(response)?;
        self.left = self.left.checked_sub(1)?;
        debug!(code = response.status().as_u16(), ?wait, "the API server is too busy, asking again later");
        // With jitter: it may have told many clients the same.
        Some(sleep(wait.mul_f64(rand::random_range(1.0..=1.25))))
    }

    fn clone_request(&mut self, request: &Request<Body>) -> Option<Request<Body>> {
        copy(request)
    }
}

/// The same request again; none if its body can be read only once.
pub(super) fn copy(request: &Request<Body>) -> Option<Request<Body>> {
    let mut policy = RetryPolicy::default();
    Policy::<_, Response<Body>, _>::clone_request(&mut policy, request)
}

fn retry_after<B>(response: &Response<B>) -> Option<Duration> {
    let is_busy = [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE].contains(&response.status());
    let after = response.headers().get(RETRY_AFTER).filter(|_| is_busy)?;
    let seconds = after.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds).min(LONGEST))
}
