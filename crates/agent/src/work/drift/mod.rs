//! Notices when somebody changes what works have applied, and has it repaired at once.
//!
//! ```text
//!  records ──▶ which works list an object ─┐
//!  requests ─▶ how the object was left ────┼─▶ AppliedObjects ──▶ queue of `works`
//!  watches ──▶ how it is now ──────────────┘
//! ```
//!
//! Watches are of metadata, and of what they bring only the agent's own objects are kept, as a few hashes each. A change that
//! counts puts the works of the object into their queue; there it is read, compared with its manifest, and written if it
//! differs. Without a watch, the regular pass does the same.
//!
//! | module | what it does |
//! | --- | --- |
//! | `facts`, `seen`, `baseline` | the state of an object in a few hashes, and whether it has drifted. Pure |
//! | `damping` | how long an object waits that others keep changing. Pure |
//! | `fields` | which fields others have changed, and who they are. Pure |
//! | `scope` | which watches are worth their cost. Pure |
//! | `objects` | the objects of all works |
//! | `watches`, `watch` | the watches, and one of them |
//! | `report` | events about repairs |

mod baseline;
mod damping;
mod facts;
mod fields;
mod objects;
mod report;
mod scope;
mod seen;
mod watch;
mod watches;

use std::ops::ControlFlow;

use ocm_api::work::v1::{AppliedManifestResourceMeta, AppliedManifestWork};
use ocm_runtime::{Change, Context, Informers, events::EventRecorder};
use tokio::sync::mpsc;

use self::watches::Watches;
pub(super) use self::{
    baseline::{Baseline, Compared},
    damping::Damping,
    facts::Demands,
    objects::{AppliedObjects, Assessment},
};
use super::Shared;

/// How many watches of applied objects an agent has at most.
pub const DEFAULT_DRIFT_WATCH_LIMIT: usize = 50;

/// Starts to follow records, to report repairs and, unless that is switched off, to watch what they list.
pub(super) fn start(context: &Context, informers: &Informers, shared: &Shared, recorder: EventRecorder) {
    follow_records(context, shared);
    let (sender, repairs) = mpsc::channel(report::WAITING);
    shared.resources.objects().report(sender);
    context.spawn(report::report(repairs, shared.works.clone(), shared.settings.cluster.clone(), recorder));
    let limit = shared.settings.drift_watch_limit;
    if limit > 0 {
        context.spawn(Watches::new(context, informers, shared.resources.objects().clone(), limit).run());
    }
}

fn follow_records(context: &Context, shared: &Shared) {
    let (context, objects) = (context.clone(), shared.resources.objects().clone());
    let hub_hash = shared.settings.hub_hash.clone();
    shared.applied_works.subscribe(move |change| {
        if context.is_ended() {
            return ControlFlow::Break(());
        }
        let spec = &change.object().spec;
        if spec.hub_hash == hub_hash {
            let (old, new) = match change {
                Change::Added(new) => (&[][..], listed(new)),
                Change::Updated { old, new } => (listed(old), listed(new)),
                Change::Deleted(old) => (listed(old), &[][..]),
            };
            objects.recorded(&spec.manifest_work_name, old, new);
        }
        ControlFlow::Continue(())
    });
}

fn listed(record: &AppliedManifestWork) -> &[AppliedManifestResourceMeta] {
    record.status.as_ref().map(|status| status.applied_resources.as_slice()).unwrap_or_default()
}
