//! Names that no other test has.

use std::sync::atomic::{AtomicU32, Ordering};

/// `prefix` with something behind it that makes it unique on this machine, valid as a DNS label.
///
/// Tests share control planes; each takes cluster names and namespaces of its own from here.
pub fn unique(prefix: &str) -> String {
    static COUNTER: AtomicU32 = AtomicU32::new(1);
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    format!("{prefix}-{:x}-{number}", std::process::id())
}
