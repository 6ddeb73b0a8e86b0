//! Several hubs (feature gate MultipleHubs): the agent selects one, and leaves it for another one when it is refused there or
//! can no longer reach it.
//!
//! ```text
//!  select ──> bootstrap, connected ──> select ...        no usable hub: retry with back-off
//!                     │
//!                     └── not accepted, no contact for too long, credentials expired, bootstrap kubeconfig changed
//! ```
//!
//! The present hub is the one of the agent's own kubeconfig; it is kept as long as it is usable, wherever it is in the list.
//! Each hub is asked with the credentials that are for it only: the agent's own if they are for this hub, or else those of
//! its bootstrap kubeconfig. What the agent holds for a former hub is never sent to another one; it bootstraps there.

mod candidate;
mod check;
mod leave;
mod settings;
mod unusable;

use std::{fmt::Write as _, path::PathBuf};

use futures::future::select_all;
use ocm_runtime::{client::Endpoint, error::chain};
use tracing::{info, warn};

pub(crate) use self::leave::{Leave, StayOrLeave};
pub use self::settings::Hubs;
use self::{candidate::Candidate, unusable::Unusable};
use super::{
    Agent,
    bootstrap::{file_changed, fingerprint},
    hub_kubeconfig::Connection,
};

/// The hub that was selected.
#[derive(Clone, Debug)]
pub(super) struct SelectedHub {
    pub(super) bootstrap: PathBuf,
    pub(super) connection: Connection,
}

/// A hub that cannot be used, and why.
#[derive(Debug)]
struct Refusal {
    hub: String,
    cause: Unusable,
}

impl Agent {
    /// Waits for a usable hub, and says so in the log and in the readiness of the process.
    pub(super) async fn select_hub(&self) -> SelectedHub {
        let mut delays = self.config.hubs.retry.delays();
        let mut waiting = None;
        loop {
            let known: Vec<_> = self.bootstrap_files().map(|path| (path, fingerprint(Some(path)))).collect();
            let refusals = match self.first_usable().await {
                Ok(hub) => return hub,
                Err(refusals) => describe(&refusals),
            };
            let retry_in = delays.next_delay();
            warn!(?retry_in, "no hub can be used, retrying. {refusals}");
            drop(waiting.replace(self.context.health().awaiting(format!("a usable hub. {refusals}"))));
            let changes = known.into_iter().map(|(path, known)| Box::pin(file_changed(Some(path), known)));
            tokio::select! {
                () = tokio::time::sleep(retry_in) => {}
                _ = select_all(changes) => info!("a bootstrap kubeconfig has changed, selecting a hub again"),
            }
        }
    }

    fn bootstrap_files(&self) -> impl Iterator<Item = &std::path::Path> {
        self.config.hubs.bootstrap_kubeconfigs.iter().map(PathBuf::as_path)
    }

    /// The first usable hub: the present one if it is usable, else in the order of the list.
    async fn first_usable(&self) -> Result<SelectedHub, Vec<Refusal>> {
        let present = Connection::read(&self.credentials.kubeconfig()).ok().map(|own| own.server);
        let candidates =
            candidate::in_order(candidate::read(&self.config.hubs.bootstrap_kubeconfigs), present.as_deref());
        let mut refusals = Vec::new();
        for candidate in candidates {
            let hub = candidate.to_string();
            match self.usable(candidate).await {
                Ok(selected) => {
                    log_selected(&hub, &selected, present.as_deref(), &refusals);
                    return Ok(selected);
                }
                Err(cause) => refusals.push(Refusal { hub, cause }),
            }
        }
        Err(refusals)
    }

    async fn usable(&self, candidate: Candidate) -> Result<SelectedHub, Unusable> {
        let hub = SelectedHub { bootstrap: candidate.path, connection: candidate.connection? };
        if !self.works_with_own_credentials(&hub).await {
            let endpoint = Endpoint::load(&self.context, Some(&hub.bootstrap))?;
            check::can_join(&endpoint, &self.names.cluster).await?;
        }
        Ok(hub)
    }

    /// Whether the agent has credentials for this hub, and is accepted with them. It then does not need those of the
    /// bootstrap kubeconfig, which are often short-lived.
    async fn works_with_own_credentials(&self, hub: &SelectedHub) -> bool {
        let credentials = self.credentials.for_hub(hub.clone());
        let own = credentials.check().ok().and_then(|_| credentials.load().ok());
        match own {
            Some((own, endpoint)) if own.server == hub.connection.server => {
                check::is_accepted(&endpoint, &self.names.cluster).await.is_ok()
            }
            _ => false,
        }
    }
}

fn log_selected(hub: &str, selected: &SelectedHub, present: Option<&str>, refusals: &[Refusal]) {
    if !refusals.is_empty() {
        warn!("hubs that cannot be used: {}", describe(refusals));
    }
    match present.filter(|present| *present != selected.connection.server) {
        Some(former) => info!(former, "selected the hub {hub}, where this agent needs new credentials"),
        None => info!("selected the hub {hub}"),
    }
}

/// Each hub with the reason, on one line.
fn describe(refusals: &[Refusal]) -> String {
    let mut line = String::new();
    for (index, Refusal { hub, cause }) in refusals.iter().enumerate() {
        let separator = if index == 0 { "" } else { "; " };
        let _ = write!(line, "{separator}{}. {hub}: {}", index + 1, chain(cause));
    }
    line
}
