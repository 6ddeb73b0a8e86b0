//! Process-wide parts: Tokio runtime, logs, environment, signals, exit. Only binaries call these.

use std::{
    error::Error as StdError,
    future::Future,
    io::{self, Write as _},
    time::Duration,
};

use jiff::SignedDuration;
use kube::Client;
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time::{Instant, sleep},
};
use tracing::{info, warn};

use crate::{
    Context,
    client::{self, ClientError, Endpoint, Problem, Proxies},
    clock::approximate,
    error::chain,
    kubeconfig::KubeconfigError,
    logs,
};

/// How long an API server may take to answer when a process starts.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The wait between two attempts within that time.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);
/// Clocks may differ by this much.
const CLOCK_TOLERANCE: SignedDuration = SignedDuration::from_secs(30);
/// How long a process may take to shut down.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(20);

/// The file with the namespace of a pod's service account.
const POD_NAMESPACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// The API server did not answer, or refused the credentials, when a process started.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    /// The client could not be built, or there are no credentials.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// There was no answer in time, or one that is an error.
    #[error("failed to reach the API server {server} of {credentials}")]
    Failed {
        /// The API server's address.
        server: String,
        /// Where the credentials come from, for people.
        credentials: String,
        /// What to do about it.
        hint: String,
        /// What went wrong.
        #[source]
        problem: Problem,
    },
}

/// Sets up the TLS provider of the process, and runs a command to completion on a new Tokio runtime.
///
/// # Errors
/// If the runtime cannot be started.
pub fn block_on<T>(command: impl Future<Output = T>) -> io::Result<T> {
    client::install_crypto_provider();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().worker_threads(workers()).build()?;
    let outcome = runtime.block_on(command);
    runtime.shutdown_background();
    Ok(outcome)
}

/// Controllers wait for the network most of the time, so more threads would only use memory.
fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get().min(4))
}

/// Starts logging at the level of `RUST_LOG`. If that is not set, `verbosity` decides: 0 is info, up to 3 debug, more is trace.
pub fn start_logs(verbosity: u8) {
    let default = match verbosity {
        // kube logs a failed watch as well, and informers log it already.
        0 => "info,kube_runtime=off",
        1..=3 => "debug,hyper=info,hyper_util=info,h2=info,rustls=info,tower=info,kube=info",
        _ => "trace",
    };
    logs::init(&std::env::var("RUST_LOG").unwrap_or_else(|_| default.to_owned()));
}

/// The context of a process, with the proxies that its environment names, and whether it runs in a pod.
#[must_use]
pub fn context() -> Context {
    let proxies = Proxies::from_variables(|name| std::env::var(name).ok());
    Context::new().with_proxies(proxies).in_pod(pod_namespace().is_some())
}

/// Ends `context` on SIGTERM or SIGINT (Ctrl-C). On a second signal, the process exits at once.
///
/// # Errors
/// If the signals cannot be handled.
pub fn end_on_signal(context: &Context) -> io::Result<()> {
    let mut signals = TerminationSignals::new()?;
    let context = context.clone();
    tokio::spawn(async move {
        let signal = signals.next().await;
        info!(signal, "asked to end, finishing what is in progress");
        context.end();
        let signal = signals.next().await;
        warn!(signal, "asked to end again, ending at once");
        exit();
    });
    Ok(())
}

