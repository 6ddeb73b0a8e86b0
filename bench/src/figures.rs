//! Printing figures, one JSON line each.

use std::io::Write as _;

use serde_json::json;

/// Prints a figure.
pub(crate) fn print(figure: &str, value: f64, unit: &str) {
    let rounded = (value * 1000.0).round() / 1000.0;
    let line = json!({"figure": figure, "value": rounded, "unit": unit});
    // Where nobody reads there is nobody to tell.
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// Says why there are no more figures.
pub(crate) fn complain(cause: &str) {
    let _ = writeln!(std::io::stderr(), "error: {cause}");
}
