//! Where commands write: data to stdout, everything else to stderr.

use std::{
    fmt,
    io::{self, Write},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::failure::Failure;

type Sink = Arc<Mutex<dyn Write + Send>>;

/// The two streams that commands write to.
#[derive(Clone)]
pub struct Console {
    out: Sink,
    err: Sink,
}

impl fmt::Debug for Console {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Console").finish_non_exhaustive()
    }
}

impl Console {
    /// Stdout and stderr of this process.
    #[must_use]
    pub fn of_process() -> Self {
        Self::new(io::stdout(), io::stderr())
    }

    /// Other streams, such as buffers.
    pub fn new(out: impl Write + Send + 'static, err: impl Write + Send + 'static) -> Self {
        Self { out: Arc::new(Mutex::new(out)), err: Arc::new(Mutex::new(err)) }
    }

    /// Streams that are kept in memory, and a view of them.
    #[must_use]
    pub fn captured() -> (Self, Captured) {
        let captured = Captured::default();
        (Self { out: captured.out.clone(), err: captured.err.clone() }, captured)
    }

    /// Writes data to stdout. It is no failure if the reader has closed the pipe.
    pub(crate) fn print(&self, text: &str) -> Result<(), Failure> {
        let mut out = lock(&self.out);
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(Failure::new(format!("failed to write the output: {error}")))
            }
            _ => Ok(()),
        }
    }

    /// Writes to stderr. A failure to do so cannot be reported anywhere.
    pub(crate) fn note(&self, text: &str) {
        let mut err = lock(&self.err);
        let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
    }

    /// Writes a line to stderr.
    pub(crate) fn note_line(&self, line: &str) {
        self.note(&format!("{line}\n"));
    }

    /// Writes a warning to stderr.
    pub(crate) fn warn(&self, warning: &str) {
        self.note(&format!("warning: {warning}\n"));
    }
}

/// What was written to a [captured](Console::captured) console.
#[derive(Clone, Debug, Default)]
pub struct Captured {
    out: Arc<Mutex<Vec<u8>>>,
    err: Arc<Mutex<Vec<u8>>>,
}

impl Captured {
    /// What was written to stdout so far.
    #[must_use]
    pub fn stdout(&self) -> String {
        text(&self.out)
    }

    /// What was written to stderr so far.
    #[must_use]
    pub fn stderr(&self) -> String {
        text(&self.err)
    }
}

fn text(stream: &Mutex<Vec<u8>>) -> String {
    String::from_utf8_lossy(&stream.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
}

fn lock(sink: &Sink) -> MutexGuard<'_, dyn Write + Send + 'static> {
    sink.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Closed(io::ErrorKind);

    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn data_and_notes_go_to_different_streams() {
        let (console, captured) = Console::captured();
        console.print("data\n").unwrap();
        console.note_line("note");
        console.warn("careful");
        assert_eq!((captured.stdout().as_str(), captured.stderr().as_str()), ("data\n", "note\nwarning: careful\n"));
    }

    #[test]
    fn a_full_disk_is_a_failure_and_a_closed_pipe_is_none() {
        let full = Console::new(Closed(io::ErrorKind::StorageFull), io::sink());
        assert!(full.print("data").unwrap_err().to_string().contains("failed to write the output"));
        assert!(Console::new(Closed(io::ErrorKind::BrokenPipe), io::sink()).print("data").is_ok());
    }
}
