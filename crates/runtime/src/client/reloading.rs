//! Reloads credentials from files that change, such as those of a mounted secret.

use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};
use tracing::{error, info, warn};

use crate::{
    client::{ClientError, Endpoint},
    error::chain,
};

/// How often the files are read. A secret takes about a minute to arrive in a pod.
const PERIOD: Duration = Duration::from_secs(20);

/// Reloads an endpoint whenever its kubeconfig changes. An error is logged once, and reloading is tried again.
pub(crate) async fn follow(endpoint: Endpoint) {
    let mut ticks = interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut problem = None;
    loop {
        ticks.tick().await;
        problem = reload(&endpoint, problem).await;
    }
}

/// Returns the current problem, and logs it unless it equals `known`.
async fn reload(endpoint: &Endpoint, known: Option<String>) -> Option<String> {
    let error = match endpoint.reload().await {
        Ok(true) => {
            log_reload(endpoint);
            return None;
        }
        Ok(false) => return None,
        Err(error) => error,
    };
    let problem = chain(&error);
    if known.as_ref() != Some(&problem) {
        refuse(endpoint, &error, &problem);
    }
    Some(problem)
}

fn log_reload(endpoint: &Endpoint) {
    if let Some((path, context)) = endpoint.kubeconfig() {
        info!(kubeconfig = %path.display(), context, "reloaded the credentials");
    }
}

fn refuse(endpoint: &Endpoint, error: &ClientError, problem: &str) {
    let (credentials, server) = (endpoint.origin(), endpoint.server());
    match error {
        ClientError::OtherServer { .. } => {
            error!(credentials, %server, error = problem, "refused new credentials, using the old ones");
        }
        ClientError::Kubeconfig(cause) if cause.is_missing_context() => {
            error!(credentials, %server, error = problem,
                "the kubeconfig no longer has the context that this process was started with, using the old \
                 credentials; put the context back, or restart the process to use another one");
        }
        // Certificate and key may not match while both are being replaced.
        _ => {
            warn!(credentials, %server, error = problem, "cannot use the new credentials yet, using the old ones");
        }
    }
}

#[cfg(test)]
mod tests;
