//! What this crate's tests log.

use std::{
    io::{self, Write},
    sync::{LazyLock, Mutex},
};

#[derive(Default)]
struct Log(Mutex<Vec<u8>>);

impl Write for &Log {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(text)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// For the whole process: a subscriber of one thread may miss events that other threads were the first to reach.
static LOG: LazyLock<&'static Log> = LazyLock::new(|| {
    let log: &Log = Box::leak(Box::default());
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || log).finish();
    tracing::subscriber::set_global_default(subscriber).unwrap();
    log
});

/// Starts to capture logs. The function returns what all tests of the process have logged so far, so each test looks for
/// its own lines.
pub(crate) fn captured() -> impl Fn() -> String {
    let log = *LOG;
    move || String::from_utf8(log.0.lock().unwrap().clone()).unwrap()
}
