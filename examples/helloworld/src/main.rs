//! helloworld: an add-on to learn from.
//!
//! Its agent copies the ConfigMaps of a cluster's namespace on the hub into its own namespace on the managed cluster: they
//! are created, updated and deleted with their originals.
//!
//! `helloworld manager` runs on the hub ([`addon`]), `helloworld agent` on each managed cluster ([`sync`]).

mod addon;
mod sync;

use std::process::ExitCode;

use clap::Parser;
use ocm_addon::command::{AgentArgs, ManagerArgs};

/// An add-on that copies ConfigMaps from the hub to managed clusters.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
enum Helloworld {
    /// Run on the hub: deploy the agent to clusters, and give it an identity
    Manager(ManagerArgs),
    /// Run on a managed cluster: copy ConfigMaps
    Agent(AgentArgs),
}

fn main() -> ExitCode {
    match Helloworld::parse() {
        Helloworld::Manager(args) => {
            args.run(addon::NAME, |manager| Ok(manager.add_agent(addon::Helloworld::from_env())?))
        }
        Helloworld::Agent(args) => args.run(addon::NAME, sync::run),
    }
}
