//! Names that are unique among tests.

use std::sync::atomic::{AtomicU32, Ordering};

/// `prefix` with a suffix that makes it unique on this machine, valid as a DNS label.
///
/// Tests share control planes; each uses it for its cluster names and namespaces.
pub fn unique(prefix: &str) -> String {
    static COUNTER: AtomicU32 = AtomicU32::new(1);
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    format!("{prefix}-{:x}-{number}", std::process::id())
}
