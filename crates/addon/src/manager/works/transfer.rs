//! Objects that move from one work to another.
//!
//! On the cluster an object is owned by a record of each work that has applied it, and deleted with its last owner. So:
//!
//! 1. the object is added to the new work; the former one keeps it as it is and is not written at all,
//! 2. the cluster's agent reports that it has applied the object as part of the new work: now both own it,
//! 3. the object is removed from the former work, whose agent takes its owner reference off.
//!
//! Where the agent could not apply it as part of the new work, the former one keeps it, and gets its other changes.

use std::collections::BTreeMap;

use ocm_api::{
    conditions::{status, work::APPLIED},
    limits::MAX_MANIFEST_BYTES,
    work::v1::{Manifest, ManifestWork},
};
use ocm_runtime::conditions;

use super::{applied, read::Id, shard::Shard};

/// Which work is to hold which object.
pub(super) struct Homes<'a> {
    homes: BTreeMap<&'a Id, &'a Shard>,
}

/// How far an object has moved.
enum Progress {
    /// The cluster's agent has not seen it in its new work.
    Unknown,
    /// The agent has applied it there.
    Applied,
    /// The agent could not.
    Failed,
}

impl<'a> Homes<'a> {
    pub(super) fn of(shards: &'a [Shard]) -> Self {
        Self { homes: shards.iter().flat_map(|shard| shard.ids().map(move |id| (id, shard))).collect() }
    }

    /// The objects that move away from this work and that it must still hold; `None` if it must not be written now.
    pub(super) fn copies(&self, shard: &'a Shard) -> Option<BTreeMap<&'a Id, &'a Manifest>> {
        let mut copies = BTreeMap::new();
        for id in shard.leaving_ids() {
            let Some(home) = self.homes.get(id) else { continue };
            match progress(home, id) {
                Progress::Unknown => return None,
                Progress::Applied => {}
                Progress::Failed => copies.extend(shard.stored_manifest(id).map(|manifest| (id, manifest))),
            }
        }
        let size: usize = copies.values().map(|manifest| manifest.value().to_string().len()).sum();
        (copies.is_empty() || size + shard.used() <= MAX_MANIFEST_BYTES).then_some(copies)
    }
}

fn progress(home: &Shard, id: &Id) -> Progress {
    let Some(work) = home.old.as_ref().filter(|_| home.holds(id)) else { return Progress::Unknown };
    match applied(work) {
        None => Progress::Unknown,
        Some(condition) if condition.status == status::TRUE || is_applied(work, id) => Progress::Applied,
        Some(_) => Progress::Failed,
    }
}

/// Whether the agent has applied this object of a work, whatever became of the others.
fn is_applied(work: &ManifestWork, id: &Id) -> bool {
    let manifests = work.status.iter().flat_map(|status| &status.resource_status.manifests);
    let own = manifests.filter(|manifest| {
        let meta = &manifest.resource_meta;
        (&meta.group, &meta.kind, &meta.namespace, &meta.name) == id.parts()
    });
    own.filter_map(|manifest| conditions::find(&manifest.conditions, APPLIED))
        .any(|applied| applied.status == status::TRUE)
}
