//! The listener for probes and metrics: `/healthz`, `/livez`, `/readyz`, `/metrics`, over HTTPS.
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
use tracing::{error, info};

pub use self::{
    access::Access,
    certificate::CertificateError,
    tls::{Tls, TlsError, TlsOptions},
};
use self::{access::Refusal, listener::TlsListener};
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
    let failed = |source| ListenError { address: address.into(), source };
    let tcp = TcpListener::bind(address).await.map_err(failed)?;
    let local = tcp.local_addr().map_err(failed)?;
    info!(address = %local, "serving /healthz, /livez, /readyz and /metrics");
    let router = router(context.clone(), Access::new(client));
    let listener = TlsListener::start(context, tcp, local, tls);
    context.spawn(async move {
        if let Err(error) = axum::serve(listener, router).await {
            error!(%error, "the listener for probes and metrics ended");
        }
    });
    Ok(local)
}

/// The routes, for tests and for servers that have more to serve.
pub fn router(context: Context, access: Access) -> Router {
    let probes = Router::new()
        .route("/healthz", get(healthz))
        .route("/livez", get(healthz))
        .route("/readyz", get(readyz))
        .with_state(context.clone());
    probes.merge(Router::new().route("/metrics", get(metrics)).with_state((context, Arc::new(access))))
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
        Ok(()) => {
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            ([(header::CONTENT_TYPE, kind)], context.metrics().encode()).into_response()
        }
        Err(refusal @ Refusal::Unknown(_)) => {
            let challenge = [(header::WWW_AUTHENTICATE, "Bearer")];
            (StatusCode::UNAUTHORIZED, challenge, format!("{refusal}\n")).into_response()
        }
        Err(refusal @ Refusal::Forbidden(_)) => (StatusCode::FORBIDDEN, format!("{refusal}\n")).into_response(),
    }
}

fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}
