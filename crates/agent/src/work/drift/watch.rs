//! One watch: lists the metadata of a scope, then follows their changes.

use std::time::Duration;

use futures::{StreamExt as _, stream::BoxStream};
use kube::{
    Client,
    core::{DynamicObject, PartialObjectMeta},
    runtime::watcher::{self, Event},
};
use ocm_api::work::v1::ResourceIdentifier;
use ocm_runtime::{
    Backoff,
    error::chain,
    informer::{self, Relists},
};
use tracing::debug;

use super::{
    objects::{AppliedObjects, Epoch},
    scope::Scope,
};

/// The delays between a failure and the next list.
const RETRY: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));

type Events = BoxStream<'static, watcher::Result<Event<PartialObjectMeta<DynamicObject>>>>;

/// Watches a scope for as long as it is worth it.
pub(super) struct Watch {
    pub(super) client: Client,
    pub(super) scope: Scope,
    pub(super) objects: AppliedObjects,
    pub(super) relists: Relists,
}

/// Why a watch ended.
enum End {
    /// A list is due, though the watch has not failed.
    Relist,
    Failed,
    /// The server refuses it, and is likely to refuse the next one.
    Refused,
}

impl Watch {
    /// Ends when the server refuses the watch. After any failure it begins again with a list: the last version that it has
    /// brought is no proof that nothing else has changed.
    pub(super) async fn follow(mut self) {
        let mut failures = 0;
        loop {
            self.relists.take();
            let mut list =
                List { objects: &self.objects, scope: &self.scope, epoch: self.objects.begin(), is_complete: false };
            let mut events = events(&self.client, &self.scope);
            let end = list.follow(&mut events, &mut self.relists).await;
            failures = if list.is_complete { 1 } else { failures + 1 };
            drop(list);
            match end {
                End::Refused => return,
                End::Relist => {}
                End::Failed => tokio::time::sleep(RETRY.delay_after(failures)).await,
            }
        }
    }
}

fn events(client: &Client, scope: &Scope) -> Events {
    watcher::watcher(scope.api(client), watcher::Config::default()).boxed()
}

/// A list, and the watch that continues it.
struct List<'a> {
    objects: &'a AppliedObjects,
    scope: &'a Scope,
    epoch: Epoch,
    is_complete: bool,
}

impl List<'_> {
    async fn follow(&mut self, events: &mut Events, relists: &mut Relists) -> End {
        loop {
            let event = tokio::select! {
                event = events.next() => event,
                () = relists.wait() => return End::Relist,
            };
            match event {
                Some(Ok(event)) => self.take(event),
                Some(Err(error)) => return self.failed(&error),
                None => return End::Failed,
            }
        }
    }

    fn take(&mut self, event: Event<PartialObjectMeta<DynamicObject>>) {
        match event {
            Event::Init => {}
            Event::InitApply(object) | Event::Apply(object) => {
                self.objects.saw(self.epoch, &self.identifier(&object), &object.metadata);
            }
            Event::Delete(object) => self.objects.gone(self.epoch, &self.identifier(&object), &object.metadata),
            Event::InitDone => {
                self.is_complete = true;
                self.objects.listed(self.epoch, self.scope);
            }
        }
    }

    fn identifier(&self, object: &PartialObjectMeta<DynamicObject>) -> ResourceIdentifier {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        self.scope.identifier(&text(&object.metadata.name), &text(&object.metadata.namespace))
    }

    fn failed(&self, error: &watcher::Error) -> End {
        let is_refused = is_refused(error);
        debug!(scope = %self.scope, error = %chain(error), is_refused, "the watch of applied objects failed");
        if is_refused { End::Refused } else { End::Failed }
    }
}

impl Drop for List<'_> {
    fn drop(&mut self) {
        self.objects.lost(self.epoch);
    }
}

/// Whether a right is missing, or the kind is gone, or cannot be listed and watched.
fn is_refused(error: &watcher::Error) -> bool {
    informer::is_refused(error) || matches!(error, watcher::Error::NoResourceVersion)
}
