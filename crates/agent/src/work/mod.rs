//! The work half of the agent: applies ManifestWorks to the managed cluster and reports back.
//!
//! ```text
//!  hub: ManifestWork ──watch──▶ works ──▶ managed cluster: AppliedManifestWork + the objects
//!          ▲                      │                            │
//!          └──── one status ──────┘      deleted ──▶ finalizer ─┴─▶ the objects are deleted, then the record
//! ```
//!
//! An AppliedManifestWork is called a record for short.
//!
//! | module | what it does |
//! | --- | --- |
//! | `works` | the life of a ManifestWork: refuse, apply, report, delete |
//! | `finalizer` | deletes the objects of a record that is being deleted |
//! | `availability` | polls what was applied: whether it exists, and what is reported of it |
//! | `evaluation`, `feedback` | what the rules of a work yield for an object |
//! | `watches` | watches of metadata, for works whose feedback follows each change |
//! | `eviction` | deletes records without a ManifestWork, after a grace period |
//! | `executor` | whether the executor of a work has the rights to what the work does |
//! | `offline` | applies copies of works after a restart, while the hub is away |
//! | `safety` | keeps what such records list, if the hub lost works and nobody deleted them |
//! | `drift` | notices when somebody changes what was applied |
//! | `update`, `ignore_fields` | the strategies Update (what to write for which kind) and ServerSideApply (what not to) |
//! | `manifest`, `options`, `strategy`, `mapper`, `ownership`, `refusal`, `identifier` | what is read from works, and what it means |
//! | `record` | which objects an AppliedManifestWork lists, before they are created and afterwards |
//! | `resources`, `status`, `retry`, `stuck` | requests to the managed cluster, and what is reported about them |

mod availability;
mod conditions;
mod drift;
mod evaluation;
mod eviction;
mod executor;
mod feedback;
mod finalizer;
#[cfg(fuzzing)]
pub mod fuzzing;
mod identifier;
mod ignore_fields;
mod manifest;
mod mapper;
mod offline;
mod options;
mod ownership;
mod record;
mod refusal;
mod resources;
mod retry;
mod safety;
mod status;
mod strategy;
mod stuck;
#[cfg(test)]
mod testing;
mod update;
mod watches;
mod works;

use std::{ops::Range, sync::Arc, time::Duration};

use ocm_api::{
    components, limits,
    work::v1::{AppliedManifestWork, ManifestWork},
};
use ocm_runtime::{
    Cache, Context, Informers,
    client::{ClientError, Endpoint},
    digest::sha256_hex,
    events::EventRecorder,
    informer::WatchFilter,
};

pub use self::{
    drift::DEFAULT_DRIFT_WATCH_LIMIT, feedback::FeedbackSettings, offline::OfflineSettings, safety::HoldLimit,
};
use self::{
    drift::{AppliedObjects, Damping},
    executor::Executors,
    offline::Copies,
    resources::Resources,
    safety::{Guard, HeldEvictions},
    stuck::StuckDeletions,
    watches::ObjectWatches,
};

/// How many works are reconciled at a time by default. OCM's 10 do not keep an API server busy: with 32 a thousand works
/// take a fifth less time.
pub const DEFAULT_WORKERS: usize = 32;
/// The most works that are polled, and records that are deleted, at a time: these are in the background.
const BACKGROUND_WORKERS: usize = 8;

/// How many watches for feedback there are at most by default.
pub const MAX_FEEDBACK_WATCH: usize = 50;

/// The settings of the work half.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The cluster's name, which is its namespace on the hub.
    pub cluster: String,
    /// Identifies the hub in the names of AppliedManifestWorks; see [`hub_hash`].
    pub hub_hash: String,
    /// Identifies the agent: no other one writes AppliedManifestWorks with this id.
    pub agent_id: String,
    /// The id that this agent had before `agent_id`. Records of this hub that carry it are its own too, and get the new one.
    pub former_agent_id: Option<String>,
    /// How long an AppliedManifestWork without a ManifestWork is kept.
    pub eviction_grace: Duration,
    /// When so many works are missing that nothing is deleted until somebody confirms.
    pub hold_limit: HoldLimit,
    /// Whether and where copies of works are kept, for a restart while the hub is away.
    pub offline: OfflineSettings,
    /// The host name, part of the reporting instance of events.
    pub host: String,
    /// The shortest time between two polls of the objects of a work.
    pub status_sync: Duration,
    /// The least and the most time between two passes over a work that did not change.
    pub reapply: Range<Duration>,
    /// Whether what executors may do is kept until RBAC objects change: the feature gate ExecutorValidatingCaches.
    pub caches_executors: bool,
    /// How many works are reconciled at a time.
    pub workers: usize,
    /// How many watches of applied objects there are at most; with 0, drift is repaired by the regular pass alone.
    pub drift_watch_limit: usize,
    /// Which feedback values are reported.
    pub feedback: FeedbackSettings,
    /// How many watches there are at most for feedback; the other objects are polled.
    pub max_feedback_watch: usize,
}

impl Settings {
    /// The defaults of OCM for a cluster whose hub kubeconfig names this server. An agent without an
    /// id of its own uses the hash of its hub.
    #[must_use]
    pub fn new(cluster: &str, hub_server: &str, agent_id: &str) -> Self {
        let hub_hash = hub_hash(hub_server);
        let agent_id = if agent_id.is_empty() { hub_hash.clone() } else { agent_id.to_owned() };
        Self {
            cluster: cluster.into(),
            hub_hash,
            agent_id,
            former_agent_id: None,
            eviction_grace: limits::EVICTION_GRACE,
            hold_limit: HoldLimit::default(),
            offline: OfflineSettings::default(),
            host: String::new(),
            status_sync: limits::WORK_STATUS_SYNC,
            reapply: limits::WORK_REAPPLY_MIN..limits::WORK_REAPPLY_MAX,
            caches_executors: false,
            workers: DEFAULT_WORKERS,
            drift_watch_limit: DEFAULT_DRIFT_WATCH_LIMIT,
            feedback: FeedbackSettings::default(),
            max_feedback_watch: MAX_FEEDBACK_WATCH,
        }
    }

