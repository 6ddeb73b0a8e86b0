//! Arguments of both hub and agent.

use std::{path::PathBuf, time::Duration};

use clap::{ArgAction, Args};
use ocm_runtime::{
    Clock,
    admin::{Tls, TlsOptions},
    feature_gates::{FeatureGates, Known},
    leader::{Lock, Settings, identity},
};
use tracing::warn;

use crate::{flags, process};

/// Arguments of every long-running command.
#[derive(Debug, Args)]
pub(crate) struct CommonArgs {
    /// Kubeconfig of the cluster that this process runs on. Defaults to the pod's service account
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Namespace of this component, for its leases and secrets. Defaults to the pod's, or else to the one in deploy/:
    /// open-cluster-management-hub for a hub, open-cluster-management-agent for an agent
    #[arg(long, value_name = "NAMESPACE")]
    pub namespace: Option<String>,

    /// Feature gates, as Name=true or Name=false, separated by commas
    #[arg(long, value_name = "GATES", value_delimiter = ',')]
    pub feature_gates: Vec<String>,

    /// Exit when one of these files changes, to be restarted with the new content. May be repeated
    #[arg(long, value_name = "FILE")]
    pub terminate_on_files: Vec<PathBuf>,

    /// Log level: 0 is info, 1 to 3 are debug, 4 and more are trace. RUST_LOG takes precedence
    #[arg(short, long = "v", value_name = "LEVEL", default_value_t = 0)]
    pub verbosity: u8,

    // Last, since the headings of these apply to all arguments after them.
    #[command(flatten)]
    pub election: ElectionArgs,

    #[command(flatten)]
    pub serving: ServingArgs,
}

impl CommonArgs {
    /// The namespace of this component: that of the flag, or the pod's, or else `default`.
    pub(crate) fn namespace(&self, default: &str) -> String {
        self.namespace.clone().or_else(process::pod_namespace).unwrap_or_else(|| default.to_owned())
    }

    /// Parses the gates.
    pub(crate) fn gates(&self, known: &[Known]) -> anyhow::Result<FeatureGates> {
        gates(known, &self.feature_gates)
    }
}

/// Parses gates, and warns of those whose feature is not built.
pub(crate) fn gates(known: &[Known], given: &[String]) -> anyhow::Result<FeatureGates> {
    let gates = FeatureGates::parse(known, given)?;
    for gate in &gates.not_built {
        warn!(gate, "this feature is not built yet, the gate stays off");
    }
    Ok(gates)
}

/// Arguments of leader election.
#[derive(Debug, Args)]
#[command(next_help_heading = "Leader election")]
pub(crate) struct ElectionArgs {
    /// Run without leader election, as the only replica
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
    disable_leader_election: bool,

    /// How long other replicas wait after the last renewal that they observed, before they acquire the lease
    #[arg(long, value_name = "DURATION", default_value = "137s", value_parser = flags::duration)]
    leader_election_lease_duration: Duration,

    /// How long after its last successful renewal a leader stops
    #[arg(long, value_name = "DURATION", default_value = "107s", value_parser = flags::duration)]
    leader_election_renew_deadline: Duration,

    /// How often the leader renews the lease, and how often, at most, the others try to acquire it
    #[arg(long, value_name = "DURATION", default_value = "26s", value_parser = flags::duration)]
    leader_election_retry_period: Duration,
}

impl ElectionArgs {
    /// The validated times; `None` without leader election.
    pub(crate) fn settings(&self) -> anyhow::Result<Option<Settings>> {
        let settings = Settings::new(
            self.leader_election_lease_duration,
            self.leader_election_renew_deadline,
            self.leader_election_retry_period,
        )?;
        Ok((!self.disable_leader_election).then_some(settings))
    }
}

/// This process as a candidate for a lease.
pub(crate) fn candidate(namespace: &str, lock: &str) -> Lock {
    Lock { namespace: namespace.to_owned(), name: lock.to_owned(), identity: identity(&process::host()) }
}

/// Arguments of the listener.
#[derive(Debug, Args)]
#[command(next_help_heading = "Serving")]
pub(crate) struct ServingArgs {
    /// Address to serve /healthz, /livez, /readyz and /metrics on, over HTTPS
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:8443")]
    pub listen: String,

    /// File with the serving certificate, in PEM, reloaded when it changes [default: self-signed, generated at the start]
    #[arg(long, value_name = "FILE")]
    tls_cert_file: Option<PathBuf>,

    /// File with the private key of that certificate, in PEM
    #[arg(long, value_name = "FILE")]
    tls_private_key_file: Option<PathBuf>,

    /// Minimum TLS version: VersionTLS12 or VersionTLS13. VersionTLS10 and VersionTLS11 mean 1.2 [default: VersionTLS12]
    #[arg(long, value_name = "VERSION", default_value = "", hide_default_value = true)]
    tls_min_version: String,

    /// Cipher suites of TLS 1.2, by their IANA names, separated by commas [default: all strong ones]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    tls_cipher_suites: Vec<String>,
}

impl ServingArgs {
    /// The TLS configuration of the listener.
    pub(crate) fn tls(&self) -> anyhow::Result<Tls> {
        let options = TlsOptions {
            cert_file: self.tls_cert_file.clone(),
            key_file: self.tls_private_key_file.clone(),
            min_version: self.tls_min_version.clone(),
            cipher_suites: self.tls_cipher_suites.clone(),
            host: process::host(),
        };
        Ok(Tls::new(&options, &Clock::System)?)
    }
}

/// A pair as `key=value`.
pub(crate) fn key_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or_else(|| format!("{text:?} is not of the form key=value"))?;
    Ok((key.to_owned(), value.to_owned()))
}
