//! `clusteradm`, the command line of a hub administrator, as a library: other programs and tests run its commands in
//! their own process.
//!
//! ```
//! use ocm_cli::{Console, Environment};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let (console, captured) = Console::captured();
//! let environment = Environment::empty(console);
//! assert_eq!(ocm_cli::run(["clusteradm", "version"], &environment).await, ocm_cli::SUCCESS);
//! assert!(captured.stdout().contains("default bundle"));
//! assert_eq!(ocm_cli::run(["clusteradm", "get", "clusters"], &environment).await, ocm_cli::FAILURE);
//! assert!(captured.stderr().starts_with("error: no kubeconfig"));
//! # }
//! ```
//!
//! The process must have a TLS provider, see [`ocm_runtime::client::install_crypto_provider`].

mod args;
mod client;
mod cmd;
mod console;
mod environment;
mod failure;
mod hub;
mod kubeconfig;
mod output;

use clap::{Parser as _, error::ErrorKind};

use crate::{args::Cli, cmd::Context, failure::Failure};
pub use crate::{
    console::{Captured, Console},
    environment::{Environment, ServiceAccount},
};
pub use ocm_runtime::client::Proxies;

/// Exit code of success.
pub const SUCCESS: u8 = 0;

/// Exit code of every failure.
pub const FAILURE: u8 = 1;

/// Runs the command of a command line, whose first argument is the name of the program, and returns its exit code.
pub async fn run(arguments: impl IntoIterator<Item: Into<String>>, environment: &Environment) -> u8 {
    let console = &environment.console;
    let (arguments, warnings) = args::normalize(arguments.into_iter().map(Into::into));
    let header = args::header(arguments.first().map_or("clusteradm", String::as_str));
    for warning in warnings {
        console.warn(&warning);
    }
    let outcome = match Cli::try_parse_from(arguments) {
        Ok(Cli { command, global }) => {
            cmd::run(command, &Context { global, header, environment: environment.clone() }).await
        }
        Err(error) => return usage(&error, console),
    };
    outcome.map_or_else(|failure| report(&failure, console), |()| SUCCESS)
}

fn report(failure: &Failure, console: &Console) -> u8 {
    console.note(&failure.to_string());
    FAILURE
}

/// Help goes to stdout and is no failure, also if it is shown because a group of commands was named without a command.
fn usage(error: &clap::Error, console: &Console) -> u8 {
    let text = error.render().to_string();
    let is_help = !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    if !is_help {
        console.note(&text);
        return FAILURE;
    }
    console.print(&text).map_or_else(|failure| report(&failure, console), |()| SUCCESS)
}
