//! `clusteradm`, the command line of a hub administrator.

mod args;
mod client;
mod cmd;
mod failure;
mod hub;
mod output;

use std::process::ExitCode;

use clap::{Parser as _, error::ErrorKind};

use crate::{args::Cli, cmd::Context, failure::Failure};

fn main() -> ExitCode {
    let (arguments, warnings) = args::normalize(std::env::args());
    let header = args::header(arguments.first().map_or("clusteradm", String::as_str));
    for warning in warnings {
        eprintln!("warning: {warning}");
    }
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    match run(cli, header) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprint!("{failure}");
            ExitCode::FAILURE
        }
    }
}

/// Help that was asked for goes to stdout and is no failure; that a command group alone shows its help neither.
fn usage(error: &clap::Error) -> ExitCode {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        print!("{}", error.render());
        return ExitCode::SUCCESS;
    }
    let _ = error.print();
    if error.use_stderr() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn run(cli: Cli, header: String) -> Result<(), Failure> {
    ocm_runtime::client::install_crypto_provider();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("failed to start: {error}")))?;
    runtime.block_on(cmd::run(cli.command, Context { global: cli.global, header }))
}
