//! Prints each step with its duration.

use std::future::Future;
use std::io::Write as _;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context as _, Result};

/// Prints a line. A closed stdout is no error: the output has no reader.
pub fn print_line(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// Runs a step, and prints its duration.
pub async fn step<T>(what: &str, task: impl Future<Output = Result<T>>) -> Result<T> {
    let mut out = std::io::stdout();
    let _ = write!(out, "  {what} ");
    let _ = out.flush();
    let started = Instant::now();
    let outcome = task.await;
    let seconds = started.elapsed().as_secs_f64();
    let dots = ".".repeat(72_usize.saturating_sub(what.len()));
    match &outcome {
        Ok(_) => print_line(&format!("{dots} {seconds:6.2} s")),
        Err(_) => print_line(&format!("{dots} failed after {seconds:.2} s")),
    }
    outcome.with_context(|| format!("{what} failed"))
}

/// Prints an error with its causes, and returns the exit code of the program.
pub fn finish(outcome: Result<()>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print_line(&format!("\nerror: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
