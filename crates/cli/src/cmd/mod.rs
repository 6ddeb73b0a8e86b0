//! The commands, one module per noun and one file per verb.

pub(crate) mod accept;
pub(crate) mod addon;
pub(crate) mod get;
mod selection;
mod version;

use crate::{
    args::{Command, GlobalArgs},
    failure::Failure,
};

/// What every command is given.
pub(crate) struct Context {
    /// The global flags.
    pub(crate) global: GlobalArgs,
    /// How the user calls this program.
    pub(crate) header: String,
}

impl Context {
    /// Says on stderr that nothing is going to happen, if so.
    pub(crate) fn announce_dry_run(&self, command: &str) {
        if self.global.dry_run {
            eprintln!("{} {command} is running in dry-run mode", self.header);
        }
    }
}

/// Runs the command.
pub(crate) async fn run(command: Command, context: Context) -> Result<(), Failure> {
    match command {
        Command::Get(command) => get::run(command, &context).await,
        Command::Accept(args) => accept::run(&args, &context).await,
        Command::Addon(command) => addon::run(command, &context).await,
        Command::Version => version::run(&context.header),
    }
}
