//! The `ocm` binary: hub, agent and webhook in one program. It composes, and has no logic of its own.

mod address;
mod agent;
mod args;
mod crds;
mod flags;
mod hub;
mod process;
mod recovery;
mod webhook;
mod webhooks;

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use self::flags::Given;

/// Open Cluster Management: one hub, many Kubernetes clusters.
#[derive(Debug, Parser)]
#[command(name = "ocm", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Hub(Box<hub::HubArgs>),
    Agent(Box<agent::AgentArgs>),
    Webhook(webhook::WebhookArgs),
    Crds(crds::CrdsArgs),
    Webhooks(webhooks::WebhooksArgs),
    /// Print the flags of all commands as Markdown, for docs/reference/flags.md
    #[command(hide = true)]
    Flags,
}

fn main() -> ExitCode {
    let matches = flags::complete(Cli::command()).get_matches_from(flags::arguments());
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match process::block_on(run(cli.command, &Given::of(&matches))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            process::print_error(error.as_ref());
            ExitCode::FAILURE
        }
    }
}

async fn run(command: Command, given: &Given) -> anyhow::Result<()> {
    match command {
        Command::Hub(args) => hub::run(*args, given).await,
        Command::Agent(args) => agent::run(*args, given).await,
        Command::Webhook(args) => webhook::run(args, given).await,
        Command::Crds(args) => crds::run(&args),
        Command::Webhooks(args) => webhooks::run(&args),
        Command::Flags => process::print(&flags::page(&Cli::command())),
    }
}
