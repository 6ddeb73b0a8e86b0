//! What all commands share: runtime, connection check, shutdown.

use std::{future::Future, io::Write as _, path::PathBuf, time::Duration};

use anyhow::Context as _;
use ocm_runtime::{Context, client::Endpoint, process};
use tracing::info;

pub(crate) use ocm_runtime::process::{context, host, pod_namespace, print_error, run_to_the_end, start_logs};

/// How often the files of --terminate-on-files are read.
const FILE_POLL: Duration = Duration::from_secs(5);

/// The user agent of the connection check.
const USER_AGENT: &str = concat!("ocm/", env!("CARGO_PKG_VERSION"));

/// Runs a command on its own runtime.
pub(crate) fn block_on(command: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    process::block_on(command).context("failed to start the Tokio runtime")?
}

/// Ends `context` on SIGTERM or SIGINT.
pub(crate) fn end_on_signal(context: &Context) -> anyhow::Result<()> {
    process::end_on_signal(context).context("failed to listen for SIGTERM and SIGINT")
}

/// Ends `context` when one of these files is created, changed or deleted.
pub(crate) fn end_on_change(context: &Context, files: Vec<PathBuf>) {
    if files.is_empty() {
        return;
    }
    let read = move || files.iter().map(|file| std::fs::read(file).ok()).collect::<Vec<_>>();
    let (before, ended) = (read(), context.clone());
    context.spawn(async move {
        while read() == before {
            tokio::time::sleep(FILE_POLL).await;
        }
        info!("a file of --terminate-on-files has changed, exiting to be restarted");
        ended.end();
    });
}

/// Writes to stdout. A closed pipe, as in `ocm crds | head`, is no error.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome.context("failed to write to stdout"),
    }
}

/// Checks that a cluster answers and accepts the credentials.
pub(crate) async fn reach(endpoint: &Endpoint) -> anyhow::Result<()> {
    Ok(process::check_connection(endpoint, USER_AGENT).await?)
}
