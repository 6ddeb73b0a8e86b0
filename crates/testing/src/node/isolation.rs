//! Starting this program again, inside namespaces of its own.

use std::future::Future;
use std::io::Write as _;
use std::process::{Child, Command, ExitCode};

use anyhow::{Context as _, Result, bail};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};

use super::{ADDRESS, cgroups, requirements};
use crate::spawn;

/// Set inside; its value is the control group that all containers are in.
const INSIDE: &str = "OCM_TESTING_NODE_CGROUP";
const SCRIPT: &str = include_str!("namespaces.sh");
const UNSHARE: [&str; 6] = ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];

/// Runs `program` in namespaces of its own. Must be called first in `main`.
///
/// The first call starts this program again with the same arguments, inside, and waits for its end; the second one, there,
/// runs `program`. Ctrl-C and SIGTERM end it, and nothing is left behind. Returns its exit code; an error is printed.
pub fn isolated<F, Fut>(program: F) -> ExitCode
where
    F: FnOnce() -> Fut,
    Fut: Future<Output = Result<()>>,
{
    let outcome = runtime().and_then(|runtime| match std::env::var(INSIDE) {
        Ok(_) => runtime.block_on(Box::pin(program())).map(|()| ExitCode::SUCCESS),
        Err(_) => runtime.block_on(outside()),
    });
    outcome.unwrap_or_else(|error| {
        // A closed stdout is no error: the output has no reader.
        let _ = writeln!(std::io::stderr(), "error: {error:#}");
        ExitCode::FAILURE
    })
}

/// Whether this is the program that [`isolated`] has started again, in namespaces of its own.
pub fn is_inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// The control group of these namespaces; an error outside.
pub(super) fn cgroup() -> Result<String> {
    std::env::var(INSIDE).context("a node is started within node::isolated, in namespaces of its own")
}

fn runtime() -> Result<Runtime> {
    Builder::new_multi_thread().enable_all().build().context("failed to start the Tokio runtime")
}

async fn outside() -> Result<ExitCode> {
    requirements::check()?;
    cgroups::remove_dead();
    let cgroup = cgroups::own();
    cgroups::create(&cgroup)?;
    let child = spawn::spawn(command(&cgroup)?)?;
    let code = end_of(child).await;
    cgroups::remove(&cgroup).await;
    code
}

fn command(cgroup: &str) -> Result<Command> {
    let own = std::env::current_exe().context("failed to find this program")?;
    let mut command = spawn::bound_command("unshare");
    command.args(UNSHARE).args(["sh", "-c", SCRIPT, "sh", ADDRESS]).arg(own);
    command.args(std::env::args_os().skip(1)).env(INSIDE, cgroup);
    Ok(command)
}

/// Waits for the program inside. Ctrl-C reaches it as well, so that only the wait has to outlive it; SIGTERM is for this
/// process alone, and ends what is inside with it.
async fn end_of(mut child: Child) -> Result<ExitCode> {
    let mut interrupt = signal(SignalKind::interrupt()).context("failed to listen for SIGINT")?;
    let mut terminate = signal(SignalKind::terminate()).context("failed to listen for SIGTERM")?;
    let pid = rustix::process::Pid::from_child(&child);
    let mut ended = tokio::task::spawn_blocking(move || child.wait());
    let status = loop {
        tokio::select! {
            status = &mut ended => break status?.context("failed to wait for the program in its namespaces")?,
            _ = interrupt.recv() => {}
            _ = terminate.recv() => drop(rustix::process::kill_process(pid, rustix::process::Signal::KILL)),
        }
    };
    match status.code() {
        Some(code) => Ok(ExitCode::from(u8::try_from(code).unwrap_or(1))),
        None => bail!("the program in its namespaces was ended: {status}"),
    }
}
