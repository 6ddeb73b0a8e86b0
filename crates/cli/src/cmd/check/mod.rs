//! `clusteradm check`: what a hub or a managed cluster needs, checked in the order of cause.
//!
//! Each check is a [`model::Check`]: a name, the checks that it needs, and a function that returns an outcome. `hub` and
//! `cluster` hold the tables of checks, `report` renders what was found. Nothing is written to a cluster, except with
//! `check hub --sign`; access reviews and dry runs write nothing.

mod access;
mod cluster;
mod crds;
mod hub;
mod model;
mod report;
mod rights;
mod server;

use clap::{Subcommand, ValueEnum};
use tokio::time::Instant;

use self::model::Group;
use crate::{cmd::Context, failure::Failure};

/// What to check.
#[derive(Debug, Subcommand)]
pub(crate) enum CheckCommand {
    /// Check a hub, with the kubeconfig of its administrator
    Hub(hub::HubArgs),
    /// Check from a managed cluster whether its agent can join a hub, with the bootstrap kubeconfig
    Cluster(cluster::ClusterArgs),
}

/// The forms of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A line for each check
    Text,
    /// One JSON object, for programs
    Json,
}

/// Runs the command. It fails if a check has failed.
pub(crate) async fn run(command: CheckCommand, context: &Context) -> Result<(), Failure> {
    let deadline = Instant::now() + context.global.timeout();
    let (output, groups) = match command {
        CheckCommand::Hub(args) => (args.output, hub::run(&args, context, deadline).await),
        CheckCommand::Cluster(args) => (args.output, cluster::run(&args, context, deadline).await),
    };
    context.print(&render(output, &groups))?;
    report::result(&groups)
}

fn render(output: Format, groups: &[Group]) -> String {
    match output {
        Format::Text => report::text(groups),
        Format::Json => report::json(groups),
    }
}

/// The accounts of `deploy/`.
mod accounts {
    use ocm_api::{components, namespaces, rbac};

    use super::rights::Account;

    /// The `ocm hub` process.
    pub(super) const HUB: Account = Account { namespace: namespaces::HUB, name: "hub-controller-sa" };
    /// Agents that bootstrap.
    pub(super) const BOOTSTRAP: Account =
        Account { namespace: namespaces::OPERATOR, name: rbac::BOOTSTRAP_SERVICE_ACCOUNT };
    /// The `ocm agent` process.
    pub(super) const AGENT: Account = Account { namespace: namespaces::AGENT, name: components::DEFAULT_EXECUTOR_NAME };
}
