//! The control planes that all tests of a binary share: one hub and two managed clusters.
//!
//! They are started on first use and end with the process. A test takes names of its own
//! ([`unique`](crate::unique)) on them, and starts its own [`ControlPlane`] when it breaks one.
//!
//! ```no_run
//! # async fn example() -> anyhow::Result<()> {
//! let clusters = ocm_testing::fixture::get();
//! let hub = clusters.hub.client().await?;
//! # Ok(())
//! # }
//! ```

use std::sync::OnceLock;
use std::thread;

use anyhow::{Context as _, Result};
use tokio::runtime::{Builder, Handle, Runtime};

use crate::ControlPlane;

/// What the tests of a binary share. All three keep an audit log.
#[derive(Clone, Copy, Debug)]
pub struct Fixture {
    /// The hub.
    pub hub: &'static ControlPlane,
    /// A managed cluster.
    pub managed1: &'static ControlPlane,
    /// Another managed cluster.
    pub managed2: &'static ControlPlane,
}

struct Shared {
    name: &'static str,
    plane: OnceLock<std::result::Result<ControlPlane, String>>,
}

static HUB: Shared = Shared::new("hub");
static MANAGED1: Shared = Shared::new("managed1");
static MANAGED2: Shared = Shared::new("managed2");

/// All three, started at the same time by the first caller while the others wait.
///
/// It blocks the calling thread, and may be called from within a Tokio runtime.
///
/// # Panics
///
/// If a control plane cannot be started: every test fails then, with the cause.
pub fn get() -> Fixture {
    thread::scope(|scope| {
        scope.spawn(|| HUB.started());
        scope.spawn(|| MANAGED1.started());
        scope.spawn(|| MANAGED2.started());
    });
    Fixture { hub: HUB.get(), managed1: MANAGED1.get(), managed2: MANAGED2.get() }
}

/// Only the hub, the same one as [`get`]'s, for tests that need no managed cluster.
///
/// # Panics
///
/// As [`get`].
pub fn hub() -> &'static ControlPlane {
    HUB.get()
}

/// The runtime of the fixture, which ends with the process: for a hub or an agent in this
/// process that several tests share (each test has a runtime of its own, and it ends with the test).
///
/// # Panics
///
/// When the runtime cannot be made.
pub fn runtime() -> &'static Handle {
    try_runtime().unwrap_or_else(|error| give_up(&error))
}

impl Shared {
    const fn new(name: &'static str) -> Self {
        Self { name, plane: OnceLock::new() }
    }

    fn get(&self) -> &ControlPlane {
        let started = self.started();
        started.as_ref().unwrap_or_else(|error| give_up(error))
    }

    fn started(&self) -> &std::result::Result<ControlPlane, String> {
        self.plane.get_or_init(|| self.start().map_err(|error| format!("{error:#}")))
    }

    /// From a thread of its own, since the caller's may belong to another runtime.
    fn start(&self) -> Result<ControlPlane> {
        let runtime = try_runtime().map_err(anyhow::Error::msg)?;
        let start = || runtime.block_on(ControlPlane::builder().name(self.name).audit(true).start());
        thread::scope(|scope| scope.spawn(start).join())
            .map_err(|_| anyhow::anyhow!("the start of {} panicked", self.name))?
    }
}

fn try_runtime() -> std::result::Result<&'static Handle, String> {
    static RUNTIME: OnceLock<std::result::Result<Runtime, String>> = OnceLock::new();
    let runtime = RUNTIME.get_or_init(|| new_runtime().map_err(|error| format!("{error:#}")));
    runtime.as_ref().map(Runtime::handle).map_err(Clone::clone)
}

fn new_runtime() -> Result<Runtime> {
    let runtime = Builder::new_multi_thread().thread_name("ocm-testing").enable_all().build();
    runtime.context("failed to make the runtime of the fixture")
}

#[expect(clippy::panic, reason = "a test binary without its control planes can only report the cause")]
fn give_up(error: &str) -> ! {
    panic!("the shared control planes are not there: {error}")
}
