//! Child processes with a log file each, which end with this process.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
/// The signals that [`Process::signal`] sends, `Signal::TERM` above all.
pub use rustix::process::Signal;

use crate::spawn;
use crate::usage::{self, Memory};
use crate::wait::{Seen, eventually};

const TAIL_LINES: usize = 20;

/// A running program. Dropping it kills it.
#[derive(Debug)]
pub struct Process {
    name: String,
    pid: u32,
    child: Mutex<Child>,
    log: PathBuf,
    log_start: usize,
}

/// A program to start, made by [`Process::build`].
#[derive(Debug)]
pub struct ProcessBuilder {
    name: String,
    program: PathBuf,
    command: Command,
    log: PathBuf,
}

impl ProcessBuilder {
    /// Adds one argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.command.args(args);
        self
    }

    /// Sets an environment variable; the others are inherited.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Removes an inherited environment variable.
    #[must_use]
    pub fn without_env(mut self, name: impl AsRef<OsStr>) -> Self {
        self.command.env_remove(name);
        self
    }

    /// Sets the working directory.
    #[must_use]
    pub fn current_dir(mut self, path: impl AsRef<Path>) -> Self {
        self.command.current_dir(path);
        self
    }

    /// Starts the program. It gets no input, a process group of its own (so that Ctrl-C reaches
    /// only us), and appends what it prints to its log.
    pub fn start(mut self) -> Result<Process> {
        self.start_logged().with_context(|| format!("failed to start {}", self.name))
    }

    fn start_logged(&mut self) -> Result<Process> {
        if self.program.components().count() > 1 && !self.program.is_file() {
            bail!("{} does not exist", self.program.display());
        }
        let log = open_log(&self.log)?;
        let log_start = usize::try_from(log.metadata()?.len())?;
        let mut command = std::mem::replace(&mut self.command, Command::new(OsString::new()));
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).process_group(0);
        let child = spawn::spawn(command)?;
        Ok(Process {
            name: self.name.clone(),
            pid: child.id(),
            child: Mutex::new(child),
            log: self.log.clone(),
            log_start,
        })
    }
}

fn open_log(path: &Path) -> Result<File> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("failed to create {}", folder.display()))?;
    }
    let file = File::options().create(true).append(true).open(path);
    file.with_context(|| format!("failed to open the log {}", path.display()))
}

impl Process {
    /// Prepares to start `program` (a path, or a name looked up in `PATH`), called `name` in
    /// messages, with its output going to the file `log`.
    pub fn build(name: &str, program: impl Into<PathBuf>, log: impl Into<PathBuf>) -> ProcessBuilder {
        let program = program.into();
        ProcessBuilder { name: name.to_owned(), command: spawn::bound_command(&program), program, log: log.into() }
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file that holds what the process prints.
    pub fn log_path(&self) -> &Path {
        &self.log
    }

    /// What this process printed so far; an earlier one with the same log file is left out.
    pub fn log(&self) -> Result<String> {
        let bytes = fs::read(&self.log).with_context(|| format!("failed to read {}", self.log.display()))?;
        Ok(String::from_utf8_lossy(bytes.get(self.log_start..).unwrap_or_default()).into_owned())
    }

    /// The last lines of the log, for error messages.
    pub fn log_tail(&self) -> String {
        let log = self.log().unwrap_or_else(|error| format!("{error:#}"));
        let lines: Vec<_> = log.lines().collect();
        lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
    }

    /// Waits for a line that contains `pattern` and returns it; fails at once when the process ends
    /// without having printed it.
    pub async fn wait_for_log(&self, pattern: &str) -> Result<String> {
        let what = format!("{} logs {pattern:?}", self.name);
        let look = || async {
            // Checked before reading, so that the last lines of a process that has just ended are read.
            let ended = self.try_wait()?;
            let log = self.log()?;
            let line = log.lines().find(|line| line.contains(pattern)).map(str::to_owned);
            Ok::<_, anyhow::Error>(match (line, ended) {
                (Some(line), _) => Seen::Settled(Ok(line)),
                (None, Some(status)) => Seen::Settled(Err(status)),
                (None, None) => Seen::NotYet(format!("its last lines\n{}", self.log_tail())),
            })
        };
        match eventually(&what, look).await? {
            Ok(line) => Ok(line),
            Err(status) => bail!(
                "{} ended ({status}) without logging {pattern:?}; its last lines:\n{}",
                self.name,
                self.log_tail()
            ),
        }
    }

    /// Sends a signal; a process that has ended gets none, which is no error.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        // While the lock is held and the child not reaped, its id cannot belong to another process.
        let mut child = self.lock();
        if child.try_wait()?.is_some() {
            return Ok(());
        }
        rustix::process::kill_process(rustix::process::Pid::from_child(&child), signal)
            .with_context(|| format!("failed to signal {}", self.name))
    }

    /// Waits for the end of the process.
    pub async fn wait(&self) -> Result<ExitStatus> {
        eventually(&format!("{} ends", self.name), || async { self.try_wait() }).await
    }

    /// How the process ended, or `None` while it runs.
    pub fn try_wait(&self) -> Result<Option<ExitStatus>> {
        let status = self.lock().try_wait();
        status.with_context(|| format!("failed to ask for the state of {}", self.name))
    }

    /// Kills the process (SIGKILL) and waits until it is gone.
    pub fn kill(&self) -> Result<()> {
        let mut child = self.lock();
        let killed = child.kill().and_then(|()| child.wait());
        killed.map(drop).with_context(|| format!("failed to kill {}", self.name))
    }

    /// The memory it uses now.
    pub fn memory(&self) -> Result<Memory> {
        usage::memory(self.pid).with_context(|| format!("failed to measure {}", self.name))
    }

    /// The processor time it used since its start, user and system.
    pub fn cpu_time(&self) -> Result<Duration> {
        usage::cpu_time(self.pid).with_context(|| format!("failed to measure {}", self.name))
    }

    fn lock(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}
