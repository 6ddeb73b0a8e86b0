//! Keeping a cache up to date over failures, silence and gaps.

use std::{pin::pin, time::Duration};

use futures::{Stream, StreamExt as _};
use kube::{
    core::{Status, error_boundary::InvalidObject},
    runtime::watcher::{self, Event},
};
use tokio::time::{Instant, sleep};
use tower_http::timeout::TimeoutError;
use tracing::{debug, warn};

use super::{Cache, Watchable, backstop::Backstop};
use crate::{context::Context, error::chain};

/// The waits between two tries of a watch that fails.
const RETRY_MIN: Duration = Duration::from_millis(200);
const RETRY_MAX: Duration = Duration::from_secs(5);
/// So many failures in a row are worth a warning.
const LOUD: usize = 4;
/// A watch that held this long starts again with the shortest wait.
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

/// Keeps a cache up to date. `watch` begins with a list and goes on from there; it is begun anew when
/// going on leads nowhere.
pub(super) fn follow<K, S>(
    context: &Context,
    backstop: &Backstop,
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
    let (backstop, mut anew) = (backstop.clone(), backstop.anew());
    context.spawn(async move {
        let (mut ready, mut retry, mut in_a_row) = (Some(ready), Retry::default(), 0);
        loop {
            let mut events = pin!(watch());
            loop {
                let event = tokio::select! {
                    event = events.next() => event,
                    _ = anew.changed() => {
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
                        backstop.doubt();
                        report_failure(&plural, &error, in_a_row);
                        if leads_nowhere(&error) {
                            break;
                        }
                        sleep(retry.wait()).await;
                    }
                }
                if cache.is_synced() {
                    ready.take();
                }
            }
            sleep(retry.wait()).await;
        }
    });
}

/// Whether an event shows that the watch works. That a list is about to begin, and that its first page came, does not.
fn is_progress<A>(event: &Event<A>) -> bool {
    !matches!(event, Event::Init | Event::InitApply(_))
}

/// Whether a watch would wait for ever if it went on from where it was: the server is silent, or has
/// never heard of the version the watch has come to, as after its data was restored from a backup.
fn leads_nowhere(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::WatchFailed(kube::Error::ReadEvents(error)) => is_silence(error),
        watcher::Error::WatchStartFailed(kube::Error::Api(status)) => is_from_the_future(status),
        watcher::Error::WatchError(status) => is_from_the_future(status),
        _ => false,
    }
}

fn is_silence(error: &std::io::Error) -> bool {
    let mut next = error.get_ref().map(|error| error as &(dyn std::error::Error + 'static));
    while let Some(error) = next {
        if error.is::<TimeoutError>() {
            return true;
        }
        next = error.source();
    }
    false
}

fn is_from_the_future(status: &Status) -> bool {
    let mut causes = status.details.iter().flat_map(|details| &details.causes);
    causes.any(|cause| cause.reason == "ResourceVersionTooLarge")
        || status.message.contains("Too large resource version")
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

/// Waits between two tries of a watch: doubling, with jitter, and short again after it held a while. What it brings says
/// nothing about that: a list that fails each time is announced each time.
#[derive(Debug, Default)]
struct Retry {
    failures: u32,
    last: Option<Instant>,
}

impl Retry {
    fn wait(&mut self) -> Duration {
        let now = Instant::now();
        if self.last.is_some_and(|last| now - last > RETRY_RESET) {
            self.failures = 0;
        }
        self.last = Some(now);
        let longest = RETRY_MIN.saturating_mul(1 << self.failures.min(10)).min(RETRY_MAX);
        self.failures += 1;
        longest.mul_f64(rand::random_range(0.5..=1.0))
    }
}
