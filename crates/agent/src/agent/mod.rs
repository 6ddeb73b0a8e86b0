//! Runs an agent: one phase after another, until its context ends.
//!
//! ```text
//!            Secret hub-kubeconfig-secret ──> files in a folder (credentials)
//!                     ^                               │ valid?
//!   bootstrap: ManagedCluster,        <──── no ─────┼──── yes ────>  connected: certificate,
//!                     └── ends when they are valid ───┘                lease, status, work
//!                                                     ^                      │
//!                                                     └── expired, or bootstrap changed
//! ```
//!
//! OCM's agent exits to bootstrap again; this one starts the next phase in the same process. An agent with several hubs
//! selects one first (`hubs`).

mod bootstrap;
mod config;
mod connected;
mod credentials;
mod files;
#[cfg(fuzzing)]
pub mod fuzzing;
mod hub_ca;
mod hub_kubeconfig;
mod hubs;
pub mod names;
mod work_only;

use std::{path::PathBuf, time::Duration};

use ocm_runtime::{
    Backoff, Context, Informers,
    client::{ClientError, Endpoint},
    error::chain,
    kubeconfig::KubeconfigError,
    write,
};
use tracing::{Instrument as _, info, info_span, warn};

use self::{
    bootstrap::BootstrapSecret,
    credentials::{Credentials, HubKubeconfigFiles},
    files::HubDir,
};
pub use self::{
    config::{AgentConfig, Components, OptionError, known_gates},
    files::FilesError,
    hub_kubeconfig::{ConnectionError, Invalid},
    hubs::Hubs,
    names::{Names, NamesError},
};
pub(crate) use self::{
    hub_ca::FollowedCa,
    hub_kubeconfig::Connection,
    hubs::{Leave, StayOrLeave},
};

/// The user agent; the part before the slash is the field manager.
pub(crate) const USER_AGENT: &str = concat!("ocm-agent/", env!("CARGO_PKG_VERSION"));
/// After how long the first read of the agent's secret is retried.
const RETRY: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(5));

/// Why an agent ended.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// An option is invalid.
    #[error(transparent)]
    Option(#[from] OptionError),
    /// A name is invalid.
    #[error(transparent)]
    Names(#[from] NamesError),
    /// The credentials cannot be written.
    #[error(transparent)]
    Files(#[from] FilesError),
    /// There is no bootstrap kubeconfig.
    #[error(
        "the agent has no valid credentials for the hub ({cause}) and no bootstrap kubeconfig to request some: give one \
         with --bootstrap-kubeconfig; `clusteradm get token` on the hub shows what to put into it"
    )]
    NoBootstrap {
        /// Why the credentials are not valid.
        cause: Invalid,
    },
    /// The bootstrap kubeconfig cannot be used.
    #[error(
        "the agent has no valid credentials for the hub ({cause}) and cannot request some with its bootstrap kubeconfig \
         {path}: put a kubeconfig for the hub there; `clusteradm get token` on the hub shows what to put into it"
    )]
    Bootstrap {
        /// The bootstrap kubeconfig.
        path: PathBuf,
        /// Why the credentials are not valid.
        cause: Invalid,
        /// Why it cannot be used.
        #[source]
        source: Box<ConnectionError>,
    },
    /// A kubeconfig cannot be used.
    #[error(transparent)]
    Kubeconfig(#[from] KubeconfigError),
    /// A kubeconfig's credentials cannot be used.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// A kubeconfig names no hub.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
}

/// Runs an agent until the context ends.
///
/// `management` is the cluster that it runs on, with its secrets; `managed` is the cluster that it manages. They are the same
/// one unless the agent runs on another cluster.
///
/// # Errors
/// [`AgentError`] if the configuration must be changed first. A server that does not answer is no error: the agent logs it and
/// retries.
pub async fn run(
    context: &Context,
    management: &Endpoint,
    managed: &Endpoint,
    config: AgentConfig,
) -> Result<(), AgentError> {
    config.validate()?;
    // A child context, so that all tasks have ended when this returns.
    let own = context.child();
    let outcome = match config.components.registration {
        true => run_registration(&own, management, managed, config).await,
        false => work_only::run(&own, managed, config).await,
    };
    own.stop().await;
    outcome
}

