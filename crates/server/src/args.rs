//! Arguments that hub and agent have in common.

use std::path::PathBuf;

use clap::Args;
use ocm_runtime::feature_gates::{FeatureGates, Known};
use tracing::warn;

use crate::process;

/// Arguments of every long-running command.
#[derive(Debug, Args)]
pub(crate) struct CommonArgs {
    /// Kubeconfig of the cluster this process runs on; in a pod its service account is the default
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Namespace of this component; in a pod its own is the default
    #[arg(long, value_name = "NAMESPACE")]
    pub namespace: Option<String>,

    /// Switch features, as Name=true or Name=false, separated by commas
    #[arg(long, value_name = "GATES", value_delimiter = ',')]
    pub feature_gates: Vec<String>,

    /// Say that no other replica runs. Leader election is not built yet, so without this flag a warning says to run
    /// one replica only
    #[arg(long)]
    pub disable_leader_election: bool,

    /// Address to serve /healthz, /readyz and /metrics on, without TLS and for everybody who can reach it
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8443")]
    pub listen: String,

    /// More to read in the logs: 2 is debug, 4 and more is trace. RUST_LOG, where set, has the last word
    #[arg(short, long = "v", value_name = "LEVEL", default_value_t = 0)]
    pub verbosity: u8,
}

impl CommonArgs {
    /// The namespace of this component: as given, else the pod's own, else `default`.
    pub(crate) fn namespace(&self, default: &str) -> String {
        self.namespace.clone().or_else(process::pod_namespace).unwrap_or_else(|| default.to_owned())
    }

    /// Reads the gates and warns of those that do nothing yet.
    pub(crate) fn gates(&self, known: &[Known]) -> anyhow::Result<FeatureGates> {
        let gates = FeatureGates::parse(known, &self.feature_gates)?;
        for gate in &gates.not_built {
            warn!(gate, "this feature is not built yet, the gate stays off");
        }
        Ok(gates)
    }

    /// Warns when nobody has said that this is the only replica.
    pub(crate) fn warn_of_replicas(&self) {
        if !self.disable_leader_election {
            warn!("leader election is not built yet: run one replica only, and say so with --disable-leader-election");
        }
    }
}

/// A pair as `key=value`.
pub(crate) fn key_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or_else(|| format!("{text:?} is not of the form key=value"))?;
    Ok((key.to_owned(), value.to_owned()))
}
