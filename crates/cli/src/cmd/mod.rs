//! The commands, one module per noun and one file per verb.

pub(crate) mod accept;
pub(crate) mod addon;
pub(crate) mod check;
pub(crate) mod get;
mod list;
pub(crate) mod placement;
mod selection;
mod version;

use std::time::Duration;

use crate::{
    args::{Command, GlobalArgs},
    environment::Environment,
    failure::Failure,
};

/// The input of every command.
pub(crate) struct Context {
    /// The global flags.
    pub(crate) global: GlobalArgs,
    /// How the user calls this program.
    pub(crate) header: String,
    /// What commands read from the process around them.
    pub(crate) environment: Environment,
}

impl Context {
    /// Writes data to stdout.
    pub(crate) fn print(&self, text: &str) -> Result<(), Failure> {
        self.environment.console.print(text)
    }

    /// Writes a line to stderr.
    pub(crate) fn note(&self, line: &str) {
        self.environment.console.note_line(line);
    }

    /// Writes a warning to stderr.
    pub(crate) fn warn(&self, warning: &str) {
        self.environment.console.warn(warning);
    }

    /// Prints to stderr that nothing is changed, if `--dry-run` is set.
    pub(crate) fn announce_dry_run(&self, command: &str) {
        if self.global.dry_run {
            self.note(&format!("{} {command} is running in dry-run mode", self.header));
        }
    }
}

/// Runs the command, for `--timeout` at most.
pub(crate) async fn run(command: Command, context: &Context) -> Result<(), Failure> {
    let limit = context.global.timeout();
    // A command that waits ends by itself, and reports what it has waited for.
    let grace = if command.waits() { Duration::from_secs(5) } else { Duration::ZERO };
    tokio::time::timeout(limit + grace, start(command, context)).await.unwrap_or_else(|_| Err(no_answer(limit)))
}

async fn start(command: Command, context: &Context) -> Result<(), Failure> {
    match command {
        Command::Get(command) => get::run(command, context).await,
        Command::Accept(args) => accept::run(&args, context).await,
        Command::Check(command) => check::run(command, context).await,
        Command::Addon(command) => addon::run(command, context).await,
        Command::Placement(command) => placement::run(command, context).await,
        Command::Version => version::run(context),
    }
}

fn no_answer(limit: Duration) -> Failure {
    Failure::new(format!("the hub has not answered within {} seconds", limit.as_secs()))
        .hint("check that it can be reached from here, or set a longer --timeout")
}
