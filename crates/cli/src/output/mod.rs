//! The forms of data on stdout and in files.

pub(crate) mod secret_file;
pub(crate) mod table;
pub(crate) mod tree;
pub(crate) mod wrap;
pub(crate) mod yaml;

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

/// What cannot be written as JSON or YAML.
pub(crate) fn unwritable(error: &dyn std::error::Error) -> Failure {
    Failure::new(format!("failed to write the output: {error}"))
}
