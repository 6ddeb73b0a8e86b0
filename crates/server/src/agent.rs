//! `ocm agent`: the agent of a managed cluster.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::ensure;
use clap::{ArgAction, Args, ValueEnum};
use ocm_agent::{
    AgentConfig, AgentError, Components, agent,
    work::{DEFAULT_DRIFT_WATCH_LIMIT, HoldLimit},
};
use ocm_api::{
    addon::v1alpha1::KubeClientDriver,
    feature_gates, leases, limits, namespaces,
    secrets::{self, KEY_KUBECONFIG},
};
use ocm_runtime::{Context, admin, client::Endpoint, leader, pki::certificates_to_pem};
use tracing::info;

use crate::{
    args::{self, CommonArgs},
    flags::{self, Given},
    process,
};

/// The user agent for leader election and for authorizing requests for metrics.
const USER_AGENT: &str = concat!("ocm-agent/", env!("CARGO_PKG_VERSION"));

/// OCM's default for where works come from, in its own folder of credentials.
const WORKLOAD_SOURCE_CONFIG: &str = "/spoke/hub-kubeconfig/kubeconfig";

/// Run the agent of a managed cluster: registration and work
#[derive(Debug, Args)]
pub(crate) struct AgentArgs {
    /// Name of this cluster on the hub [default: the one used before, or else a new UUID] [deprecated alias: --cluster-name]
    #[arg(long, value_name = "NAME", alias = "cluster-name")]
    spoke_cluster_name: Option<String>,

    /// Kubeconfig of the managed cluster, if the agent runs on another one [default: the cluster of --kubeconfig]
    #[arg(long, value_name = "FILE")]
    spoke_kubeconfig: Option<PathBuf>,

    /// Kubeconfig with which the agent bootstraps: it requests its own credentials for the hub
    #[arg(long, value_name = "FILE")]
    bootstrap_kubeconfig: Option<PathBuf>,

    /// Bootstrap kubeconfigs of the hubs that the agent can join, the preferred one first; at least two. May be repeated, and
    /// needs the feature gate MultipleHubs
    #[arg(long, value_name = "FILE", value_delimiter = ',')]
    bootstrap_kubeconfigs: Vec<PathBuf>,

    /// With the feature gate MultipleHubs: after how many seconds without contact to its hub the agent selects a hub again
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    hub_connection_timeout_seconds: u32,

    /// Secret with the bootstrap kubeconfig, in the agent's namespace. The agent bootstraps again when it changes
    #[arg(long, value_name = "NAME", default_value = secrets::BOOTSTRAP_HUB_KUBECONFIG)]
    bootstrap_kubeconfig_secret: String,

    /// Secret for the agent's own credentials for the hub, in the agent's namespace
    #[arg(long, value_name = "NAME", default_value = secrets::HUB_KUBECONFIG)]
    hub_kubeconfig_secret: String,

    /// Folder for the agent's own credentials for the hub
    #[arg(long, value_name = "FOLDER", default_value = "/spoke/hub-kubeconfig")]
    hub_kubeconfig_dir: PathBuf,

    /// The agent's own kubeconfig for the hub. Only its default is accepted: the file kubeconfig in --hub-kubeconfig-dir
    #[arg(long, value_name = "FILE")]
    hub_kubeconfig: Option<PathBuf>,

    /// Source of works. Only this default and the file of --hub-kubeconfig are accepted
    #[arg(long, value_name = "FILE", default_value = WORKLOAD_SOURCE_CONFIG)]
    workload_source_config: PathBuf,

    /// Identifies this agent among those of its cluster [default: the one used before, or else five random characters]
    #[arg(long, value_name = "ID")]
    agent_id: Option<String>,

