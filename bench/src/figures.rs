//! Printing figures, one JSON line each.

use std::{io::Write as _, time::Duration};

use serde_json::json;

/// Prints a figure.
pub(crate) fn print(figure: &str, value: f64, unit: &str) {
    let rounded = (value * 1000.0).round() / 1000.0;
    let line = json!({"figure": figure, "value": rounded, "unit": unit});
    // A closed stdout is no error: the output has no reader.
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// Prints how long something took: the middle, and what all but a few stay below. `sorted` is.
pub(crate) fn print_percentiles(figure: &str, sorted: &[Duration]) {
    for (name, share) in [("p50", 50), ("p90", 90), ("p99", 99)] {
        let index = (sorted.len() * share / 100).min(sorted.len().saturating_sub(1));
        if let Some(took) = sorted.get(index) {
            print(&format!("{figure}, {name}"), took.as_secs_f64() * 1000.0, "ms");
        }
    }
}

/// A count as a figure.
#[expect(clippy::cast_precision_loss, reason = "counts are smaller than 2^53")]
pub(crate) fn per_one(count: usize) -> f64 {
    count as f64
}

/// Says why there are no more figures.
pub(crate) fn complain(cause: &str) {
    let _ = writeln!(std::io::stderr(), "error: {cause}");
}
