//! What is a process's and nobody else's: runtime, logs, signals, where it runs. Only binaries call these.

use std::{
    error::Error as StdError,
    future::Future,
    io::{self, Write as _},
    time::Duration,
};

use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time::{Instant, sleep},
};
use tracing::{info, warn};

use crate::{
    Context,
    client::{self, ClientError, Endpoint, Proxies},
    error::chain,
    kubeconfig::KubeconfigError,
    logs,
};

/// How long a cluster that does not answer is given at start-up.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(500);
/// How long a process that is asked to end has for it.
const GRACE: Duration = Duration::from_secs(20);

/// Where a pod finds the namespace of its service account.
const POD_NAMESPACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// A cluster did not answer, or refused the credentials, when a process started.
#[derive(Debug, thiserror::Error)]
pub enum Unreachable {
    /// The client could not be built.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The cluster answered with an error, or not at all.
    #[error("failed to reach the API server {server} of {credentials}")]
    Refused {
        /// The API server's address.
        server: String,
        /// Where the credentials come from, for people.
        credentials: String,
        /// What went wrong.
        #[source]
        source: Box<kube::Error>,
    },
    /// The cluster did not answer in time.
    #[error("failed to reach the API server {server} of {credentials}: no answer within {} s", PATIENCE.as_secs())]
    Silent {
        /// The API server's address.
        server: String,
        /// Where the credentials come from, for people.
        credentials: String,
    },
}

/// Runs a command to its end on a runtime of its own, with the TLS provider of the process set up first.
///
/// # Errors
/// When the runtime cannot be started.
pub fn block_on<T>(command: impl Future<Output = T>) -> io::Result<T> {
    client::install_crypto_provider();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().worker_threads(workers()).build()?;
    let outcome = runtime.block_on(command);
    runtime.shutdown_background();
    Ok(outcome)
}

/// Controllers wait for the network most of the time: more threads than these only cost memory.
fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get().min(4))
}

/// Starts logging: at `RUST_LOG` where it is set, else at info, or as `verbosity` says: up to 3 is debug, more is trace.
pub fn start_logs(verbosity: u8) {
    let default = match verbosity {
        // kube's own words about a failed watch come a second time as ours.
        0 => "info,kube_runtime=off",
        1..=3 => "debug,hyper=info,hyper_util=info,h2=info,rustls=info,tower=info,kube=info",
        _ => "trace",
    };
    logs::init(&std::env::var("RUST_LOG").unwrap_or_else(|_| default.to_owned()));
}

/// The context of a process, with the proxies that its environment names.
#[must_use]
pub fn context() -> Context {
    Context::new().with_proxies(Proxies::from_variables(|name| std::env::var(name).ok()))
}

