//! The server that API servers ask to convert add-ons from one version to another.
//!
//! It needs no identity and keeps nothing: whoever can reach it can have objects converted, and learns nothing.

pub mod review;

use std::{net::SocketAddr, time::Duration};

use axum::{
    Router,
    body::Bytes,
    extract::{DefaultBodyLimit, State, rejection::BytesRejection},
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

async fn convert(State(context): State<Context>, request: axum::extract::Request) -> Response {
    let answer = match timeout(PATIENCE, body(request)).await {
        Ok(Ok(body)) => review::answer(&body).map_err(|error| (StatusCode::BAD_REQUEST, error.to_string())),
        Ok(Err(rejection)) => Err((rejection.status(), unreadable(&rejection))),
        Err(_) => Err((StatusCode::REQUEST_TIMEOUT, format!("the request did not arrive within {PATIENCE:?}"))),
    };
    let result = match &answer {
        Ok(answer) => answer.failure.as_ref().map_or("success", |_| "failure"),
        Err(_) => "refused",
    };
    context.metrics().webhook_answered(CONVERT_PATH, result);
    match answer {
        Ok(answer) => {
            if let Some(failure) = answer.failure {
                warn!(failure, "an object was not converted");
            }
            ([(header::CONTENT_TYPE, "application/json")], answer.body).into_response()
        }
        Err((code, cause)) => {
            warn!(cause, "a request was refused");
            (code, cause + "\n").into_response()
        }
    }
}

async fn body(request: axum::extract::Request) -> Result<Bytes, BytesRejection> {
    use axum::extract::FromRequest as _;
    Bytes::from_request(request, &()).await
}

fn unreadable(rejection: &BytesRejection) -> String {
    match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => {
            format!("the request is larger than {} MiB: ask for fewer objects at a time", LARGEST_REQUEST >> 20)
        }
        _ => rejection.body_text(),
    }
}
