//! Leader election: one of several replicas is active.
//!
//! [`lead`] is a candidate for a `Lease` by client-go's protocol, so that the replicas may be written
//! in Go as well. While it holds the lease it runs the work it was given, in a [`Context`] of its own;
//! when it cannot renew the lease, that context ends, and it is a candidate again.
//!
//! ```text
//!  renewal sent        renew deadline         finish deadline          lease duration
//!  ├── leads ──────────┼── work is asked to ──┼── nothing of it ───────┼── others may lead
//!                      │   end, and finishes  │   runs any more        │
//! ```
//!
//! All times count from the moment the last successful renewal was *sent*, which is before anybody
//! else saw it. When another process holds the lease, the work is aborted. When the process is asked to
//! end, the lease is released after the work has ended, and another candidate, which watches the lease,
//! acquires it at once.
//!
//! | module | what it is |
//! | --- | --- |
//! | `settings` | the three times, checked |
//! | `record`, `identity` | the content of a lease |
//! | `election` | what to do about a lease, pure; `model` tests it in every order of steps |
//! | `lock` | reading and writing a lease |
//! | `candidate` | the loop: wait, lead, release |
//! | `health` | the check of `/healthz` |

mod candidate;
mod election;
mod health;
mod identity;
mod lock;
#[cfg(test)]
mod model;
mod record;
mod settings;
#[cfg(test)]
mod tests;

use std::future::Future;

use kube::Client;
use tracing::{Instrument as _, info_span};

use self::candidate::Candidate;
pub use self::{
    identity::identity,
    settings::{Settings, SettingsError},
};
use crate::Context;

/// The lease, and the identity of the candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    /// The lease's namespace.
    pub namespace: String,
    /// The lease's name.
    pub name: String,
    /// The identity of the candidate, see [`identity`].
    pub identity: String,
}

/// Runs `work` whenever this process holds the lease, until `context` ends or the work does.
///
/// Each call of `work` gets a context that ends when the lease is lost. What it returns is awaited as
/// a task of that context, and dropped if it does not come to an end in time. Work that ends by itself
/// ends the candidacy, with its outcome.
///
/// Adds the check `leader-election/<lease>` to the health of `context`. Must be called in the Tokio
/// runtime of `client`.
///
/// # Errors
/// Those of `work`. A server that does not answer is none: that is logged and tried again.
pub async fn lead<W, F, E>(context: &Context, client: Client, lock: Lock, settings: Settings, work: W) -> Result<(), E>
where
    W: Fn(Context) -> F + Send,
    F: Future<Output = Result<(), E>> + Send + 'static,
    E: Send + 'static,
{
    let span = info_span!("election", lock = lock.name);
    let candidate = Candidate::new(context.clone(), client, lock, settings);
    Box::pin(candidate.run(work)).instrument(span).await
}
