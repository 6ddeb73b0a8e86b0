//! What every command does alike: its runtime, the way it reaches a cluster, its end.

use std::{future::Future, path::Path};

use anyhow::Context as _;
use ocm_runtime::{Context, client::Endpoint, process};

pub(crate) use ocm_runtime::process::{host, pod_namespace, print_error, run_to_the_end, start_logs};

/// How a command introduces itself while it looks whether a cluster is there.
const USER_AGENT: &str = concat!("ocm/", env!("CARGO_PKG_VERSION"));

/// Runs a command to its end, with the process-wide parts set up first.
pub(crate) fn block_on(command: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    process::block_on(command).context("failed to start the Tokio runtime")?
}

/// Ends `context` when the process is asked to.
pub(crate) fn end_on_signal(context: &Context) -> anyhow::Result<()> {
    process::end_on_signal(context).context("failed to listen for SIGTERM and SIGINT")
}

/// Checks that a cluster answers and knows us.
pub(crate) async fn reach(endpoint: &Endpoint, kubeconfig: Option<&Path>) -> anyhow::Result<()> {
    Ok(process::reach(endpoint, kubeconfig, USER_AGENT).await?)
}