/// SIGTERM and SIGINT.
struct TerminationSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl TerminationSignals {
    fn new() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

#[expect(clippy::exit, reason = "a second signal asks for an end without waiting")]
fn exit() -> ! {
    std::process::exit(1)
}

/// A process did not shut down in time; what was in progress was aborted.
#[derive(Debug, thiserror::Error)]
#[error("failed to finish what was in progress within {} s, aborted it", SHUTDOWN_TIMEOUT.as_secs())]
pub struct ShutdownTimeout;

/// Runs `work` to completion, and then stops the context. From the moment that the context is asked to end, both may take
/// twenty seconds in total: pods are killed after thirty.
///
/// # Errors
/// [`ShutdownTimeout`] if they take longer; the context is then [aborted](Context::abort).
pub async fn run_to_the_end<T>(context: &Context, work: impl Future<Output = T>) -> Result<T, ShutdownTimeout> {
    let all = async {
        let outcome = work.await;
        context.stop().await;
        outcome
    };
    let limit = async {
        context.ended().await;
        sleep(SHUTDOWN_TIMEOUT).await;
    };
    tokio::select! {
        outcome = all => Ok(outcome),
        () = limit => {
            context.abort();
            Err(ShutdownTimeout)
        }
    }
}

/// Writes to stderr why a command failed: the chain of causes on one line, and a hint on another if there is one.
pub fn print_error(error: &(dyn StdError + 'static)) {
    let hint = hint(error).map_or_else(String::new, |hint| format!("hint: {hint}\n"));
    // Nothing can be done if stderr is closed.
    let _ = write!(io::stderr(), "error: {}\n{hint}", chain(error));
}

fn hint<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a str> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(ConnectionError::Failed { hint, .. }) = error.downcast_ref() {
            return Some(hint);
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

/// The namespace of the pod's service account, if the process runs in a pod.
#[must_use]
pub fn pod_namespace() -> Option<String> {
    let namespace = std::fs::read_to_string(POD_NAMESPACE).ok()?;
    Some(namespace.trim().to_owned()).filter(|namespace| !namespace.is_empty())
}

/// Checks that the API server answers and accepts the credentials, so that a wrong kubeconfig is an error at the start
/// instead of watches that keep failing. Logs a warning if its clock shows another time.
///
/// # Errors
/// [`ConnectionError`], if the server does not answer within five seconds or refuses the credentials.
pub async fn check_connection(endpoint: &Endpoint, user_agent: &str) -> Result<(), ConnectionError> {
    let client = endpoint.client(user_agent)?;
    // A plugin may take longer than a server.
    endpoint.authenticate().await?;
    let deadline = Instant::now() + CONNECT_TIMEOUT;
    loop {
        let problem = match tokio::time::timeout_at(deadline, attempt(endpoint, &client)).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => endpoint.problem(&error),
            Err(elapsed) => endpoint.problem(&elapsed),
        };
        if Instant::now() + RETRY_INTERVAL > deadline || is_final(&problem) {
            return Err(failed(endpoint, problem));
        }
        sleep(RETRY_INTERVAL).await;
    }
}

async fn attempt(endpoint: &Endpoint, client: &Client) -> kube::Result<()> {
    let answer = client::probe(client, endpoint.clock()).await?;
    answer.version()?;
    if let Some(difference) = answer.ahead().and_then(clock_difference) {
        warn!(server = %endpoint.server(), "{difference}: set both clocks, such as with NTP");
    }
    Ok(())
}

fn failed(endpoint: &Endpoint, problem: Problem) -> ConnectionError {
    ConnectionError::Failed {
        server: endpoint.server().to_string(),
        credentials: endpoint.origin(),
        hint: endpoint.hint(&problem),
        problem,
    }
}

/// Whether another attempt would have the same outcome.
fn is_final(problem: &Problem) -> bool {
    matches!(
        problem,
        Problem::Unauthorized { .. }
            | Problem::UnknownAuthority
            | Problem::WrongName { .. }
            | Problem::Expired { .. }
            | Problem::NotYetValid { .. }
    )
}

/// The difference between the clocks of this machine and of a server, in words; `None` if it is too small to matter.
#[must_use]
pub fn clock_difference(ahead: SignedDuration) -> Option<String> {
    let side = if ahead.is_negative() { "behind" } else { "ahead of" };
    let is_relevant = ahead.abs() >= CLOCK_TOLERANCE;
    is_relevant.then(|| format!("the clock of this machine is {} {side} that of the API server", approximate(ahead)))
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_does_not_end_when_it_is_asked_to_is_aborted() {
        let (context, start) = (Context::new(), Instant::now());
        context.spawn_to_completion(pending());
        context.end();
        let ended = context.clone();
        let outcome = run_to_the_end(&context, async move { ended.ended().await }).await;
        assert!(outcome.is_err() && start.elapsed() <= SHUTDOWN_TIMEOUT + RETRY_INTERVAL, "{outcome:?}");
        context.stop().await;
    }

    #[test]
    fn a_clock_that_differs_by_seconds_is_not_worth_a_warning() {
        let text_of = |seconds| clock_difference(SignedDuration::from_secs(seconds));
        assert_eq!([0, 29, -29].map(text_of), [None, None, None]);
        let text = text_of(-600).unwrap();
        assert_eq!(text, "the clock of this machine is 10 minutes behind that of the API server");
        assert!(text_of(3600).unwrap().contains("60 minutes ahead of"));
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_is_not_asked_to_end_has_all_the_time_it_needs() {
        let context = Context::new();
        let work = async {
            sleep(SHUTDOWN_TIMEOUT * 100).await;
            7
        };
        assert_eq!(run_to_the_end(&context, work).await.unwrap(), 7);
        assert!(context.is_ended());
    }
}
