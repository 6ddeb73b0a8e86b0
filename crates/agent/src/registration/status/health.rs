//! Whether the managed cluster's API server is healthy.

use std::time::Duration;

use kube::Client;
use ocm_runtime::error::{chain, status_of};

/// The time limit of a request.
const PATIENCE: Duration = Duration::from_secs(10);

/// The health of the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    Ok,
    Failing {
        /// The HTTP status code; 0 without an answer.
        code: u16,
        /// The body of the response, or the error.
        cause: String,
    },
}

/// Requests `/livez`, or `/healthz` if that is not found or not allowed.
pub(crate) async fn look(managed: &Client) -> Health {
    match ask(managed, "/livez").await {
        Health::Failing { code: 403 | 404, .. } => ask(managed, "/healthz").await,
        health => health,
    }
}

async fn ask(managed: &Client, path: &str) -> Health {
    let Ok(request) = http::Request::get(path).body(Vec::new()) else {
        return Health::Failing { code: 0, cause: format!("{path} is not a path") };
    };
    match tokio::time::timeout(PATIENCE, managed.request_text(request)).await {
        Ok(Ok(_)) => Health::Ok,
        Ok(Err(error)) => failing(&error),
        Err(_) => Health::Failing { code: 0, cause: format!("no answer to {path} within {PATIENCE:?}") },
    }
}

fn failing(error: &kube::Error) -> Health {
    match status_of(error) {
        Some(status) => Health::Failing { code: status.code, cause: status.message.clone() },
        None => Health::Failing { code: 0, cause: chain(error) },
    }
}
