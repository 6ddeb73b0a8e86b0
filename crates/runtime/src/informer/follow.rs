//! Keeps a cache up to date by a list and a watch, over failures, servers that send nothing, and gaps in the watch.

use std::time::Duration;

use futures::{StreamExt as _, stream::BoxStream};
use kube::runtime::watcher::{self, Event};
use prometheus_client::metrics::counter::Counter;
use tokio::time::sleep;
use tracing::{debug, warn};

use super::{
    Cache, Watchable,
    continuity::{ContinuityCheck, Relists},
    raw::{RawObject, Read},
    retry::{Failure, Retry, is_refused},
};
use crate::{context::Context, error::chain, health::Awaiting};

/// Begins a watch, with a list.
pub(super) type Watch<const METADATA: bool> = Box<dyn Fn() -> Events<METADATA> + Send + Sync>;
/// The events of one watch.
type Events<const METADATA: bool> = BoxStream<'static, watcher::Result<Event<RawObject<METADATA>>>>;

/// Whether a process works without a kind.
#[derive(Clone, Copy, Debug)]
pub(super) enum Need {
    /// It does not: readiness waits for the first list.
    Required,
    /// It does, and the hint names what to install.
    Optional { hint: &'static str },
}

/// What is watched, for messages and metrics.
pub(super) struct WatchedKind {
    pub(super) plural: String,
    pub(super) need: Need,
}

fn map_event<A, B>(event: Event<A>, map: impl Fn(A) -> B) -> Event<B> {
    match event {
        Event::Apply(object) => Event::Apply(map(object)),
        Event::Delete(object) => Event::Delete(map(object)),
        Event::InitApply(object) => Event::InitApply(map(object)),
        Event::Init => Event::Init,
        Event::InitDone => Event::InitDone,
    }
}

/// Keeps a cache up to date. `watch` begins with a list, continues from there, and resumes at once after the server has
/// ended a request in good order. After any failure a new one begins with a list; [`super::continuity`] has the reason,
/// and [`super::retry`] the delay.
pub(super) fn follow<const METADATA: bool, K: Watchable>(
    context: &Context,
    continuity: &ContinuityCheck,
    watch: Watch<METADATA>,
    read: fn(RawObject<METADATA>) -> Read<K>,
    cache: Cache<K>,
    kind: WatchedKind,
) {
    context.metrics().watch_state(&kind.plural, cache.state());
    context.spawn(Follower::new(context, continuity, read, cache, kind).follow_all(watch));
}

/// Takes the events of one watch after another into a cache.
struct Follower<const METADATA: bool, K> {
    read: fn(RawObject<METADATA>) -> Read<K>,
    cache: Cache<K>,
    plural: String,
    need: Need,
    continuity: ContinuityCheck,
    relists: Relists,
    retry: Retry,
    failing: Counter,
    /// Dropped once the cache is synced.
    ready: Option<Awaiting>,
}

impl<const METADATA: bool, K: Watchable> Follower<METADATA, K> {
    fn new(
        context: &Context,
        continuity: &ContinuityCheck,
        read: fn(RawObject<METADATA>) -> Read<K>,
        cache: Cache<K>,
        kind: WatchedKind,
    ) -> Self {
        let WatchedKind { plural, need } = kind;
        let awaiting = || context.health().awaiting(format!("watch of {plural}"));
        Self {
            ready: matches!(need, Need::Required).then(awaiting),
            need,
            failing: context.metrics().watch_failures(&plural),
            relists: continuity.relists(),
            continuity: continuity.clone(),
            retry: Retry::default(),
            read,
            cache,
            plural,
        }
    }

    async fn follow_all(mut self, watch: Watch<METADATA>) {
        loop {
            let delay = self.follow_one(watch()).await;
            sleep(delay).await;
        }
    }

    /// Follows one watch until it ends. Returns how long to wait before the next one.
    async fn follow_one(&mut self, mut events: Events<METADATA>) -> Duration {
        if self.relists.take() {
            self.cache.relist();
        }
        loop {
            let event = tokio::select! {
                event = events.next() => event,
                () = self.relists.wait() => return Duration::ZERO,
            };
            match event {
                Some(Ok(event)) => self.take(event).await,
                Some(Err(error)) => return self.failed(&error),
                None => return self.delay(false),
            }
        }
    }

    fn take(&mut self, event: Event<RawObject<METADATA>>) -> impl Future<Output = ()> + Send + use<'_, METADATA, K> {
        let is_listed = matches!(event, Event::InitDone);
        let taken = self.cache.take(map_event(event, self.read), &self.plural);
        let (retry, ready) = (&mut self.retry, &mut self.ready);
        async move {
            taken.await;
            if is_listed {
                retry.listed();
                ready.take();
            }
        }
    }

    fn failed(&mut self, error: &watcher::Error) -> Duration {
        self.failing.inc();
        self.continuity.check_soon();
        let delay = self.delay(is_refused(error));
        self.report(error);
        delay
    }

    fn delay(&mut self, refused: bool) -> Duration {
        self.cache.lost_watch();
        self.retry.failed();
        self.retry.delay(Failure { synced: self.cache.is_synced(), refused })
    }

    /// Logs that a watch failed.
    fn report(&self, error: &watcher::Error) {
        let refused_with = match error {
            watcher::Error::InitialListFailed(kube::Error::Api(status)) => Some(status.code),
            _ => None,
        };
        let hint = match (refused_with, self.need) {
            (Some(403 | 404), Need::Optional { hint }) => format!(": {hint}"),
            (Some(404), Need::Required) => ": are the CRDs installed?".to_owned(),
            _ => String::new(),
        };
        let (kind, error) = (&self.plural, chain(error));
        if self.retry.is_loud(self.cache.is_synced()) {
            warn!(kind, %error, "watch keeps failing, trying again{hint}");
        } else {
            debug!(kind, %error, "watch failed, trying again{hint}");
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    #[tokio::test]
    async fn the_task_of_an_informer_is_small() {
        let context = Context::new();
        let continuity = ContinuityCheck::new(context.clock().pauses());
        let kind = WatchedKind { plural: "configmaps".into(), need: Need::Required };
        let read = RawObject::<false>::read::<ConfigMap>;
        let follower = Follower::new(&context, &continuity, read, Cache::default(), kind);
        let size = size_of_val(&follower.follow_all(Box::new(|| futures::stream::pending().boxed())));
        assert!(size < 2048, "{size} bytes: every agent has a dozen of them");
    }
}
