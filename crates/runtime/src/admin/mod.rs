//! The listener for probes and metrics: `/healthz`, `/livez`, `/readyz`, `/metrics`.

use std::{fmt::Write as _, net::SocketAddr};

use axum::{Router, extract::State, http::StatusCode, routing::get};
use tokio::net::TcpListener;
use tracing::{error, info};

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
/// it listens on, which tells the port when `address` leaves it open.
///
/// # Errors
/// [`ListenError`] when the address is taken or not one of this machine.
pub async fn serve(context: &Context, address: &str) -> Result<SocketAddr, ListenError> {
    let failed = |source| ListenError { address: address.into(), source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let local = listener.local_addr().map_err(failed)?;
    info!(address = %local, "serving /healthz, /readyz and /metrics");
    let router = router(context.clone());
    context.spawn(async move {
        if let Err(error) = axum::serve(listener, router).await {
            error!(%error, "the listener for probes and metrics ended");
        }
    });
    Ok(local)
}

/// The routes, for tests and for servers that have more to serve.
pub fn router(context: Context) -> Router {
    Router::new()
        .route("/healthz", get(healthz))
        .route("/livez", get(healthz))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .with_state(context)
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

async fn metrics(State(context): State<Context>) -> ([(&'static str, &'static str); 1], String) {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([("content-type", kind)], context.metrics().encode())
}
