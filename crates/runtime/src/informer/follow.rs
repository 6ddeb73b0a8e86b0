//! Keeps a cache up to date over failures, silent servers and gaps in the watch.

use std::{pin::pin, time::Duration};

use futures::{Stream, StreamExt as _};
use kube::{
    core::error_boundary::InvalidObject,
    runtime::watcher::{self, Event},
};
use tokio::time::{Instant, sleep};
use tracing::{debug, warn};

use super::{Cache, Watchable, continuity::ContinuityCheck};
use crate::{
    backoff::{Backoff, Delays},
    context::Context,
    error::chain,
};

/// How long a watch that failed waits before it begins anew.
const RETRY: Backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(5));
/// So many failures in a row are logged as a warning.
const LOUD: usize = 4;
/// A watch that held this long starts again with the shortest delay.
const RETRY_RESET: Duration = Duration::from_secs(60);

/// An object as read, or why it could not be.
pub(super) type Read<K> = Result<K, Box<InvalidObject>>;

pub(super) fn map_event<A, B>(event: Event<A>, map: impl Fn(A) -> B) -> Event<B> {
    match event {
        Event::Apply(object) => Event::Apply(map(object)),
        Event::Delete(object) => Event::Delete(map(object)),
        Event::InitApply(object) => Event::InitApply(map(object)),
        Event::Init => Event::Init,
        Event::InitDone => Event::InitDone,
    }
}

/// Keeps a cache up to date. `watch` begins with a list, goes on from there, and resumes after the server has ended a
/// request in good order. After any failure a new one begins with a list; the reason is in [`super::continuity`].
pub(super) fn follow<K, S>(
    context: &Context,
    continuity: &ContinuityCheck,
    watch: impl Fn() -> S + Send + 'static,
    cache: Cache<K>,
    plural: String,
) where
    K: Watchable,
    S: Stream<Item = watcher::Result<Event<Read<K>>>> + Send + 'static,
{
    let ready = context.health().awaiting(format!("watch of {plural}"));
    let failing = context.metrics().watch_failures(&plural);
    context.metrics().watch_state(&plural, cache.state());
    let (continuity, mut relist) = (continuity.clone(), continuity.relist());
    context.spawn(async move {
        let (mut ready, mut retry, mut in_a_row) = (Some(ready), Retry::new(), 0);
        loop {
            let mut events = pin!(watch());
            loop {
                let event = tokio::select! {
                    event = events.next() => event,
                    _ = relist.changed() => {
                        cache.relist();
                        break;
                    }
                };
                let Some(event) = event else { break };
                match event {
                    Ok(event) => {
                        if is_progress(&event) {
                            in_a_row = 0;
                        }
                        cache.take(event, &plural);
                    }
                    Err(error) => {
                        in_a_row += 1;
                        failing.inc();
                        continuity.check_soon();
                        report_failure(&plural, &error, in_a_row);
                        break;
                    }
                }
                if cache.is_synced() {
                    ready.take();
                }
            }
            sleep(retry.next_delay()).await;
        }
    });
}

/// Whether an event shows that the watch works. That a list is about to begin, and that its first page came, does not.
fn is_progress<A>(event: &Event<A>) -> bool {
    !matches!(event, Event::Init | Event::InitApply(_))
}

/// Says that a watch failed: loudly once it fails several times in a row, since rights that were just
/// granted and kinds that were just installed take a moment.
fn report_failure(plural: &str, error: &watcher::Error, in_a_row: usize) {
    let is_unknown_kind =
        matches!(error, watcher::Error::InitialListFailed(kube::Error::Api(status)) if status.code == 404);
    let hint = if is_unknown_kind { ": are the CRDs installed?" } else { "" };
    let text = chain(error);
    if in_a_row < LOUD {
        debug!(kind = plural, error = %text, "watch failed, trying again{hint}");
    } else {
        warn!(kind = plural, error = %text, "watch keeps failing, trying again{hint}");
    }
}

/// Waits before a watch begins anew: with exponential back-off, and the shortest delay again after it held for a while.
/// Events do not reset it: a list that fails after its first page brings some each time.
#[derive(Debug)]
struct Retry {
    delays: Delays,
    last: Instant,
}

impl Retry {
    fn new() -> Self {
        Self { delays: RETRY.delays(), last: Instant::now() }
    }

    fn next_delay(&mut self) -> Duration {
        let now = Instant::now();
        if now - self.last > RETRY_RESET {
            *self = Self::new();
        }
        self.last = now;
        self.delays.next_delay()
    }
}
