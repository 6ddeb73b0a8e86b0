//! What is wrong with an expression.

use std::fmt;

use ocm_apimachinery::budget::Exceeded;

/// A place in an expression, counted from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "what the names say")]
pub struct Position {
    pub line: u32,
    pub column: u32,
}

/// Why an expression has no value, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem} (line {}, column {})", position.line, position.column)]
pub struct Error {
    /// The place that the problem is about.
    pub position: Position,
    /// What is wrong.
    pub problem: Problem,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The expression is invalid, whatever its input.
    Invalid(String),
    /// It has no value for this input.
    Failed(String),
    /// It costs more than allowed.
    TooExpensive(Exceeded),
}

impl Problem {
    pub(crate) fn at(self, position: Position) -> Error {
        Error { position, problem: self }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(text) | Self::Failed(text) => f.write_str(text),
            Self::TooExpensive(exceeded) => exceeded.fmt(f),
        }
    }
}

impl From<Exceeded> for Problem {
    fn from(exceeded: Exceeded) -> Self {
        Self::TooExpensive(exceeded)
    }
}

impl From<String> for Problem {
    fn from(text: String) -> Self {
        Self::Failed(text)
    }
}

impl From<&str> for Problem {
    fn from(text: &str) -> Self {
        Self::Failed(text.to_owned())
    }
}
