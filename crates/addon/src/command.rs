//! Commands of an add-on: arguments, logs, signals, clients, leader election.
//!
//! [`ManagerArgs`] is the command that runs on the hub, [`AgentArgs`] the one on managed clusters. Both are
//! [`clap::Args`], to be part of a program's command line, and both `run` to the program's end:
//!
//! ```no_run
//! use std::process::ExitCode;
//!
//! use clap::Parser;
//! use ocm_addon::command::{AgentArgs, ManagerArgs};
//!
//! #[derive(Parser)]
//! enum Hello {
//!     /// Run on the hub
//!     Manager(ManagerArgs),
//!     /// Run on a managed cluster
//!     Agent(AgentArgs),
//! }
//!
//! fn main() -> ExitCode {
//!     match Hello::parse() {
//!         Hello::Manager(args) => args.run("hello", |manager| Ok(manager)),
//!         Hello::Agent(args) => args.run("hello", |agent| async move { Ok(agent.until_the_end().await) }),
//!     }
//! }
//! ```

use std::{
    fmt,
    future::Future,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use clap::Args;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Client;
use ocm_api::namespaces::AGENT_ADDON;
use ocm_runtime::{
    Backoff, Clock, Context,
    admin::{self, Tls, TlsOptions},
    client::{self, Endpoint},
    error::chain,
    leader::{self, Lock, Settings, identity},
    process,
};

use tokio::time::sleep;
use tracing::warn;

use crate::{AddonError, AddonManager, LeaseUpdater, account};

/// Namespace of the lease outside a pod, without `--component-namespace`.
const DEFAULT_NAMESPACE: &str = "open-cluster-management";

/// Arguments of an add-on's manager.
#[derive(Clone, Debug, Args)]
pub struct ManagerArgs {
    /// Kubeconfig of the hub; in a pod its service account is the default
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Namespace of this manager, in which it is elected; in a pod its own is the default
    #[arg(long, value_name = "NAMESPACE")]
    component_namespace: Option<String>,

    /// Work only while elected; for several replicas
    #[arg(long)]
    enable_leader_election: bool,

    /// Address to serve /healthz, /livez, /readyz and /metrics on, over HTTPS
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:8443")]
    listen: String,

    #[command(flatten)]
    logs: LogArgs,
}

/// Arguments of an add-on's agent.
#[derive(Clone, Debug, Args)]
pub struct AgentArgs {
    /// Kubeconfig of the hub, from the secret that the cluster's agent keeps for this one
    #[arg(long, value_name = "FILE")]
    hub_kubeconfig: PathBuf,

    /// Kubeconfig of the managed cluster; in a pod its service account is the default
    #[arg(long, value_name = "FILE")]
    managed_kubeconfig: Option<PathBuf>,

    /// Name of the managed cluster
    #[arg(long, value_name = "NAME")]
    cluster_name: String,

    /// Namespace of this agent on the managed cluster; in a pod its own is the default
    #[arg(long, value_name = "NAMESPACE")]
    addon_namespace: Option<String>,

    /// Name of the add-on, where it is not installed under its usual one
    #[arg(long, value_name = "NAME")]
    addon_name: Option<String>,

    #[command(flatten)]
    logs: LogArgs,
}

#[derive(Clone, Copy, Debug, Args)]
struct LogArgs {
    /// Verbosity of the logs: 2 is debug, 4 and more is trace. RUST_LOG takes precedence
    #[arg(short, long = "v", value_name = "LEVEL", default_value_t = 0)]
    verbosity: u8,
}

impl ManagerArgs {
    /// Runs a manager until the process is asked to end, and reports on stderr why it could not. `component` names it in
    /// requests, and the lease by which it is elected; `add` gives it its add-ons, at the start of each term as leader.
    ///
    /// This is for `main`: it starts a Tokio runtime, a logger and handlers of signals. Other programs use
    /// [`ManagerArgs::run_in`].
    #[doc(alias("NewControllerCommandConfig", "NewCommand"))]
    pub fn run<A>(self, component: &str, add: A) -> ExitCode
    where
        A: Fn(AddonManager) -> Result<AddonManager, AddonError> + Send + Sync,
    {
        process::start_logs(self.logs.verbosity);
        finish(process::block_on(Box::pin(async {
            let context = process::context();
            process::end_on_signal(&context)?;
            process::run_to_the_end(&context, self.run_in(&context, component, add)).await?
        })))
    }

    /// Runs a manager with its probes, and elected if it is to be, until `context` is asked to end. In the caller's
    /// runtime, with the caller's logger; [`Context::stop`] then waits until what is in progress is finished. The program
    /// gets rustls' default provider of cryptography, if it has none.
    ///
    /// # Errors
    /// When the hub cannot be reached, or the address of the probes cannot be used.
    pub async fn run_in<A>(self, context: &Context, component: &str, add: A) -> Result<(), AddonError>
    where
        A: Fn(AddonManager) -> Result<AddonManager, AddonError> + Send + Sync,
    {
        client::install_crypto_provider();
        let endpoint = connect(context, self.kubeconfig.as_deref(), component).await?;
        let client = endpoint.client(component)?;
        let tls = Tls::new(&TlsOptions { host: process::host(), ..TlsOptions::default() }, &Clock::System)?;
        admin::serve(context, &self.listen, &tls, client.clone()).await?;
        if self.enable_leader_election {
            return self.lead(context, component, client, add).await;
        }
        add(AddonManager::new(client))?.run(context).await;
        Ok(())
    }

    async fn lead<A>(self, context: &Context, component: &str, client: Client, add: A) -> Result<(), AddonError>
    where
        A: Fn(AddonManager) -> Result<AddonManager, AddonError> + Send + Sync,
    {
        let namespace = self.component_namespace.or_else(process::pod_namespace);
        let namespace = namespace.unwrap_or_else(|| DEFAULT_NAMESPACE.into());
        let lock = Lock { namespace, name: component.into(), identity: identity(&process::host()) };
        let work = |term: Context| {
            let manager = add(AddonManager::new(client.clone()));
            async move {
                manager?.run(&term).await;
                Ok::<_, AddonError>(())
            }
        };
        leader::lead(context, client.clone(), lock, Settings::default(), work).await
    }
}

/// The surroundings of an add-on's agent.
#[derive(Clone)]
#[non_exhaustive]
pub struct Agent {
    /// Ends when the process is asked to end.
    pub context: Context,
    /// The hub, with the add-on's identity. Renewed credentials are reloaded without an interruption.
    pub hub: Client,
    /// The managed cluster, with the agent's service account.
    pub managed: Client,
    /// Name of the managed cluster, and of its namespace on the hub.
    pub cluster: String,
    /// Name of the add-on.
    pub addon: String,
    /// Namespace of the agent on the managed cluster.
    pub namespace: String,
    /// The agent's service account there, as owner of objects that are to be deleted with the add-on; `None` if the agent
    /// runs as another user, as when it is started by hand.
    pub owner: Option<OwnerReference>,
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent").field("cluster", &self.cluster).field("addon", &self.addon).finish_non_exhaustive()
    }
}

