//! Faults between clients and a real API server.
//!
//! A [`FaultyServer`] is a proxy in front of a [`ControlPlane`](crate::ControlPlane) and passes everything on, except
//! requests that an injected [`Fault`] selects: it returns an error, hangs, closes connections, and repeats, delays or
//! loses events of watches. The real server answers everything else under the client's own identity: bearer tokens
//! are passed on, and the subject of a client certificate is impersonated.
//!
//! ```no_run
//! # async fn example(hub: &ocm_testing::ControlPlane) -> anyhow::Result<()> {
//! use ocm_testing::fault::{Asked, Fault, FaultyServer, Injection};
//!
//! let server = FaultyServer::start(hub).await?;
//! let kubeconfig = server.reached_through(hub.admin_config());
//! server.inject(Fault::new(Injection::answer(409, "Conflict")).when(Asked::is_write).times(3));
//! # Ok(())
//! # }
//! ```

mod asked;
mod events;
mod identity;
mod server;
mod upstream;
mod writes;

use std::{sync::Arc, time::Duration};

pub use asked::Asked;
pub use server::FaultyServer;
pub use writes::WriteCount;

/// What goes wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Injection {
    /// The server answers with an error and does nothing.
    Answer {
        /// The HTTP status code.
        code: u16,
        /// The reason in the Kubernetes status object.
        reason: &'static str,
        /// The header `Retry-After`, in seconds.
        retry_after: Option<u32>,
    },
    /// The server carries out the request, but its response is lost and replaced by this error.
    LoseAnswer {
        /// The HTTP status code.
        code: u16,
        /// The reason in the Kubernetes status object.
        reason: &'static str,
    },
    /// The request is never answered.
    Hang,
    /// The request waits for [`FaultyServer::release`] before it is passed on.
    Hold,
    /// The connection of the request is closed, with all other requests on it.
    Cut,
    /// The connection is closed after so many bytes of the response.
    CutAfter(usize),
    /// The response stalls after so many bytes, and the connection stays open.
    StallAfter(usize),
    /// Every event of a watch is sent twice.
    RepeatEvents,
    /// Every event of a watch is delayed by this time.
    DelayEvents(Duration),
    /// So many events of a watch are lost; then the watch ends.
    LoseEvents(usize),
    /// A watch begins with the error that its resource version is too old.
    Expire,
    /// The response is kept for [`Injection::Replay`], and passed on when it is complete.
    Keep,
    /// The response is the one that was kept for the same path: a list shows what there was at that time.
    Replay,
}

impl Injection {
    /// The server answers with an error and does nothing.
    #[must_use]
    pub fn answer(code: u16, reason: &'static str) -> Self {
        Self::Answer { code, reason, retry_after: None }
    }
}

type Condition = Arc<dyn Fn(&Asked) -> bool + Send + Sync>;

/// A fault, the requests it applies to, and how often.
#[derive(Clone)]
pub struct Fault {
    pub(crate) injection: Injection,
    pub(crate) conditions: Vec<Condition>,
    pub(crate) times: usize,
}

impl std::fmt::Debug for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fault").field("injection", &self.injection).field("times", &self.times).finish_non_exhaustive()
    }
}

impl Fault {
    /// A fault of the next request.
    #[must_use]
    pub fn new(injection: Injection) -> Self {
        Self { injection, conditions: Vec::new(), times: 1 }
    }

    /// Limits it to requests that match; if called several times, all conditions must hold.
    #[must_use]
    pub fn when(mut self, condition: impl Fn(&Asked) -> bool + Send + Sync + 'static) -> Self {
        self.conditions.push(Arc::new(condition));
        self
    }

    /// It happens so many times.
    #[must_use]
    pub fn times(mut self, times: usize) -> Self {
        self.times = times;
        self
    }

    pub(crate) fn concerns(&self, asked: &Asked) -> bool {
        self.times > 0 && self.conditions.iter().all(|condition| condition(asked))
    }
}
