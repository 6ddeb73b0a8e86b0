//! Retries requests that a busy server rejects with `Retry-After`.
//!
//! kube's policy also retries writes after 503 and 504 without `Retry-After`, which may repeat their effect, and has no limit
//! for `Retry-After`. Only its way of copying requests is used.

use std::time::Duration;

use http::{Request, Response, StatusCode, header::RETRY_AFTER};
use kube::client::{Body, retry::RetryPolicy};
use tokio::time::{Sleep, sleep};
use tower::{BoxError, retry::Policy};
use tracing::debug;

/// The longest wait for one retry.
const LONGEST: Duration = Duration::from_secs(30);
/// The number of retries; then the caller gets the response.
const RETRIES: usize = 4;

/// Honours `Retry-After` of 429 and 503. The server has not started to process such a request, so writes are retried too.
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
        // With jitter, since many clients may have got the same value.
        Some(sleep(wait.mul_f64(rand::random_range(1.0..=1.25))))
    }

    fn clone_request(&mut self, request: &Request<Body>) -> Option<Request<Body>> {
        copy(request)
    }
}

/// A copy of a request; `None` if its body can be read only once.
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
