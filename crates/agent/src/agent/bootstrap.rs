//! The bootstrap phase: the agent joins the hub with the bootstrap kubeconfig.

use std::{ops::ControlFlow, path::Path, time::Duration};

use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use ocm_runtime::{
    Change, Context, Informers,
    client::{Endpoint, probe},
    informer::WatchFilter,
    kubeconfig::Fingerprint,
    process::clock_difference,
};
use tokio::sync::watch as signal;
use tracing::{Instrument as _, info, info_span, warn};

use super::{
    Agent, AgentConfig, AgentError, USER_AGENT,
    credentials::{Credentials, HUB_CERTIFICATE},
    hub_kubeconfig::{Connection, Invalid},
    hubs::Leave,
};
use crate::registration::{
    certificate::{Certificate, DesiredCertificate, Reporter, Requests},
    cluster_creation::{ClusterCreation, DesiredCluster},
    hub_contact::HubContact,
    join_problem::JoinProblem,
};

/// How often the files of the bootstrap kubeconfig are polled.
const FILE_POLL: Duration = Duration::from_secs(10);

impl Agent {
    /// Ends when the credentials are valid, when the bootstrap kubeconfig has changed, or when another hub is to be selected.
    pub(super) async fn bootstrap_phase(&self, cause: Invalid) -> Result<(), AgentError> {
        let changes = BootstrapChanges::from_now(self);
        if let Invalid::Expired(at) = cause {
            self.context.metrics().certificate_expires(HUB_CERTIFICATE, at);
        }
        let (path, connection) = self.bootstrap_connection(cause)?;
        let endpoint = Endpoint::load(&self.context, Some(path))?;
        connection.left_out.iter().for_each(|field| log_left_out(path, field));
        let (phase, leave) = (self.context.child(), Leave::default());
        let started = info_span!("bootstrap", hub = connection.server)
            .in_scope(|| self.start(&phase, &endpoint, &connection, &leave));
        if started.is_ok() {
            self.until_joined(changes, &leave).await;
        }
        phase.stop().await;
        started
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

    fn start(
        &self,
        phase: &Context,
        endpoint: &Endpoint,
        connection: &Connection,
        leave: &Leave,
    ) -> Result<(), AgentError> {
        let mut desired = self.desired_certificate(Some(connection))?;
        desired.is_recovery = self.has_joined(connection);
        let hub = Informers::new(endpoint.client(USER_AGENT)?, phase.clone());
        phase.spawn(compare_clocks(endpoint.clone(), hub.client().clone()).in_current_span());
        phase.run(ClusterCreation::new(endpoint, hub.client(), self.desired_cluster(connection)), 1);
        let requests = Requests::of(&hub, &self.names.cluster);
        phase.spawn(explain_missing_right(endpoint.clone(), requests.clone()).in_current_span());
        phase.run(Certificate::new(requests, &self.management, desired, Reporter::Disabled), 1);
        if self.config.selects_hub() {
            let (cluster, hubs, clock) = (&self.names.cluster, &self.config.hubs, phase.clock());
            phase.run(HubContact::by_answers(hub.client(), cluster, hubs, clock, leave.clone()), 1);
        }
        info!("joining the hub");
        Ok(())
    }

    /// Whether the credentials that are no longer valid were for this hub.
    fn has_joined(&self, connection: &Connection) -> bool {
        let own = Connection::read(&self.credentials.kubeconfig());
        own.is_ok_and(|own| own.server == connection.server)
    }

    async fn until_joined(&self, changes: BootstrapChanges<'_>, leave: &Leave) {
        tokio::select! {
            () = self.context.ended() => {}
            () = changes.next() => {}
            reason = leave.asked() => warn!(reason, "leaving this hub, selecting again"),
            () = until_valid(&self.credentials) => info!("the hub has issued a certificate"),
        }
    }

    fn desired_cluster(&self, hub: &Connection) -> DesiredCluster {
        DesiredCluster {
            cluster: self.names.cluster.clone(),
            annotations: self.config.cluster_annotations.clone(),
            urls: self.config.spoke_external_server_urls.clone(),
            ca_bundle: self.config.spoke_ca_bundle.clone(),
            has_joined: self.credentials.have_been_for(hub),
        }
    }

    /// The desired certificate of the agent itself.
    pub(super) fn desired_certificate(
        &self,
        connection: Option<&Connection>,
    ) -> Result<DesiredCertificate, AgentError> {
        let kubeconfig = connection.map(Connection::render).transpose()?;
        let (secret, seconds) = (self.config.hub_secret(), self.config.certificate_seconds());
        let own = DesiredCertificate::own(&self.names, secret, kubeconfig, seconds);
        Ok(DesiredCertificate { hub: connection.cloned().map(Box::new), ..own })
    }
}

/// The agent bootstraps with such a field, and then has to do without it.
fn log_left_out(path: &Path, field: &str) {
    warn!(
        bootstrap_kubeconfig = %path.display(),
        "the agent's own kubeconfig for the hub does not take over {field}, as in OCM: give a server address that is in the \
         certificate of the hub's API server, and the authority that issued it"
    );
}

/// Logs how far the clocks of this machine and of the hub differ, as soon as the hub answers: with clocks that differ by hours,
/// certificates and tokens are refused as expired or not valid yet.
async fn compare_clocks(hub: Endpoint, client: Client) {
    loop {
        if let Ok(answer) = probe(&client, hub.clock()).await {
            if let Some(difference) = answer.ahead().and_then(clock_difference) {
                warn!(hub = %hub.server(), "{difference}: set both clocks, such as with NTP");
            }
            return;
        }
        tokio::time::sleep(FILE_POLL).await;
    }
}

/// Logs that the right to read certificate requests is missing, if that is why they are not read: without it, the agent does
/// not request a certificate.
async fn explain_missing_right(hub: Endpoint, requests: Requests) {
    let mut logged = None;
    while tokio::time::timeout(FILE_POLL, requests.synced()).await.is_err() {
        let Err(error) = requests.check_right().await else { continue };
        let problem = JoinProblem::of(&hub, &error);
        if matches!(problem, JoinProblem::MissingRight(_)) && logged.as_ref() != Some(&problem) {
            warn!("cannot request a certificate from the hub: {problem}");
            logged = Some(problem);
        }
    }
}

async fn until_valid(credentials: &Credentials) {
    let mut changes = credentials.changes();
    // The sender lives as long as the credentials, so `changed` does not fail.
    while credentials.check().is_err() && changes.changed().await.is_ok() {
        if let Err(cause) = credentials.check() {
            warn!(%cause, "the new credentials for the hub cannot be used");
        }
    }
}

/// Notifies of changes of the secret with the bootstrap kubeconfig. Cheap to clone.
#[derive(Clone)]
pub(super) struct BootstrapSecret {
    changed: signal::Sender<()>,
}

impl BootstrapSecret {
    pub(super) fn watch(management: &Informers, config: &AgentConfig) -> Self {
        let changed = signal::Sender::new(());
        let secrets =
            management.namespaced::<Secret>(&config.namespace, WatchFilter::named(&config.bootstrap_kubeconfig_secret));
        let sender = changed.clone();
        secrets.subscribe(move |change| {
            if is_changed(change) {
                sender.send_replace(());
            }
            ControlFlow::Continue(())
        });
        Self { changed }
    }
}

/// Whether the agent must bootstrap again: not when the secret is first seen.
fn is_changed(change: Change<'_, Secret>) -> bool {
    match change {
        Change::Added(_) => false,
        Change::Updated { old, new } => old.data != new.data,
        Change::Deleted(_) => true,
    }
}

/// Notifies of changes of the bootstrap kubeconfig and of the files that it names, since its creation.
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

    /// Waits for the next change.
    pub(super) async fn next(mut self) {
        tokio::select! {
            _ = self.secret.changed() => warn!("the bootstrap secret has changed, starting over"),
            () = file_changed(self.file, self.known) => {
                warn!("the bootstrap kubeconfig, or a file that it names, has changed, starting over");
            }
        }
    }
}

pub(super) fn fingerprint(file: Option<&Path>) -> Option<Fingerprint> {
    Fingerprint::of(file?, None).ok()
}

/// Waits until the kubeconfig, or a file that it names, has changed. One that cannot be read has not: it may be incomplete.
pub(super) async fn file_changed(file: Option<&Path>, known: Option<Fingerprint>) {
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
    fn other_content_or_none_makes_the_agent_bootstrap_again() {
        let (old, same, new) = (secret("1", "a"), secret("2", "a"), secret("3", "b"));
        assert!(!is_changed(Change::Added(&old)));
        assert!(!is_changed(Change::Updated { old: &old, new: &same }));
        assert!(is_changed(Change::Updated { old: &old, new: &new }));
        assert!(is_changed(Change::Deleted(&old)));
    }
}
