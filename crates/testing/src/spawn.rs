//! Starts child processes that end with this process, in whatever way it ends.
//!
//! The kernel's parent-death signal does it, also when this process is killed. Three traps:
//!
//! - The signal follows the *thread* that forked, so a server started from a test's thread would
//!   die with that test. All children are started by one thread that lives as long as the process.
//! - It has to be asked for in the child, and code between fork and exec is `unsafe` in Rust, which
//!   this workspace forbids. `setpriv --pdeathsig` (util-linux, on every Debian) does it for us and
//!   replaces itself by the program, so the child's id stays the same.
//! - A parent that dies before the child asked sends no signal. So once it has asked, a shell
//!   compares its parent with us, and goes no further when we are gone.

use std::ffi::OsStr;
use std::io;
use std::process::{Child, Command};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, SyncSender, channel, sync_channel};

use anyhow::{Context as _, Result, anyhow};

const GUARD: &str = r#"[ "$PPID" = "$0" ] || exit 1; exec "$@""#;

struct Request {
    command: Command,
    reply: SyncSender<io::Result<Child>>,
}

/// A command for a `program` that ends with this process; arguments may be added.
pub(crate) fn bound_command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--", "sh", "-c", GUARD]).arg(std::process::id().to_string()).arg(program);
    command
}

/// Starts a command of [`bound_command`] from the thread that ends with the process.
pub(crate) fn spawn(command: Command) -> Result<Child> {
    let (reply, answer) = sync_channel(1);
    spawner()?.send(Request { command, reply }).map_err(|_| anyhow!("the thread that starts processes has ended"))?;
    answer
        .recv()
        .context("the thread that starts processes has ended")?
        .context("failed to run setpriv (package util-linux), which every child is started through")
}

fn spawner() -> Result<&'static Sender<Request>> {
    static SPAWNER: OnceLock<std::result::Result<Sender<Request>, String>> = OnceLock::new();
    SPAWNER
        .get_or_init(|| start_spawner().map_err(|error| error.to_string()))
        .as_ref()
        .map_err(|error| anyhow!("failed to start the thread that starts processes: {error}"))
}

fn start_spawner() -> io::Result<Sender<Request>> {
    let (requests, inbox) = channel::<Request>();
    // The sender is in a static and never dropped, so the loop never ends.
    std::thread::Builder::new().name("ocm-testing-spawner".into()).spawn(move || {
        for Request { mut command, reply } in inbox {
            let _ = reply.send(command.spawn());
        }
    })?;
    Ok(requests)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guarded(parent: u32) -> bool {
        let arguments = ["-c", GUARD, &parent.to_string(), "true"];
        Command::new("sh").args(arguments).status().unwrap().success()
    }

    #[test]
    fn a_child_whose_parent_has_ended_does_not_start() {
        assert!(guarded(std::process::id()));
        assert!(!guarded(1));
    }

    #[test]
    fn the_program_gets_its_arguments_as_they_are_and_keeps_the_id() {
        let mut command = bound_command("sh");
        command.args(["-c", "echo $$ \"$1\"", "sh", "a  b"]).stdout(std::process::Stdio::piped());
        let child = spawn(command).unwrap();
        let expected = format!("{} a  b\n", child.id());
        assert_eq!(child.wait_with_output().unwrap().stdout, expected.as_bytes());
    }
}
