//! One watch of metadata.

use std::{sync::Arc, time::Duration};

use futures::{Stream, StreamExt as _};
use kube::{
    Api, Client,
    core::{DynamicObject, PartialObjectMeta},
    runtime::watcher::{self, Event},
};
use ocm_runtime::{
    Backoff,
    error::{chain, status_of_watch},
};
use tracing::{debug, info};

use super::{Shared, WatchedResource};
use crate::work::resources::{api_of, api_resource};

/// The delays between a failure and the next list. Meanwhile the objects are polled.
const RETRY: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(300));

/// Watches until the task ends. After any failure it begins again with a list: something may have been missed.
pub(super) async fn follow(shared: Arc<Shared>, resource: WatchedResource) {
    let mut failures = 0;
    loop {
        let events = watcher::watcher(api(&shared.client, &resource), watcher::Config::default());
        let is_listed = follow_one(&shared, &resource, events, failures == 0).await;
        failures = if is_listed { 1 } else { failures + 1 };
        tokio::time::sleep(RETRY.delay_after(failures)).await;
    }
}

fn api(client: &Client, resource: &WatchedResource) -> Api<PartialObjectMeta<DynamicObject>> {
    let WatchedResource { group, version, resource, namespace } = resource;
    api_of(client, &api_resource(group, version, resource), namespace)
}

/// Follows a watch to its failure. Returns whether it had listed the objects.
async fn follow_one(
    shared: &Shared,
    resource: &WatchedResource,
    events: impl Stream<Item = watcher::Result<Event<PartialObjectMeta<DynamicObject>>>>,
    is_first: bool,
) -> bool {
    let mut events = std::pin::pin!(events);
    let mut is_listed = false;
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init | Event::InitApply(_)) => {}
            Ok(Event::InitDone) => {
                is_listed = true;
                shared.notify_all(resource);
            }
            Ok(Event::Apply(object) | Event::Delete(object)) => {
                shared.notify(resource, object.metadata.name.as_deref().unwrap_or_default());
            }
            Err(error) => {
                report(resource, &error, is_first);
                break;
            }
        }
    }
    is_listed
}

fn report(resource: &WatchedResource, error: &watcher::Error, is_first: bool) {
    let WatchedResource { group, resource, namespace, .. } = resource;
    let error_text = chain(error);
    if is_first && is_refused(error) {
        info!(group, resource, namespace, error = error_text, "cannot watch objects for feedback, polling them");
    } else {
        debug!(
            group,
            resource,
            namespace,
            error = error_text,
            "the watch of objects for feedback failed, trying again"
        );
    }
}

/// Whether a right is missing, or the kind cannot be watched.
fn is_refused(error: &watcher::Error) -> bool {
    status_of_watch(error).is_some_and(|status| matches!(status.code, 403..=405))
}
