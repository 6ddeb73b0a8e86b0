//! `ocm webhooks`: the configurations of the webhooks for admission, as YAML.

use std::path::PathBuf;

use clap::Args;
use ocm_apimachinery::yaml;
use ocm_hub::webhook::configurations::{self, Target};
use serde::Serialize;

use crate::{address, process};

/// Print the configurations of the admission webhooks, ready for `kubectl apply --server-side -f -`
///
/// With them the hub's API server asks `ocm webhook` about every change of a cluster, set binding or work, and with --replica-sets
/// of a ManifestWorkReplicaSet. It must run before they are applied: while it does not answer, such changes are refused.
#[derive(Debug, Args)]
pub(crate) struct WebhooksArgs {
    /// Address of `ocm webhook` for the hub's API server, such as https://10.0.0.5:9443. Defaults to its service in the hub's
    /// namespace
    #[arg(long, value_name = "URL", value_parser = address::url)]
    url: Option<String>,

    /// File with the certificate authority of `ocm webhook`, or its own certificate, in PEM. Defaults to those that the API
    /// server's machine trusts
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,

    /// Have ManifestWorkReplicaSets checked, too. `ocm webhook` must run with --feature-gates=ManifestWorkReplicaSet=true: without
    /// it, every change of them is refused
    #[arg(long)]
    replica_sets: bool,
}

pub(crate) fn run(args: &WebhooksArgs) -> anyhow::Result<()> {
    let authority = args.ca_file.as_deref().map(address::certificates).transpose()?;
    let configurations =
        configurations::configurations(&Target { url: args.url.clone(), authority, replica_sets: args.replica_sets });
    let mutating = configurations.mutating.iter().map(document);
    let documents = mutating.chain(configurations.validating.iter().map(document));
    process::print(&documents.collect::<anyhow::Result<String>>()?)
}

fn document(object: &impl Serialize) -> anyhow::Result<String> {
    Ok(format!("---\n{}", yaml::to_string(object)?))
}
