//! `clusteradm placement`: which clusters placements select.

mod explain;

use clap::Subcommand;

use crate::{cmd::Context, failure::Failure};

/// What to do with a placement.
#[derive(Debug, Subcommand)]
pub(crate) enum PlacementCommand {
    /// Explain why a placement selects some clusters and not others, and what would change that
    Explain(explain::ExplainArgs),
}

/// Runs the command.
pub(crate) async fn run(command: PlacementCommand, context: &Context) -> Result<(), Failure> {
    match command {
        PlacementCommand::Explain(args) => explain::run(&args, context).await,
    }
}
