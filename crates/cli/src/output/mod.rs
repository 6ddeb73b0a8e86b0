//! The forms of data on stdout and in files.

pub(crate) mod secret_file;
pub(crate) mod table;
pub(crate) mod tree;
pub(crate) mod wrap;
pub(crate) mod yaml;

use clap::ValueEnum;

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
