//! What is known of a work when it is its turn.

use std::sync::Arc;

use ocm_api::{
    components, conditions,
    work::v1::{AppliedManifestWork, ManifestWork},
};
use ocm_runtime::{ObjectKey, Result, conditions::is_true, write};

use super::{super::Settings, Works};

/// A work, and the record of what was applied of it.
#[derive(Clone, Debug)]
pub(in crate::work) struct Observed {
    /// The work as the hub has it.
    pub work: Arc<ManifestWork>,
    /// The record on the managed cluster, if there is one.
    pub applied: Option<Arc<AppliedManifestWork>>,
    /// Whose agent this is.
    pub settings: Arc<Settings>,
}

/// Looks up a work. `None` when it is gone, or complete: a complete work is frozen, whatever
/// happens to its spec.
pub(super) async fn observe(controller: &Works, name: &str) -> Result<Option<Observed>> {
    let shared = &controller.shared;
    let Some(work) = shared.works.get(&ObjectKey::new(&shared.settings.cluster, name)) else {
        return Ok(None);
    };
    let deleting = write::is_deleting(work.as_ref());
    let status = work.status.as_ref();
    let complete = status.is_some_and(|status| is_true(&status.conditions, conditions::work::COMPLETE));
    if complete && !deleting {
        return Ok(None);
    }
    let applied_name = components::applied_manifest_work_name(&shared.settings.hub_hash, name);
    let mut applied = shared.applied.named(&applied_name);
    if applied.is_none() && deleting {
        // The watch may not have brought what we created a moment ago, and to let a work go without
        // its record would leave its objects behind.
        applied = write::get(&controller.applied_works(), &applied_name).await?.map(Arc::new);
    }
    Ok(Some(Observed { work, applied, settings: shared.settings.clone() }))
}
