//! The listener for probes and metrics: `/healthz`, `/livez`, `/readyz`, `/metrics`, over HTTPS. A
//! server of something else serves its own [`Router`] the same way, by [`serve_router`].
//!
//! Probes are open. Metrics are for those whom the API server knows and lets `get` the non-resource
//! URL `/metrics`, by [`Access`]. The certificate is one that the process makes for itself, or one
//! from files, which is taken up again whenever they change ([`Tls`]).

mod access;
mod certificate;
mod listener;
mod tls;

use std::{fmt::Write as _, net::SocketAddr, sync::Arc};

use axum::{
    Router,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse as _, Response},
    routing::get,
};
use kube::Client;
use tokio::net::TcpListener;
use tracing::info;

use self::access::Refusal;
pub use self::{
    access::Access,
    certificate::CertificateError,
    tls::{Tls, TlsError, TlsOptions},
};
use crate::context::Context;

/// The listener could not be opened.
#[derive(Debug, thiserror::Error)]
#[error("failed to listen on {address}")]
pub struct ListenError {
    address: String,
    #[source]
    source: std::io::Error,
}

/// Serves probes and metrics of `context` on `address` until the context ends; returns the address
/// it listens on, which tells the port when `address` leaves it open. `client` is asked who may see
/// the metrics.
///
/// # Errors
/// [`ListenError`] when the address is taken or not one of this machine.
pub async fn serve(context: &Context, address: &str, tls: &Tls, client: Client) -> Result<SocketAddr, ListenError> {
    let router = router(context.clone(), Access::new(client));
    serve_router(context, address, Some(tls), router, "/healthz, /livez, /readyz and /metrics").await
}

/// Serves `router`, called `what` in the log, on `address` until the context ends: over HTTPS, or
/// without `tls` over HTTP. Requests in progress are finished then, within ten seconds. Returns the
/// address it listens on.
///
/// # Errors
/// [`ListenError`] when the address is taken or not one of this machine.
pub async fn serve_router(
    context: &Context,
    address: &str,
    tls: Option<&Tls>,
    router: Router,
    what: &'static str,
) -> Result<SocketAddr, ListenError> {
    let (tcp, local) = bind(address).await?;
    info!(address = %local, "serving {what}");
    listener::serve(context, tcp, tls, router);
    Ok(local)
}

async fn bind(address: &str) -> Result<(TcpListener, SocketAddr), ListenError> {
    let failed = |source| ListenError { address: address.into(), source };
    let tcp = TcpListener::bind(address).await.map_err(failed)?;
    let local = tcp.local_addr().map_err(failed)?;
    Ok((tcp, local))
}

/// The routes, for tests and for servers that have more to serve.
pub fn router(context: Context, access: Access) -> Router {
    let metrics = Router::new().route("/metrics", get(metrics)).with_state((context.clone(), Arc::new(access)));
    probes(context).merge(metrics)
}

/// The routes of the probes alone.
pub fn probes(context: Context) -> Router {
    Router::new()
        .route("/healthz", get(healthz))
        .route("/livez", get(healthz))
        .route("/readyz", get(readyz))
        .with_state(context)
}

/// The route of the metrics alone, open to all: for a process that cannot ask an API server who may
/// see them.
pub fn open_metrics(context: Context) -> Router {
    let answer = |State(context): State<Context>| async move { encoded(&context) };
    Router::new().route("/metrics", get(answer)).with_state(context)
}

async fn healthz(State(context): State<Context>) -> (StatusCode, String) {
    let mut report = String::new();
    let mut healthy = true;
    for (name, answer) in context.health().checks() {
        match answer {
            Ok(()) => _ = writeln!(report, "[+] {name} ok"),
            Err(cause) => {
                healthy = false;
                _ = writeln!(report, "[-] {name} failed: {cause}");
            }
        }
    }
    answer(healthy, report)
}

async fn readyz(State(context): State<Context>) -> (StatusCode, String) {
    let awaited = context.health().awaited();
    let mut report = String::new();
    for what in &awaited {
        _ = writeln!(report, "[-] waiting for the first {what}");
    }
    answer(awaited.is_empty(), report)
}

fn answer(good: bool, report: String) -> (StatusCode, String) {
    match good {
        true => (StatusCode::OK, report + "ok\n"),
        false => (StatusCode::SERVICE_UNAVAILABLE, report + "failed\n"),
    }
}

async fn metrics(State((context, access)): State<(Context, Arc<Access>)>, headers: HeaderMap) -> Response {
    match access.check(bearer_token(&headers), "/metrics").await {
        Ok(()) => encoded(&context),
        Err(refusal @ Refusal::Unknown(_)) => {
            let challenge = [(header::WWW_AUTHENTICATE, "Bearer")];
            (StatusCode::UNAUTHORIZED, challenge, format!("{refusal}\n")).into_response()
        }
        Err(refusal @ Refusal::Forbidden(_)) => (StatusCode::FORBIDDEN, format!("{refusal}\n")).into_response(),
    }
}

fn encoded(context: &Context) -> Response {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], context.metrics().encode()).into_response()
}

fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}
