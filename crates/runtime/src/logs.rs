//! Logs on stderr.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

/// Sends the process's logs to stderr, in colour when that is a terminal.
///
/// `filter` is a `tracing` filter such as `info` or `info,ocm_agent=debug`; what does not parse is
/// replaced by `info`. Only binaries call this, once.
pub fn init(filter: &str) {
    let parsed = EnvFilter::try_new(filter);
    let invalid = parsed.as_ref().err().map(ToString::to_string);
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(parsed.unwrap_or_else(|_| EnvFilter::new("info")))
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    // Fails only when a subscriber is set already, which is then the one to keep.
    let _ = subscriber.try_init();
    if let Some(cause) = invalid {
        tracing::warn!(filter, cause, "cannot read the log filter, using info");
    }
}

#[cfg(test)]
pub(crate) mod testing;