impl Agent {
    /// The lease by which the agent reports its health. The agent's service account owns it.
    #[must_use]
    pub fn lease_updater(&self) -> LeaseUpdater {
        let lease = LeaseUpdater::new(self.managed.clone(), &self.addon, &self.namespace);
        self.owner.iter().fold(lease, |lease, owner| lease.owned_by(owner.clone()))
    }

    /// Waits until the process is asked to end.
    pub async fn until_the_end(&self) {
        self.context.ended().await;
    }
}

impl AgentArgs {
    /// Runs `work` to its end, and reports on stderr why it failed. `addon` is the add-on's usual name.
    ///
    /// This is for `main`: it starts a Tokio runtime, a logger and handlers of signals. Other programs use
    /// [`AgentArgs::connect`].
    pub fn run<W, F>(self, addon: &str, work: W) -> ExitCode
    where
        W: FnOnce(Agent) -> F,
        F: Future<Output = Result<(), AddonError>>,
    {
        process::start_logs(self.logs.verbosity);
        finish(process::block_on(Box::pin(async {
            let context = process::context();
            process::end_on_signal(&context)?;
            let Some(agent) = self.connect(&context, addon).await? else { return Ok(()) };
            process::run_to_the_end(&context, work(agent)).await?
        })))
    }

    /// Connects to both clusters, and waits until they answer. `None` if `context` is asked to end first.
    ///
    /// # Errors
    /// When a kubeconfig cannot be used.
    pub async fn connect(self, context: &Context, addon: &str) -> Result<Option<Agent>, AddonError> {
        client::install_crypto_provider();
        let managed = Endpoint::load(context, self.managed_kubeconfig.as_deref())?.reloading(context);
        let hub = Endpoint::load(context, Some(&self.hub_kubeconfig))?.reloading(context);
        let namespace = self.addon_namespace.or_else(process::pod_namespace);
        let namespace = namespace.unwrap_or_else(|| AGENT_ADDON.to_owned());
        let client = managed.client(addon)?;
        let find_owner = async || {
            process::check_connection(&managed, addon).await?;
            Ok(account::of(&client, &namespace).await?)
        };
        let Some(owner) = until_answered(context, "the managed cluster", find_owner).await else { return Ok(None) };
        let reach_hub = async || Ok(process::check_connection(&hub, addon).await?);
        let Some(()) = until_answered(context, "the hub", reach_hub).await else { return Ok(None) };
        Ok(Some(Agent {
            hub: hub.client(addon)?,
            owner,
            managed: client,
            cluster: self.cluster_name,
            addon: self.addon_name.unwrap_or_else(|| addon.to_owned()),
            namespace,
            context: context.clone(),
        }))
    }
}