    /// Whether a record is this agent's, under its present id or the one it had before.
    #[must_use]
    pub fn owns(&self, record: &AppliedManifestWork) -> bool {
        record.spec.agent_id == self.agent_id || self.adopts(record)
    }

    /// Whether a record of this hub still carries the id that this agent had before. Of another hub it is left alone: agents
    /// of other clusters may have had that id there.
    #[must_use]
    pub fn adopts(&self, record: &AppliedManifestWork) -> bool {
        let spec = &record.spec;
        spec.agent_id != self.agent_id
            && spec.hub_hash == self.hub_hash
            && self.former_agent_id.as_ref() == Some(&spec.agent_id)
    }
}

/// The hash of a hub: lower-case hexadecimal SHA-256 of the server address as its kubeconfig has it.
#[must_use]
pub fn hub_hash(hub_server: &str) -> String {
    sha256_hex(hub_server.as_bytes())
}

/// What the controllers of this half share.
#[derive(Clone, Debug)]
struct Shared {
    settings: Arc<Settings>,
    hub: Informers,
    works: Cache<ManifestWork>,
    applied_works: Cache<AppliedManifestWork>,
    resources: Resources,
    executors: Executors,
    stuck: StuckDeletions,
    guard: Guard,
    /// Where copies of works are kept, if they are.
    copies: Option<Copies>,
}

/// Starts the controllers; they end with `context`. `hub` watches with the agent's identity on the
/// hub, `managed` is the cluster to apply to.
///
/// # Errors
/// [`ClientError`] when no client can be made for the managed cluster.
pub fn start(context: &Context, hub: &Informers, managed: &Endpoint, settings: Settings) -> Result<(), ClientError> {
    let client = managed.client(components::WORK_FIELD_MANAGER)?;
    let informers = Informers::new(client.clone(), context.clone());
    let damping = Damping { longest: settings.reapply.start };
    let objects = AppliedObjects::new(context.clock().clone(), damping);
    let executors = match settings.caches_executors {
        true => Executors::cached(client.clone(), &informers, context),
        false => Executors::new(client.clone()),
    };
    let settings = Arc::new(settings);
    let works = hub.namespaced(&settings.cluster, WatchFilter::all());
    let applied_works = informers.all(WatchFilter::all());
    let shared = Shared {
        guard: Guard::new(&settings, hub.client(), &works, &applied_works),
        copies: Copies::new(&informers, &settings.offline),
        works,
        applied_works,
        executors,
        resources: Resources::remembering(client, objects),
        stuck: StuckDeletions::default(),
        hub: hub.clone(),
        settings,
    };
    offline::start(context, shared, move |context, shared| run_controllers(context, &informers, shared));
    Ok(())
}

fn run_controllers(context: &Context, managed: &Informers, shared: Shared) {
    let (workers, clock) = (shared.settings.workers, context.clock().clone());
    let hub = shared.hub.client().clone();
    let recorder = EventRecorder::new(hub, clock, components::KLUSTERLET_AGENT, &shared.settings.host);
    context.run(works::Works::new(shared.clone()), workers);
    drift::start(context, managed, &shared, recorder.clone());
    context.run(finalizer::Finalizer::new(shared.clone()), workers.min(BACKGROUND_WORKERS));
    let watches = ObjectWatches::new(context, shared.resources.client().clone(), shared.settings.max_feedback_watch);
    let availability = availability::Availability::new(shared.clone(), watches);
    context.run(availability, workers.min(BACKGROUND_WORKERS));
    context.run(HeldEvictions::new(context, shared.clone(), recorder), 1);
    context.run(eviction::Eviction::new(shared), 1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_of_a_hub_is_that_of_its_server_address() {
        assert_eq!(
            hub_hash("https://127.0.0.1:16440"),
            "fc8e7b5e19c9ea36bddfe8d244e87ffa53e2c6d7992bfcb75fe752b30b528972"
        );
    }

    #[test]
    fn records_with_the_former_id_are_adopted_on_the_same_hub_and_others_are_left_alone() {
        let named = Settings::new("c1", "https://hub", "9hdnf");
        let settings = Settings { former_agent_id: Some(named.hub_hash.clone()), ..named.clone() };
        let (hub, elsewhere) = (named.hub_hash.as_str(), hub_hash("https://another"));
        let cases = [
            (hub, "9hdnf", true, false),
            (hub, hub, true, true),
            (hub, "other", false, false),
            (&elsewhere, hub, false, false),
        ];
        for (hub_hash, agent_id, owns, adopts) in cases {
            let mut record = AppliedManifestWork::default();
            record.spec.hub_hash = hub_hash.into();
            record.spec.agent_id = agent_id.into();
            assert_eq!((settings.owns(&record), settings.adopts(&record)), (owns, adopts), "{agent_id} of {hub_hash}");
            assert!(!named.adopts(&record), "an agent whose id is configured adopts nothing");
        }
    }

    #[test]
    fn an_agent_without_an_id_is_known_by_its_hub() {
        let settings = Settings::new("c1", "https://hub", "");
        assert_eq!(settings.agent_id, settings.hub_hash);
    }
}
