//! `clusteradm check cluster`, run where the agent runs.

mod bootstrap;
mod managed;
mod name;

use std::path::PathBuf;

use clap::Args;
use ocm_api::namespaces;
use tokio::time::Instant;

use super::{
    Format,
    model::{self, Group},
    server,
};
use crate::{client, cmd::Context, failure::Failure, kubeconfig};

/// Flags of `check cluster`.
#[derive(Args, Debug)]
#[command(after_help = "--kubeconfig is that of the managed cluster.")]
pub(crate) struct ClusterArgs {
    /// Kubeconfig with which the agent is to join the hub
    #[arg(long, value_name = "FILE", required_unless_present = "bootstrap_kubeconfigs")]
    bootstrap_kubeconfig: Option<PathBuf>,
    /// Kubeconfigs of several hubs
    #[arg(long, value_name = "FILE,...", value_delimiter = ',')]
    bootstrap_kubeconfigs: Vec<PathBuf>,
    /// Name with which the cluster is to join
    #[arg(long, visible_alias = "spoke-cluster-name", value_name = "NAME")]
    cluster_name: Option<String>,
    /// The kubeconfig is that of the agent: check the rights of its own user, and not those of its service account
    #[arg(long)]
    as_agent: bool,
    /// Namespace of the agent on the managed cluster
    #[arg(short, long, value_name = "NAME", default_value = namespaces::AGENT)]
    namespace: String,
    /// Form of the output
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    pub(super) output: Format,
}

/// Makes the checks: of each hub, then of the managed cluster.
pub(super) async fn run(args: &ClusterArgs, context: &Context, deadline: Instant) -> Vec<Group> {
    let managed = client::connect(context);
    let joined = match &managed {
        Ok(managed) => name::joined(managed, &args.namespace, deadline).await,
        Err(_) => None,
    };
    let mut groups = Vec::new();
    for file in args.bootstrap_kubeconfig.iter().chain(&args.bootstrap_kubeconfigs) {
        let server = kubeconfig::find(Some(file), None, &context.environment)
            .and_then(|found| client::connect_to(&found, None, &context.environment));
        let hub =
            server.map(|server| bootstrap::Hub { server, name: args.cluster_name.clone(), joined: joined.clone() });
        let subject = format!("hub of {}", file.display());
        groups.push(group(bootstrap::CHECKS, hub, |hub| server::subject("hub", &hub.server), subject, deadline).await);
    }
    let managed = managed.map(|server| managed::Cluster { server, as_agent: args.as_agent });
    let subject = |cluster: &managed::Cluster| server::subject("managed cluster", &cluster.server);
    groups.push(group(managed::CHECKS, managed, subject, "managed cluster".to_owned(), deadline).await);
    groups
}

/// The findings about one server, or that its kubeconfig cannot be used.
async fn group<S>(
    checks: &[model::Check<S>],
    subject: Result<S, Failure>,
    name: impl Fn(&S) -> String,
    fallback: String,
    deadline: Instant,
) -> Group {
    match subject {
        Ok(found) => Group { subject: name(&found), findings: model::run(checks, &found, deadline).await },
        Err(failure) => Group { subject: fallback, findings: model::without_connection(checks, &failure) },
    }
}
