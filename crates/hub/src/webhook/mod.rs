//! The server that API servers ask to convert add-ons from one version to another.
//!
//! It needs no identity and keeps nothing: everyone who can reach it can have objects converted, and learns nothing else.

pub mod review;

use std::{net::SocketAddr, time::Duration};

use axum::{
    Router,
    body::Bytes,
    extract::{DefaultBodyLimit, FromRequest as _, Request, State, rejection::BytesRejection},
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

use self::review::Answer;

/// How large a request may be: many times the largest object that etcd stores.
pub const LARGEST_REQUEST: usize = 16 << 20;

/// How long a request may take to arrive; API servers wait as long for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Where the webhook listens; ports may be 0 for a free one.
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
    admin::serve_router(context, &config.address, Some(&config.tls), router(context.clone()), "webhooks").await
}

fn router(context: Context) -> Router {
    let limit = DefaultBodyLimit::max(LARGEST_REQUEST);
    Router::new().route(CONVERT_PATH, post(convert)).layer(limit).with_state(context)
}

async fn convert(State(context): State<Context>, request: Request) -> Response {
    let answer = read(request).await.and_then(|body| {
        review::answer(&body).map_err(|error| Refusal { code: StatusCode::BAD_REQUEST, cause: error.to_string() })
    });
    context.metrics().webhook_answered(CONVERT_PATH, result(&answer));
    answer.map_or_else(Refusal::respond, respond)
}

/// A request that is no question.
struct Refusal {
    code: StatusCode,
    cause: String,
}

impl Refusal {
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

fn respond(answer: Answer) -> Response {
    if let Some(failure) = answer.failure {
        warn!(failure, "an object was not converted");
    }
    ([(header::CONTENT_TYPE, "application/json")], answer.body).into_response()
}

async fn read(request: Request) -> Result<Bytes, Refusal> {
    match timeout(PATIENCE, Bytes::from_request(request, &())).await {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(rejection)) => Err(Refusal { code: rejection.status(), cause: unreadable(&rejection) }),
        Err(_) => {
            let cause = format!("the request did not arrive within {} s", PATIENCE.as_secs());
            Err(Refusal { code: StatusCode::REQUEST_TIMEOUT, cause })
        }
    }
}

fn unreadable(rejection: &BytesRejection) -> String {
    match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => {
            format!("the request is larger than {} MiB: ask for fewer objects at a time", LARGEST_REQUEST >> 20)
        }
        _ => rejection.body_text(),
    }
}
