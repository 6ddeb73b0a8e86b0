//! The `ocm` binary: hub, agent and webhook in one program. It composes and holds no logic.

mod agent;
mod args;
mod crds;
mod hub;
mod process;
mod webhook;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

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
}

fn main() -> ExitCode {
    let command = Cli::parse().command;
    match process::block_on(run(command)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            process::print_error(error.as_ref());
            ExitCode::FAILURE
        }
    }
}

async fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Hub(args) => hub::run(*args).await,
        Command::Agent(args) => agent::run(*args).await,
        Command::Webhook(args) => webhook::run(args).await,
        Command::Crds(args) => crds::run(&args),
    }
}
