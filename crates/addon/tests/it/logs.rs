//! What the managers of this process have logged, for the message of a test that fails.

use std::{
    io::{self, Write},
    sync::{Mutex, Once, PoisonError},
};

static LOG: Mutex<Vec<u8>> = Mutex::new(Vec::new());

struct Log;

impl Write for Log {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        LOG.lock().unwrap_or_else(PoisonError::into_inner).write(text)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Records from now on what this process logs.
pub(crate) fn record() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        let filter = "info,ocm_addon=debug,ocm_runtime=debug";
        let log = tracing_subscriber::fmt().with_ansi(false).with_env_filter(filter).with_writer(|| Log);
        // Somebody may watch the log otherwise.
        _ = log.try_init();
    });
}

/// The lines about a cluster, and those about none: reconciles of other clusters are left out.
pub(crate) fn about(cluster: &str) -> String {
    let log = LOG.lock().unwrap_or_else(PoisonError::into_inner);
    let log = String::from_utf8_lossy(&log);
    let lines = log.lines().filter(|line| line.contains(cluster) || !line.contains("reconcile{"));
    lines.collect::<Vec<_>>().join("\n")
}
