//! The processes of a scenario, none of which should end before it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Error, anyhow};
use tokio::time::sleep;

use crate::Process;

const PAUSE: Duration = Duration::from_millis(500);

/// Processes that run until this is dropped.
#[derive(Debug, Default)]
pub struct Running(Mutex<Vec<Process>>);

impl Running {
    /// Adds one.
    pub fn add(&self, process: Process) {
        self.lock().push(process);
    }

    /// Ends those of this name.
    pub fn stop(&self, name: &str) {
        self.lock().retain(|process| process.name() != name);
    }

    /// Waits until a process has ended by itself, and returns its name and the last lines of its log. Run it concurrently with the
    /// scenario, which would fail later and without the cause.
    pub async fn first_to_end(&self) -> Error {
        loop {
            if let Some(error) = self.ended() {
                return error;
            }
            sleep(PAUSE).await;
        }
    }

    fn ended(&self) -> Option<Error> {
        self.lock().iter().find_map(|process| match process.try_wait() {
            Ok(None) => None,
            Ok(Some(status)) => {
                Some(anyhow!("{} ended ({status}); its last lines:\n{}", process.name(), process.log_tail()))
            }
            Err(error) => Some(error),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Process>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Process, TempDir};

    fn sh(folder: &TempDir, name: &str, script: &str) -> Process {
        Process::build(name, "sh", folder.path().join(format!("{name}.log"))).args(["-c", script]).start().unwrap()
    }

    #[tokio::test]
    async fn a_process_that_ends_is_named_with_the_end_of_its_log() {
        let folder = TempDir::new("running").unwrap();
        let running = Running::default();
        running.add(sh(&folder, "lasting", "exec sleep 600"));
        running.add(sh(&folder, "short", "echo the port is taken; exit 3"));
        let error = running.first_to_end().await.to_string();
        assert!(error.starts_with("short ended (exit status: 3)") && error.contains("the port is taken"), "{error}");
    }

    #[tokio::test]
    async fn one_that_was_stopped_has_not_ended_by_itself() {
        let folder = TempDir::new("running").unwrap();
        let running = Running::default();
        let process = sh(&folder, "stopped", "exec sleep 600");
        let pid = process.pid();
        running.add(process);
        running.stop("stopped");
        assert!(running.ended().is_none());
        assert!(!std::path::Path::new("/proc").join(pid.to_string()).exists());
    }
}