/// After how long a cluster that cannot be reached is asked again.
const RETRY: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));

/// Asks a cluster until it answers: an agent that exits is restarted by its pod and asks again anyway, only later. Returns
/// `None` when the process is asked to end first.
async fn until_answered<T>(
    context: &Context,
    cluster: &str,
    ask: impl AsyncFn() -> Result<T, AddonError>,
) -> Option<T> {
    let mut delays = RETRY.delays();
    let answered = async {
        loop {
            match ask().await {
                Ok(answer) => return answer,
                Err(error) => {
                    let retry_in = delays.next_delay();
                    warn!(error = %chain(&*error), ?retry_in, "{cluster} cannot be reached, retrying");
                    sleep(retry_in).await;
                }
            }
        }
    };
    tokio::select! {
        () = context.ended() => None,
        answer = answered => Some(answer),
    }
}

/// Connects to a cluster, and checks that it answers. Credentials in files are reloaded.
async fn connect(context: &Context, path: Option<&Path>, user_agent: &str) -> Result<Endpoint, AddonError> {
    let endpoint = Endpoint::load(context, path)?.reloading(context);
    process::check_connection(&endpoint, user_agent).await?;
    Ok(endpoint)
}

fn finish(outcome: Result<Result<(), AddonError>, std::io::Error>) -> ExitCode {
    let error = match outcome {
        Ok(Ok(())) => return ExitCode::SUCCESS,
        Ok(Err(error)) => error,
        Err(error) => error.into(),
    };
    process::print_error(&*error);
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_cluster_is_asked_until_it_answers_with_pauses_up_to_a_minute() {
        let (asked, start) = (Cell::new(0_u32), tokio::time::Instant::now());
        let ask = async || {
            asked.set(asked.get() + 1);
            if asked.get() > 10 { Ok(asked.get()) } else { Err("no answer".into()) }
        };
        assert_eq!(until_answered(&Context::new(), "the hub", ask).await, Some(11));
        let (waited, longest) = (start.elapsed().as_secs(), 1 + 2 + 4 + 8 + 16 + 32 + 4 * 60);
        assert!((longest / 2..=longest).contains(&waited), "{waited} s");
    }

    #[tokio::test(start_paused = true)]
    async fn asked_to_end_it_no_longer_waits_for_an_answer() {
        let context = Context::new();
        context.end();
        let ask = async || Err::<(), AddonError>("no answer".into());
        assert_eq!(until_answered(&context, "the hub", ask).await, None);
    }
}
