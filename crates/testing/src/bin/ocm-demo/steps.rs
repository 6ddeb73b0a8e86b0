//! Showing each step as it happens, with its duration.

use std::{future::Future, io::Write as _, time::Instant};

use anyhow::{Context as _, Result};

/// Prints a line. Where nobody reads there is nobody to tell.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// Runs a step and says how long it took.
pub(crate) async fn step<T>(what: &str, task: impl Future<Output = Result<T>>) -> Result<T> {
    let mut out = std::io::stdout();
    let _ = write!(out, "  {what} ");
    let _ = out.flush();
    let started = Instant::now();
    let outcome = task.await;
    let seconds = started.elapsed().as_secs_f64();
    let dots = ".".repeat(72_usize.saturating_sub(what.len()));
    match &outcome {
        Ok(_) => say(&format!("{dots} {seconds:6.2} s")),
        Err(_) => say(&format!("{dots} failed after {seconds:.2} s")),
    }
    outcome.with_context(|| format!("{what} failed"))
}
