//! The phase in which the agent asks the hub to join, with the bootstrap kubeconfig.

use std::{ops::ControlFlow, path::Path, time::Duration};

use k8s_openapi::api::core::v1::Secret;
use ocm_runtime::{Change, Context, Informers, client::Endpoint, informer::WatchFilter, kubeconfig::Fingerprint};
use tokio::sync::watch as signal;
use tracing::{info, info_span, warn};

use super::{
    Agent, AgentConfig, AgentError, USER_AGENT,
    credentials::Credentials,
    hub_kubeconfig::{Connection, Invalid},
};
use crate::registration::{
    certificate::{Certificate, Reporting, Requests, Wanted},
    creating::{Creating, Introduction},
};

/// How often the bootstrap kubeconfig file is looked at.
const FILE_POLL: Duration = Duration::from_secs(10);

impl Agent {
    /// Ends when the credentials are valid, or when there is reason to begin again.
    pub(super) async fn bootstrap_phase(&self, cause: Invalid) -> Result<(), AgentError> {
        let changes = BootstrapChanges::from_now(self);
        let (path, connection) = self.bootstrap_connection(cause)?;
        let endpoint = Endpoint::load(&self.context, Some(path))?;
        let phase = self.context.child();
        let ask =
            info_span!("bootstrap", hub = connection.server).in_scope(|| self.ask(&phase, &endpoint, &connection));
        if ask.is_ok() {
            self.until_joined(changes).await;
        }
        phase.stop().await;
        ask
    }

    fn bootstrap_connection(&self, cause: Invalid) -> Result<(&Path, Connection), AgentError> {
        match (self.credentials.bootstrap_path(), self.credentials.bootstrap()) {
            (Some(path), Some(Ok(connection))) => Ok((path, connection)),
            (Some(path), Some(Err(source))) => {
                Err(AgentError::Bootstrap { path: path.clone(), cause, source: Box::new(source) })
            }
            _ => Err(AgentError::NoBootstrap { cause }),
        }
    }

    fn ask(&self, phase: &Context, endpoint: &Endpoint, connection: &Connection) -> Result<(), AgentError> {
        let wanted = self.wanted(Some(connection))?;
        let hub = Informers::new(endpoint.client(USER_AGENT)?, phase.clone());
        phase.run(Creating::new(hub.client().clone(), self.introduction()), 1);
        phase.run(
            Certificate::new(Requests::of(&hub, &self.names.cluster), &self.management, wanted, Reporting::Nobody),
            1,
        );
        info!("asking the hub to join");
        Ok(())
    }

    async fn until_joined(&self, changes: BootstrapChanges<'_>) {
        tokio::select! {
            () = self.context.ended() => {}
            () = changes.next() => {}
            () = valid(&self.credentials) => info!("the hub has issued a certificate"),
        }
    }

    fn introduction(&self) -> Introduction {
        Introduction {
            cluster: self.names.cluster.clone(),
            annotations: self.config.cluster_annotations.clone(),
            urls: self.config.spoke_external_server_urls.clone(),
            ca_bundle: self.config.spoke_ca_bundle.clone(),
        }
    }

    /// The agent's own certificate.
    pub(super) fn wanted(&self, connection: Option<&Connection>) -> Result<Wanted, AgentError> {
        let kubeconfig = connection.map(Connection::render).transpose()?;
        Ok(Wanted::own(&self.names, self.config.hub_secret(), kubeconfig, self.config.certificate_seconds()))
    }
}

async fn valid(credentials: &Credentials) {
    let mut changes = credentials.changes();
    // The sender lives as long as the credentials, so waiting for changes does not fail.
    while credentials.check().is_err() && changes.changed().await.is_ok() {}
}

/// Changes of the secret that the bootstrap kubeconfig comes from.
pub(super) struct BootstrapSecret {
    changed: signal::Sender<()>,
}

impl BootstrapSecret {
    pub(super) fn watch(management: &Informers, config: &AgentConfig) -> Self {
        let changed = signal::Sender::new(());
        let secrets =
            management.namespaced::<Secret>(&config.namespace, WatchFilter::named(&config.bootstrap_kubeconfig_secret));
        let tell = changed.clone();
        secrets.subscribe(move |change| {
            if is_another(change) {
                tell.send_replace(());
            }
            ControlFlow::Continue(())
        });
        Self { changed }
    }
}

/// Whether the agent should begin again: not because it sees the secret for the first time.
fn is_another(change: Change<'_, Secret>) -> bool {
    match change {
        Change::Added(_) => false,
        Change::Updated { old, new } => old.data != new.data,
        Change::Deleted(_) => true,
    }
}

/// Changes of the bootstrap kubeconfig and of the files that it names, since a moment.
pub(super) struct BootstrapChanges<'a> {
    secret: signal::Receiver<()>,
    file: Option<&'a Path>,
    known: Option<Fingerprint>,
}

impl<'a> BootstrapChanges<'a> {
    pub(super) fn from_now(agent: &'a Agent) -> Self {
        let file = agent.credentials.bootstrap_path().map(AsRef::as_ref);
        Self { secret: agent.bootstrap_secret.changed.subscribe(), file, known: fingerprint(file) }
    }

    /// Waits for the next one.
    pub(super) async fn next(mut self) {
        tokio::select! {
            _ = self.secret.changed() => warn!("the bootstrap secret has changed, starting over"),
            () = file_changed(self.file, self.known) => {
                warn!("the bootstrap kubeconfig, or a file that it names, has changed, starting over");
            }
        }
    }
}

fn fingerprint(file: Option<&Path>) -> Option<Fingerprint> {
    Fingerprint::of(file?, None).ok()
}

/// Files that cannot be read are no change: they may be half written.
async fn file_changed(file: Option<&Path>, known: Option<Fingerprint>) {
    while fingerprint(file).is_none_or(|found| Some(found) == known) {
        tokio::time::sleep(FILE_POLL).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use k8s_openapi::ByteString;

    use super::*;

    fn secret(version: &str, token: &str) -> Arc<Secret> {
        let mut secret = Secret::default();
        secret.metadata.resource_version = Some(version.into());
        secret.data = Some([("token".to_owned(), ByteString(token.into()))].into());
        Arc::new(secret)
    }

    #[test]
    fn other_content_or_none_is_reason_to_begin_again() {
        let (old, same, new) = (secret("1", "a"), secret("2", "a"), secret("3", "b"));
        assert!(!is_another(Change::Added(&old)));
        assert!(!is_another(Change::Updated { old: &old, new: &same }));
        assert!(is_another(Change::Updated { old: &old, new: &new }));
        assert!(is_another(Change::Deleted(&old)));
    }
}