/// An agent with a registration half. Cheap to clone.
#[derive(Clone)]
struct Agent {
    context: Context,
    config: AgentConfig,
    names: Names,
    managed: Endpoint,
    management: Informers,
    credentials: Credentials,
    bootstrap_secret: BootstrapSecret,
}

async fn run_registration(
    context: &Context,
    management: &Endpoint,
    managed: &Endpoint,
    config: AgentConfig,
) -> Result<(), AgentError> {
    let informers = Informers::new(management.client(USER_AGENT)?, context.clone());
    let dir = HubDir::new(&config.hub_kubeconfig_dir);
    tokio::select! {
        written = write_files_first(management, &informers, &dir, &config) => written?,
        () = context.ended() => return Ok(()),
    }
    let names = names::complete(&config)?;
    let span = info_span!("agent", cluster = names.cluster, agent = names.agent);
    let agent = span.in_scope(|| Agent::new(context, managed, informers, dir, names, config));
    agent.serve().instrument(span).await
}

/// Writes the files before they are used. While the server does not answer the agent waits, since its names may be in the
/// secret.
async fn write_files_first(
    management: &Endpoint,
    informers: &Informers,
    dir: &HubDir,
    config: &AgentConfig,
) -> Result<(), AgentError> {
    let secrets = kube::Api::namespaced(informers.client().clone(), &config.namespace);
    let mut delays = RETRY.delays();
    loop {
        match write::get(&secrets, &config.hub_kubeconfig_secret).await {
            Ok(secret) => {
                let secret: Option<k8s_openapi::api::core::v1::Secret> = secret;
                let data = secret.and_then(|secret| secret.data).unwrap_or_default();
                return Ok(dir.write(&dir.outdated(&data))?);
            }
            Err(error) => {
                let (server, retry_in) = (management.server(), delays.next_delay());
                let (problem, advice) = (chain(&error), management_advice(management, &error));
                warn!(%server, error = problem, ?retry_in, "cannot read the agent's secret on the cluster it runs on: {advice}");
                tokio::time::sleep(retry_in).await;
            }
        }
    }
}

/// What to do so that the agent can read its secret.
fn management_advice(management: &Endpoint, error: &ocm_runtime::Error) -> String {
    match error.code() {
        Some(403) => {
            "grant the agent's service account the rights of deploy/agent.yaml, in the namespace of its secret \
                      (--namespace)"
                .into()
        }
        _ => management.hint(&management.problem(error)),
    }
}

impl Agent {
    fn new(
        context: &Context,
        managed: &Endpoint,
        management: Informers,
        dir: HubDir,
        names: Names,
        config: AgentConfig,
    ) -> Self {
        let credentials = Credentials::new(context, dir, names.clone(), config.bootstrap_kubeconfig.clone());
        context.run(HubKubeconfigFiles::new(&management, config.hub_secret(), credentials.clone()), 1);
        Self {
            context: context.clone(),
            bootstrap_secret: BootstrapSecret::watch(&management, &config),
            config,
            names,
            managed: managed.clone(),
            management,
            credentials,
        }
    }

    async fn serve(&self) -> Result<(), AgentError> {
        self.credentials.check_health_of(&self.context);
        while !self.context.is_ended() {
            if let Some(agent) = self.at_its_hub().await {
                agent.serve_hub().await?;
            }
        }
        Ok(())
    }

    /// The agent with the hub that it selects, or with its only hub; `None` if the context has ended.
    async fn at_its_hub(&self) -> Option<Self> {
        if !self.config.selects_hub() {
            return Some(self.clone());
        }
        tokio::select! {
            () = self.context.ended() => None,
            hub = self.select_hub() => Some(Self { credentials: self.credentials.for_hub(hub), ..self.clone() }),
        }
    }

    /// Joins the hub if necessary, and runs the controllers for it, until one of both has to start over.
    async fn serve_hub(&self) -> Result<(), AgentError> {
        if let Err(cause) = self.credentials.check() {
            info!(%cause, "no valid credentials for the hub yet, requesting them");
            self.bootstrap_phase(cause).await?;
        }
        match self.credentials.check() {
            Ok(_) if !self.context.is_ended() => self.connected_phase().await,
            _ => Ok(()),
        }
    }
}
