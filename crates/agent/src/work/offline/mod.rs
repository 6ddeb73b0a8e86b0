//! Repairing what works applied while the hub is away, also after a restart of the agent. `docs/offline.md` describes it for
//! people.
//!
//! An agent that runs repairs from its caches when the hub goes away. One that starts then has nothing to go by. So while the hub
//! is there, `keeper` keeps a copy of each work in a Secret on the managed cluster (`copy` says what is in it). While the first
//! list of works has not come, `repair` applies the copies; nothing else of the work half runs. Once the list has come, passes in
//! progress are finished, and the controllers of the work half start: a work is never applied by both.

mod copy;
mod keeper;
mod repair;

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, Client, ResourceExt as _,
    api::{DeleteParams, ListParams},
    core::PartialObjectMeta,
};
use ocm_api::{annotations::OFFLINE_COPY_OF, components, labels::OFFLINE_COPY};
use ocm_runtime::{Cache, Context, Informers, Result, ResultExt as _, error::chain, informer::WatchFilter};
use tracing::warn;

use self::{keeper::Keeper, repair::Repair};
use super::{BACKGROUND_WORKERS, Settings, Shared};

/// How long after its start the agent waits for the hub.
const PATIENCE: Duration = Duration::from_secs(30);

/// Whether and where copies of works are kept.
#[derive(Clone, Debug)]
pub struct OfflineSettings {
    /// Whether they are.
    pub keeps_copies: bool,
    /// Their namespace, on the managed cluster.
    pub namespace: String,
    /// How long after its start the agent waits for the hub before it uses them.
    pub patience: Duration,
}

impl Default for OfflineSettings {
    fn default() -> Self {
        Self { keeps_copies: false, namespace: ocm_api::namespaces::AGENT.into(), patience: PATIENCE }
    }
}

/// The copies on the managed cluster. Cheap to clone.
#[derive(Clone, Debug)]
struct Copies {
    secrets: Api<Secret>,
    namespace: String,
    /// Their metadata: the works themselves are read when they are needed.
    known: Cache<PartialObjectMeta<Secret>>,
}

impl Copies {
    fn new(managed: &Informers, settings: &OfflineSettings) -> Self {
        let known = managed.metadata(WatchFilter::labelled(OFFLINE_COPY));
        let secrets = Api::namespaced(managed.client().clone(), &settings.namespace);
        Self { secrets, namespace: settings.namespace.clone(), known }
    }
}

/// The work of a copy that this agent made of a work of this hub.
fn work_of(copy: &PartialObjectMeta<Secret>, prefix: &str) -> Option<String> {
    copy.annotations().get(OFFLINE_COPY_OF)?.strip_prefix(prefix).map(str::to_owned)
}

/// Starts the work half with `start`: at once if no copies are kept, or else once the hub has listed its works.
pub(super) fn start(
    context: &Context,
    managed: &Informers,
    shared: Shared,
    start: impl FnOnce(&Context, Shared) + Send + 'static,
) {
    let settings = &shared.settings.offline;
    if !settings.keeps_copies {
        context.spawn(remove_copies(managed.client().clone(), shared.settings.as_ref().clone()));
        return start(context, shared);
    }
    let copies = Copies::new(managed, settings);
    let own = context.clone();
    context.spawn(async move {
        let phase = own.child();
        phase.run(Repair::new(&phase, shared.clone(), copies.clone()), BACKGROUND_WORKERS);
        shared.works.synced().await;
        phase.stop().await;
        own.run(Keeper::new(shared.clone(), copies), BACKGROUND_WORKERS);
        start(&own, shared);
    });
}

/// Removes copies that an agent with other settings has left: they would be out of date when they are used again.
async fn remove_copies(client: Client, settings: Settings) {
    if let Err(error) = try_remove_copies(client, &settings).await {
        warn!(error = %chain(&error), "cannot check for copies of works that are no longer kept");
    }
}

async fn try_remove_copies(client: Client, settings: &Settings) -> Result<()> {
    let api: Api<Secret> = Api::namespaced(client, &settings.offline.namespace);
    let found = api.list_metadata(&ListParams::default().labels(OFFLINE_COPY)).await;
    let prefix = components::applied_manifest_work_name(&settings.hub_hash, "");
    for copy in found.while_trying_to("list", || "Secrets".to_owned())?.items {
        if work_of(&copy, &prefix).is_some() {
            let name = copy.name_any();
            let deleted = api.delete(&name, &DeleteParams::default()).await;
            deleted.while_trying_to("delete", || format!("Secret {name}"))?;
        }
    }
    Ok(())
}
