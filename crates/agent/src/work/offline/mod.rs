//! Repairing what works applied while the hub is away, also after a restart of the agent. `docs/offline.md` describes it for
//! people.
//!
//! An agent that runs repairs from its caches when the hub goes away. One that is started then has no works in its caches. So
//! while the hub is available, a copy of each work is kept in a Secret on the managed cluster. While the first list of works has
//! not come, `repair` applies the copies; nothing else of the work half runs. Once the list has come, passes in progress are
//! finished, and the controllers of the work half start: a work is never applied by both.
//!
//! | module | what it does |
//! | --- | --- |
//! | `copy` | what a copy contains, and whether it may be used |
//! | `copies` | writes copies, and deletes those that cannot be replaced |
//! | `keeper` | brings a copy up to date when objects of its work became complete |
//! | `repair` | applies copies |
//! | `removal` | deletes copies that are no longer kept |
//!
//! # Why a copy is safe to apply
//!
//! While the hub is away nothing is deleted, so a copy must create nothing that would not be deleted when the hub is back, and
//! must not revert what was applied since. Two rules ensure that:
//!
//! - **A copy is not older than what was applied**, with one exception. A pass over a work first replaces its copy, or
//!   deletes it if it cannot be replaced, and then applies the work. The managed cluster can refuse both; the work is
//!   applied nevertheless.
//! - **Only objects that the AppliedManifestWork lists are applied**, and none is added to the list; see `works::apply::repair`.
//!   An object is listed before it is created and until it is deleted. So when the hub is back, each object is applied as the
//!   work is then, or deleted if it is no longer in the work. This does not depend on the first rule.

mod copies;
mod copy;
mod keeper;
mod removal;
mod repair;

use std::time::Duration;

use kube::ResourceExt as _;
use ocm_api::annotations::OFFLINE_COPY_OF;
use ocm_runtime::Context;

pub(super) use self::copies::Copies;
use self::{copies::CopyMeta, keeper::Keeper, removal::remove_copies, repair::Repair};
use super::{BACKGROUND_WORKERS, Shared};

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

/// The work of a copy that this agent made of a work of this hub.
fn work_of(copy: &CopyMeta, prefix: &str) -> Option<String> {
    copy.annotations().get(OFFLINE_COPY_OF)?.strip_prefix(prefix).map(str::to_owned)
}

/// Starts the work half with `start`: at once if no copies are kept, or else once the hub has listed its works.
pub(super) fn start(context: &Context, shared: Shared, start: impl FnOnce(&Context, Shared) + Send + 'static) {
    let Some(copies) = shared.copies.clone() else {
        context.spawn(remove_copies(shared.resources.client().clone(), shared.settings.clone()));
        return start(context, shared);
    };
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