    /// The parts of the agent that run in this process, separated by commas
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "registration,work")]
    components: Vec<Component>,

    /// Addresses of this cluster's API server for users of the hub, https only, separated by commas
    #[arg(long, value_name = "URLS", value_delimiter = ',')]
    spoke_external_server_urls: Vec<String>,

    /// Annotations for the ManagedCluster, as key=value, separated by commas; only keys that start with
    /// agent.open-cluster-management.io are used
    #[arg(long, value_name = "ANNOTATIONS", value_delimiter = ',', value_parser = args::key_value)]
    cluster_annotations: Vec<(String, String)>,

    /// How often the health of the managed cluster's API server is checked; more than 0
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = flags::duration)]
    cluster_healthcheck_period: Duration,

    /// How many ClusterClaims and ClusterProperties are reported at most, in addition to reserved ones
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    max_custom_cluster_claims: usize,

    /// Suffixes of the names of further reserved ClusterClaims and ClusterProperties, separated by commas
    #[arg(long, value_name = "SUFFIXES", value_delimiter = ',')]
    reserved_cluster_claim_suffixes: Vec<String>,

    /// Lifetime to request for the agent's certificates, in seconds, at least 3600; 0 leaves it to the hub
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    client_cert_expiration_seconds: i32,

    /// How agents of add-ons authenticate to the hub: csr (client certificates) or token (tokens of service accounts)
    #[arg(long, value_name = "DRIVER", default_value = "csr")]
    addon_kubeclient_registration_auth: String,

    /// Lifetime to request for tokens of add-ons, in seconds, at least 600
    #[arg(long, value_name = "SECONDS", default_value_t = limits::TOKEN_SECONDS, allow_negative_numbers = true)]
    addon_token_expiration_seconds: i64,

    /// The shortest interval at which the agent checks the objects that it applied; the longest is 1.9 times this
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = flags::duration)]
    status_sync_interval: Duration,

    /// With the feature gate RawFeedbackJsonString: the most bytes of a feedback value that is an object or a list
    #[arg(long, value_name = "BYTES", default_value_t = 1024)]
    max_json_raw_length: u32,

    /// How many watches there are at most for works that ask for feedback on each change; others are polled
    #[arg(long, value_name = "COUNT", default_value_t = 50)]
    max_feedback_watch: u32,

    /// How long applied objects are kept after their ManifestWork was removed from the hub by force; 876000h or more: forever
    #[arg(long, value_name = "DURATION", default_value = "60m", value_parser = flags::duration)]
    appliedmanifestwork_eviction_grace_period: Duration,

    /// Nothing is deleted of works that are missing on the hub and that nobody was seen to delete, if they are more than this share
    /// of all works, until an administrator confirms it; 100: never wait for that
    #[arg(long, value_name = "PERCENT", default_value_t = limits::IMPLICIT_DELETION_SHARE, value_parser = clap::value_parser!(u8).range(..=100))]
    max_implicit_deletion_share: u8,

    /// How many works must be missing at least, for --max-implicit-deletion-share
    #[arg(long, value_name = "COUNT", default_value_t = limits::IMPLICIT_DELETION_MINIMUM)]
    min_implicit_deletions: usize,

    /// Keep copies of the works in Secrets of the agent's namespace on the managed cluster, and repair from them if the agent is
    /// restarted while the hub is away
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_value = "false",
        default_missing_value = "true",
        action = ArgAction::Set,
        value_parser = flags::flag
    )]
    keep_works_offline: bool,

    /// How many works are processed at the same time, at least 1
    #[arg(long, value_name = "COUNT", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..))]
    workload_agent_workers: u16,

    /// How many watches of applied objects there are at most, by which changes by others are repaired at once; 0: no watches,
    /// and such changes are repaired every four to six minutes
    #[arg(long, value_name = "COUNT", default_value_t = DEFAULT_DRIFT_WATCH_LIMIT)]
    drift_watch_limit: usize,

    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Component {
    Registration,
    Work,
}

pub(crate) async fn run(args: AgentArgs, given: &Given) -> anyhow::Result<()> {
    process::start_logs(args.common.verbosity);
    let mut config = config(&args)?;
    given.check(&config.feature_gates.not_built)?;
    let (election, tls) = (args.common.election.settings()?, args.common.serving.tls()?);
    let context = process::context();
    process::end_on_signal(&context)?;
    process::end_on_change(&context, args.common.terminate_on_files.clone());
    let (management, own_certificates) = connect(&context, args.common.kubeconfig.as_deref()).await?;
    let (managed, certificates) = match &args.spoke_kubeconfig {
        None => (management.clone(), own_certificates),
        Some(path) => connect(&context, Some(path)).await?,
    };
    config.spoke_ca_bundle = certificates;
    let client = management.client(USER_AGENT)?;
    admin::serve(&context, &args.common.serving.listen, &tls, client.clone()).await?;
    let work = Box::pin(async {
        match election {
            None => ocm_agent::run(&context, &management, &managed, config).await,
            Some(settings) => {
                let lock = args::candidate(&config.namespace, lock_of(config.components));
                let run = |term| run_term(term, management.clone(), managed.clone(), config.clone());
                leader::lead(&context, client, lock, settings, run).await
            }
        }
    });
    Ok(process::run_to_the_end(&context, work).await??)
}

/// Connects to a cluster, and returns the certificates that it trusts.
async fn connect(context: &Context, kubeconfig: Option<&Path>) -> anyhow::Result<(Endpoint, Option<Vec<u8>>)> {
    let endpoint = Endpoint::load(context, kubeconfig)?.reloading(context);
    process::reach(&endpoint).await?;
    let certificates = endpoint.root_certificates().map(|all| certificates_to_pem(all).into_bytes());
    Ok((endpoint, certificates))
}