/// Ends `context` when the process is asked to: by SIGTERM, as in a pod, or by Ctrl-C. Asked a second time, the process
/// ends at once.
///
/// # Errors
/// When the operating system refuses to tell of signals.
pub fn end_on_signal(context: &Context) -> io::Result<()> {
    let mut signals =
        Signals { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? };
    let context = context.clone();
    tokio::spawn(async move {
        let signal = signals.next().await;
        info!(signal, "asked to end, finishing what is in progress");
        context.end();
        let signal = signals.next().await;
        warn!(signal, "asked to end again, ending at once");
        leave();
    });
    Ok(())
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

#[expect(clippy::exit, reason = "who asks twice does not want to wait for anything")]
fn leave() -> ! {
    std::process::exit(1)
}

/// A process was asked to end, and what it had begun was not finished in time.
#[derive(Debug, thiserror::Error)]
#[error("failed to finish what was in progress within {} s, broke it off", GRACE.as_secs())]
pub struct Unfinished;

/// Does the work of a process, and stops the context afterwards. From the moment that the context is asked to end, by
/// whomever, there are twenty seconds for all of it: pods are killed after thirty.
///
/// # Errors
/// [`Unfinished`] when they were not enough; the context is then [aborted](Context::abort).
pub async fn run_to_the_end<T>(context: &Context, work: impl Future<Output = T>) -> Result<T, Unfinished> {
    let all = async {
        let outcome = work.await;
        context.stop().await;
        outcome
    };
    let limit = async {
        context.ended().await;
        sleep(GRACE).await;
    };
    tokio::select! {
        outcome = all => Ok(outcome),
        () = limit => {
            context.abort();
            Err(Unfinished)
        }
    }
}

/// Says on stderr why a command failed: the causes on one line, and what to do about it, if that is known, on another.
pub fn print_error(error: &(dyn StdError + 'static)) {
    let hint = hint(error).map_or_else(String::new, |hint| format!("hint: {hint}\n"));
    // Where stderr is closed there is nobody to tell.
    let _ = write!(io::stderr(), "error: {}\n{hint}", chain(error));
}

fn hint(error: &(dyn StdError + 'static)) -> Option<&'static str> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(Unreachable::Refused { .. } | Unreachable::Silent { .. }) = error.downcast_ref() {
            return Some("check that it is up and that the address and the credentials are right");
        }
        if is_not_in_cluster(error) {
            return Some("name the kubeconfig of a cluster on the command line; --help says how");
        }
        next = error.source();
    }
    None
}

fn is_not_in_cluster(error: &(dyn StdError + 'static)) -> bool {
    let kubeconfig = match error.downcast_ref() {
        Some(ClientError::Kubeconfig(error)) => Some(&**error),
        _ => error.downcast_ref(),
    };
    matches!(kubeconfig, Some(KubeconfigError::NotInCluster(_)))
}

/// The name of this machine or pod.
#[must_use]
pub fn host() -> String {
    let from_kernel = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = from_kernel.trim();
    if name.is_empty() { "unknown".to_owned() } else { name.to_owned() }
}

/// The namespace a pod's service account lives in, if this is a pod.
#[must_use]
pub fn pod_namespace() -> Option<String> {
    let namespace = std::fs::read_to_string(POD_NAMESPACE).ok()?;
    Some(namespace.trim().to_owned()).filter(|namespace| !namespace.is_empty())
}

/// Checks that a cluster answers and knows us, so that a kubeconfig that points nowhere is told at once and not by
/// watches that fail for ever.
///
/// # Errors
/// [`Unreachable`], when it has not answered for five seconds or does not accept the credentials.
pub async fn reach(endpoint: &Endpoint, user_agent: &str) -> Result<(), Unreachable> {
    let client = endpoint.client(user_agent)?;
    let deadline = Instant::now() + PATIENCE;
    let (server, credentials) = (endpoint.server().to_string(), endpoint.origin());
    loop {
        match tokio::time::timeout_at(deadline, client.apiserver_version()).await {
            Ok(Ok(_)) => return Ok(()),
            Ok(Err(error)) if Instant::now() + PAUSE > deadline || is_final(&error) => {
                return Err(Unreachable::Refused { server, credentials, source: Box::new(error) });
            }
            Ok(Err(_)) => sleep(PAUSE).await,
            Err(_) => return Err(Unreachable::Silent { server, credentials }),
        }
    }
}

/// Whether trying again would lead to the same answer.
fn is_final(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 401)
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_does_not_end_when_it_is_asked_to_is_broken_off() {
        let (context, start) = (Context::new(), Instant::now());
        context.spawn_to_completion(pending());
        context.end();
        let ended = context.clone();
        let outcome = run_to_the_end(&context, async move { ended.ended().await }).await;
        assert!(outcome.is_err() && start.elapsed() <= GRACE + PAUSE, "{outcome:?}");
        context.stop().await;
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_is_not_asked_to_end_has_all_the_time_it_needs() {
        let context = Context::new();
        let work = async {
            sleep(GRACE * 100).await;
            7
        };
        assert_eq!(run_to_the_end(&context, work).await.unwrap(), 7);
        assert!(context.is_ended());
    }
}
