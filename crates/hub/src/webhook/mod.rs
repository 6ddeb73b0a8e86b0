//! The server that API servers ask whether a change may be made, and to convert add-ons from one version to another.
//!
//! It keeps nothing. Everyone who can reach it can have objects converted and changes judged: an answer says what a user may
//! do, and no more than the policies and RBAC rules that it is made of.

pub mod admission;
pub mod configurations;
pub mod conversion;
mod limits;
pub mod review;

use std::net::SocketAddr;

use axum::{
    Router,
    extract::{Request, State},
    http::{StatusCode, header},
    response::{IntoResponse as _, Response},
    routing::post,
};
use ocm_api::webhooks::CONVERT_PATH;
use ocm_runtime::{
    Context,
    admin::{self, ListenError, Tls},
};
use tokio::time::timeout;
use tracing::warn;

pub use self::limits::{LARGEST_ADMISSION, LARGEST_CONVERSION};
use self::{
    admission::{Admission, Webhook},
    limits::{Limits, PATIENCE, Received},
    review::{Answer, ReviewError},
};

/// Where the webhook listens, and what it asks; ports may be 0 for a free one.
#[derive(Clone, Debug)]
pub struct WebhookConfig {
    /// Address for API servers, over HTTPS.
    pub address: String,
    /// How to speak TLS there.
    pub tls: Tls,
    /// Address for probes (`/healthz`, `/livez`, `/readyz`), over HTTP; none for no probes.
    pub probes: Option<String>,
    /// Address for `/metrics`, over HTTP; none for no metrics.
    pub metrics: Option<String>,
    /// What decides on admission.
    pub admission: Admission,
}

/// Starts the webhook, which runs until `context` ends and finishes the requests in progress. Returns the address at which
/// it answers API servers.
///
/// # Errors
/// [`ListenError`] when an address is taken or not one of this machine.
pub async fn serve(context: &Context, config: &WebhookConfig) -> Result<SocketAddr, ListenError> {
    if let Some(address) = &config.probes {
        admin::serve_router(context, address, None, admin::probes(context.clone()), "probes").await?;
    }
    if let Some(address) = &config.metrics {
        admin::serve_router(context, address, None, admin::open_metrics(context.clone()), "metrics").await?;
    }
    let router = router(context.clone(), config.admission.clone());
    admin::serve_router(context, &config.address, Some(&config.tls), router, "webhooks").await
}

/// What the routes share.
#[derive(Clone)]
struct Server {
    context: Context,
    admission: Admission,
    limits: Limits,
}

fn router(context: Context, admission: Admission) -> Router {
    let mut router = Router::new().route(CONVERT_PATH, post(convert));
    for webhook in admission.webhooks() {
        router = router.route(webhook.path(), post(move |server, request| admit(server, webhook, request)));
    }
    router.with_state(Server { context, admission, limits: Limits::default() })
}

async fn convert(State(server): State<Server>, request: Request) -> Response {
    let answer = match server.limits.read(request, LARGEST_CONVERSION).await {
        Ok(received) => conversion::answer(&received.body).map_err(Refusal::of),
        Err(refusal) => Err(refusal),
    };
    server.respond(CONVERT_PATH, answer)
}

async fn admit(State(server): State<Server>, webhook: Webhook, request: Request) -> Response {
    let answer = match server.limits.read(request, LARGEST_ADMISSION).await {
        Ok(received) => server.decide(webhook, &received).await,
        Err(refusal) => Err(refusal),
    };
    server.respond(webhook.path(), answer)
}

impl Server {
    async fn decide(&self, webhook: Webhook, received: &Received) -> Result<Answer, Refusal> {
        let answer = self.admission.answer(webhook, &received.body, self.context.clock().now());
        let Ok(answer) = timeout(PATIENCE, answer).await else {
            let cause = format!("the hub's API server did not say within {} s who may do what", PATIENCE.as_secs());
            return Err(Refusal { code: StatusCode::GATEWAY_TIMEOUT, cause });
        };
        answer.map_err(Refusal::of)
    }

    fn respond(&self, path: &'static str, answer: Result<Answer, Refusal>) -> Response {
        self.context.metrics().webhook_answered(path, result(&answer));
        match answer {
            Ok(answer) => respond(path, answer),
            Err(refusal) => refusal.respond(),
        }
    }
}

/// Why a request gets no review as its answer.
#[derive(Debug)]
struct Refusal {
    code: StatusCode,
    cause: String,
}

impl Refusal {
    #[allow(clippy::needless_pass_by_value, reason = "for map_err")]
    fn of(error: ReviewError) -> Self {
        Self { code: StatusCode::BAD_REQUEST, cause: error.to_string() }
    }

    fn respond(self) -> Response {
        warn!(cause = self.cause, "a request was refused");
        (self.code, self.cause + "\n").into_response()
    }
}

/// How an answer counts.
fn result(answer: &Result<Answer, Refusal>) -> &'static str {
    match answer {
        Ok(Answer { failure: None, .. }) => "success",
        Ok(_) => "failure",
        Err(_) => "refused",
    }
}

fn respond(path: &str, answer: Answer) -> Response {
    if let Some(failure) = answer.failure {
        warn!(path, failure, "refused a change or a conversion");
    }
    ([(header::CONTENT_TYPE, "application/json")], answer.body).into_response()
}
