//! The messages of a command that fails: the problem, and on a line of its own what to do about it.

use std::{error::Error, fmt};

/// One or several problems that ended a command.
#[derive(Debug)]
pub(crate) struct Failure(Vec<Problem>);

#[derive(Debug)]
struct Problem {
    message: String,
    hint: Option<String>,
}

impl Failure {
    /// A failure with this message: a clause without a full stop.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(vec![Problem { message: message.into(), hint: None }])
    }

    /// Adds what to do about it.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        if let Some(problem) = self.0.last_mut() {
            problem.hint = Some(hint.into());
        }
        self
    }

    /// The message of the first problem.
    pub(crate) fn message(&self) -> &str {
        self.0.first().map_or("", |problem| &problem.message)
    }

    /// The hint of the first problem.
    pub(crate) fn first_hint(&self) -> Option<&str> {
        self.0.first()?.hint.as_deref()
    }

    /// `Ok` if there are none, else one failure with all of them.
    pub(crate) fn all(failures: impl IntoIterator<Item = Self>) -> Result<(), Self> {
        let problems: Vec<_> = failures.into_iter().flat_map(|failure| failure.0).collect();
        if problems.is_empty() { Ok(()) } else { Err(Self(problems)) }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Problem { message, hint } in &self.0 {
            writeln!(f, "error: {message}")?;
            if let Some(hint) = hint {
                writeln!(f, "hint: {hint}")?;
            }
        }
        Ok(())
    }
}

impl Error for Failure {}

/// The innermost cause of an error, which is the specific one.
pub(crate) fn root_cause(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |&error| error.source());
    causes.last().unwrap_or(error).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_an_error_line_and_a_hint_line() {
        let failure = Failure::new("failed to do it").hint("do it otherwise");
        assert_eq!(failure.to_string(), "error: failed to do it\nhint: do it otherwise\n");
    }

    #[test]
    fn several_failures_are_all_shown() {
        assert!(Failure::all([]).is_ok());
        let both = Failure::all([Failure::new("one").hint("a"), Failure::new("two")]).unwrap_err();
        assert_eq!(both.to_string(), "error: one\nhint: a\nerror: two\n");
    }
}
