//! How data looks on stdout.

pub(crate) mod table;
pub(crate) mod tree;
pub(crate) mod yaml;

use std::io::{self, Write as _};

use clap::ValueEnum;

use crate::failure::Failure;

/// The forms of a `get` command's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A tree of names and values
    Tree,
    /// One line per object
    Table,
    /// The objects themselves
    Yaml,
}

/// Writes data to stdout. A reader that has seen enough is no failure.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(format!("failed to write the output: {error}")))
        }
        _ => Ok(()),
    }
}
