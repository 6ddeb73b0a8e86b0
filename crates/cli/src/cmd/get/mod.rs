//! `clusteradm get`: shows objects of the hub.

mod addon;
mod clusters;
mod placements;
mod token;

use clap::Subcommand;

use crate::{cmd::Context, failure::Failure};

/// What to show.
#[derive(Debug, Subcommand)]
pub(crate) enum GetCommand {
    /// Show a token for agents to register with, and the join command that uses it
    Token(token::TokenArgs),
    /// Show the managed clusters
    #[command(alias = "cluster")]
    Clusters(clusters::ClustersArgs),
    /// Show the add-ons, and their state on the clusters
    #[command(alias = "addons")]
    Addon(addon::AddonArgs),
    /// Show the placements, and the clusters that they selected
    #[command(alias = "placement")]
    Placements(placements::PlacementsArgs),
}

/// Runs the command.
pub(crate) async fn run(command: GetCommand, context: &Context) -> Result<(), Failure> {
    match command {
        GetCommand::Token(args) => token::run(&args, context).await,
        GetCommand::Clusters(args) => clusters::run(&args, context).await,
        GetCommand::Addon(args) => addon::run(&args, context).await,
        GetCommand::Placements(args) => placements::run(&args, context).await,
    }
}
