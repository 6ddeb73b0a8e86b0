//! What is the process's and nobody else's: runtime, signals, environment, the last words.

use std::{future::Future, io::Write as _, path::Path, time::Duration};

use anyhow::{Context as _, anyhow};
use ocm_runtime::{
    Context,
    client::{self, Endpoint},
    error::chain,
    logs,
};
use tokio::{
    signal::unix::{SignalKind, signal},
    time::{Instant, sleep},
};
use tracing::info;

/// How a command introduces itself while it looks whether a cluster is there.
const USER_AGENT: &str = concat!("ocm/", env!("CARGO_PKG_VERSION"));

/// Runs a command to its end, with the process-wide parts set up first.
pub(crate) fn block_on(command: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    client::install_crypto_provider();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().worker_threads(workers()).build();
    let runtime = runtime.context("failed to start the Tokio runtime")?;
    let outcome = runtime.block_on(command);
    runtime.shutdown_background();
    outcome
}

/// A hub or an agent waits for the network most of the time: more threads than these only cost memory.
fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get().min(4))
}

/// Starts logging, at `RUST_LOG` where it is set, else at `default`.
pub(crate) fn start_logs(verbosity: u8) {
    let default = match verbosity {
        // kube's own words about a failed watch come a second time as ours.
        0 => "info,kube_runtime=off",
        1..=3 => "debug,hyper=info,hyper_util=info,h2=info,rustls=info,tower=info,kube=info",
        _ => "trace",
    };
    logs::init(&std::env::var("RUST_LOG").unwrap_or_else(|_| default.to_owned()));
}

/// Ends `context` when the process is asked to: by SIGTERM, as in a pod, or by Ctrl-C.
pub(crate) fn end_on_signal(context: &Context) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("failed to listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("failed to listen for SIGINT")?;
    let context = context.clone();
    tokio::spawn(async move {
        let name = tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        };
        info!(signal = name, "asked to end, finishing what is in progress");
        context.end();
    });
    Ok(())
}

/// The name of this machine, as it stands in events.
pub(crate) fn host() -> String {
    let from_kernel = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = from_kernel.trim();
    if name.is_empty() { "unknown".to_owned() } else { name.to_owned() }
}

/// The namespace a pod's service account lives in, if this is a pod.
pub(crate) fn pod_namespace() -> Option<String> {
    let namespace = std::fs::read_to_string("/var/run/secrets/kubernetes.io/serviceaccount/namespace").ok()?;
    Some(namespace.trim().to_owned()).filter(|namespace| !namespace.is_empty())
}

/// Says on stderr why a command failed; the causes follow each other on one line, hints stand alone.
pub(crate) fn print_error(error: &anyhow::Error) {
    // Where stderr is closed there is nobody to tell.
    let _ = writeln!(std::io::stderr(), "error: {}", chain(error.as_ref()));
}

/// How long a cluster that does not answer is given at start-up.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(500);

/// Checks that a cluster answers and knows us, so that a kubeconfig that points nowhere is told at once and not by
/// watches that fail for ever.
pub(crate) async fn reach(endpoint: &Endpoint, kubeconfig: Option<&Path>) -> anyhow::Result<()> {
    let client = endpoint.client(USER_AGENT)?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        let error = match tokio::time::timeout_at(deadline, client.apiserver_version()).await {
            Ok(Ok(_)) => return Ok(()),
            Ok(Err(error)) => error.into(),
            Err(_) => anyhow!("no answer within {} s", PATIENCE.as_secs()),
        };
        if Instant::now() + PAUSE > deadline || is_final(&error) {
            let source = kubeconfig.map_or("the pod's service account".to_owned(), |path| path.display().to_string());
            let server = endpoint.server();
            return Err(error).context(format!(
                "failed to reach the API server {server} of {source}: check that it is up and that the address and the \
                 credentials are right"
            ));
        }
        sleep(PAUSE).await;
    }
}

/// Whether trying again would lead to the same answer.
fn is_final(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(kube::Error::Api(status)) if status.code == 401)
}
