//! What unit tests of several controllers need.

use std::sync::Arc;

use ocm_runtime::{Context, Informers, informer::WatchFilter};
use serde_json::json;

use super::{Settings, Shared, executor::Executors, resources::Resources, safety::Guard, stuck::StuckDeletions};
use crate::testing::Mock;

/// The id of the agent in these tests.
pub(super) const AGENT: &str = "agent";
/// Where AppliedManifestWorks are listed.
pub(super) const RECORDS: &str = "/apis/work.open-cluster-management.io/v1/appliedmanifestworks";
/// Where the ManifestWorks of cluster `c1` are listed.
pub(super) const WORKS: &str = "/apis/work.open-cluster-management.io/v1/namespaces/c1/manifestworks";

/// What the controllers share, with caches that hold what the two servers list.
pub(super) async fn shared(hub: &Mock, managed: &Mock) -> Shared {
    let (hub, managed) = (with_list(hub, WORKS), with_list(managed, RECORDS));
    let hub = Informers::new(hub.client(), Context::new());
    let client = managed.client();
    let settings = Arc::new(Settings::new("c1", "https://hub", AGENT));
    let works = hub.namespaced("c1", WatchFilter::all());
    let applied_works = Informers::new(client.clone(), Context::new()).all(WatchFilter::all());
    let shared = Shared {
        guard: Guard::new(&settings, hub.client(), &works, &applied_works),
        settings,
        works,
        applied_works,
        executors: Executors::new(client.clone()),
        resources: Resources::new(client),
        stuck: StuckDeletions::default(),
        hub,
        copies: None,
    };
    tokio::join!(shared.works.synced(), shared.applied_works.synced());
    shared
}

fn with_list(server: &Mock, path: &'static str) -> Mock {
    if server.lists(path) { server.clone() } else { server.clone().listing(path, &json!([])) }
}