/// The agent while this process is the leader.
async fn run_term(
    term: Context,
    management: Endpoint,
    managed: Endpoint,
    config: AgentConfig,
) -> Result<(), AgentError> {
    ocm_agent::run(&term, &management, &managed, config).await
}

/// As in OCM, an empty value is the default.
fn addon_driver(text: &str) -> KubeClientDriver {
    if text.is_empty() { KubeClientDriver::default() } else { text.into() }
}

/// The lock of the whole agent, or of the half that runs, as OCM's agents have it.
fn lock_of(components: Components) -> &'static str {
    match (components.registration, components.work) {
        (true, false) => leases::REGISTRATION_AGENT_LOCK,
        (false, true) => leases::WORK_AGENT_LOCK,
        _ => leases::KLUSTERLET_AGENT_LOCK,
    }
}

/// Refuses any other file than the one that the agent writes and renews.
fn check_files(args: &AgentArgs) -> anyhow::Result<()> {
    let own = args.hub_kubeconfig_dir.join(KEY_KUBECONFIG);
    let source = Some(&args.workload_source_config).filter(|file| *file != Path::new(WORKLOAD_SOURCE_CONFIG));
    let given = [("--hub-kubeconfig", args.hub_kubeconfig.as_ref()), ("--workload-source-config", source)];
    for (flag, file) in given.into_iter().filter_map(|(flag, file)| Some((flag, file?))) {
        ensure!(
            *file == own,
            "{flag} is {}, but the agent's kubeconfig for the hub is {}: name its folder with --hub-kubeconfig-dir and leave \
             {flag} out",
            file.display(),
            own.display()
        );
    }
    Ok(())
}

fn config(args: &AgentArgs) -> anyhow::Result<AgentConfig> {
    check_files(args)?;
    let mut config = AgentConfig::new(&args.hub_kubeconfig_dir);
    config.cluster_name = args.spoke_cluster_name.clone().unwrap_or_default();
    config.agent_id = args.agent_id.clone().unwrap_or_default();
    config.namespace = args.common.namespace(namespaces::AGENT);
    config.bootstrap_kubeconfig.clone_from(&args.bootstrap_kubeconfig);
    config.hubs.bootstrap_kubeconfigs.clone_from(&args.bootstrap_kubeconfigs);
    config.hubs.connection_timeout = Duration::from_secs(args.hub_connection_timeout_seconds.into());
    config.bootstrap_kubeconfig_secret.clone_from(&args.bootstrap_kubeconfig_secret);
    config.hub_kubeconfig_secret.clone_from(&args.hub_kubeconfig_secret);
    config.components = Components {
        registration: args.components.contains(&Component::Registration),
        work: args.components.contains(&Component::Work),
    };
    config.host = process::host();
    config.feature_gates = args.common.gates(&agent::known_gates())?;
    config.cluster_annotations = args.cluster_annotations.iter().cloned().collect::<BTreeMap<_, _>>();
    config.spoke_external_server_urls.clone_from(&args.spoke_external_server_urls);
    config.max_custom_cluster_claims = args.max_custom_cluster_claims;
    config.reserved_cluster_claim_suffixes.clone_from(&args.reserved_cluster_claim_suffixes);
    config.cluster_healthcheck_period = args.cluster_healthcheck_period;
    config.client_cert_expiration_seconds = args.client_cert_expiration_seconds;
    config.addon_driver = addon_driver(&args.addon_kubeclient_registration_auth);
    config.addon_token_seconds = args.addon_token_expiration_seconds;
    config.work.status_sync = args.status_sync_interval;
    config.work.feedback.max_json_raw = usize::try_from(args.max_json_raw_length).unwrap_or(usize::MAX);
    config.work.max_feedback_watch = usize::try_from(args.max_feedback_watch).unwrap_or(usize::MAX);
    config.work.eviction_grace = args.appliedmanifestwork_eviction_grace_period;
    config.work.hold_limit =
        HoldLimit { max_share: args.max_implicit_deletion_share, at_least: args.min_implicit_deletions };
    config.work.offline.keeps_copies = args.keep_works_offline;
    config.work.workers = args.workload_agent_workers.into();
    config.work.drift_watch_limit = args.drift_watch_limit;
    config.validate()?;
    log_unused(args, &config);
    Ok(config)
}

/// Logs the bootstrap kubeconfigs that do not count: one is for an agent with one hub, the list for one that selects.
fn log_unused(args: &AgentArgs, config: &AgentConfig) {
    let selects = config.feature_gates.enabled(feature_gates::MULTIPLE_HUBS);
    if !selects && !args.bootstrap_kubeconfigs.is_empty() {
        info!("the flag --bootstrap-kubeconfigs has no effect without the feature gate MultipleHubs");
    }
    if selects && args.bootstrap_kubeconfig.is_some() {
        info!("the flag --bootstrap-kubeconfig has no effect with the feature gate MultipleHubs");
    }
}
