//! What is known of a work when it is its turn.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use ocm_api::{
    components,
    work::v1::{AppliedManifestWork, ManifestWork},
};
use ocm_runtime::{ObjectKey, Result, write};

use super::{
    super::{Settings, conditions::is_complete},
    Works,
    resolve::{ResolvedManifest, resolve},
};

/// A work, and the record of what was applied of it.
#[derive(Debug)]
pub(in crate::work) struct Observed {
    /// The work as the hub has it.
    pub work: Arc<ManifestWork>,
    /// The record on the managed cluster, if there is one.
    pub applied_work: Option<Arc<AppliedManifestWork>>,
    /// The manifests of the work, where they are needed.
    pub manifests: Vec<ResolvedManifest>,
    /// Owner references to former records: removed from objects that must stay, in addition to that to the record.
    pub former: Vec<OwnerReference>,
    /// Why objects of a record that is being deleted cannot be deleted.
    pub stuck: Option<Vec<String>>,
    /// The settings of the agent.
    pub settings: Arc<Settings>,
}

/// Looks up a work of the hub. `None` if it is gone or complete: a complete work is frozen, whatever happens to its spec.
pub(super) async fn observe(controller: &Works, name: &str) -> Result<Option<Observed>> {
    let shared = &controller.shared;
    match shared.works.get(&ObjectKey::new(&shared.settings.cluster, name)) {
        Some(work) => observe_work(controller, name, work).await,
        None => Ok(None),
    }
}

/// Looks up what belongs to a work. `None` if it is complete.
pub(super) async fn observe_work(controller: &Works, name: &str, work: Arc<ManifestWork>) -> Result<Option<Observed>> {
    let shared = &controller.shared;
    let deleting = write::is_deleting(work.as_ref());
    if is_complete(&work) && !deleting {
        return Ok(None);
    }
    let applied_name = components::applied_manifest_work_name(&shared.settings.hub_hash, name);
    let mut applied_work = shared.applied_works.named(&applied_name);
    if applied_work.is_none() && deleting {
        // The watch may not have brought what we created a moment ago, and a work that is released without its record
        // would leave its objects behind.
        applied_work = write::get(&controller.applied_works(), &applied_name).await?.map(Arc::new);
    }
    let manifests = match needs_manifests(&work, applied_work.as_deref()) {
        true => resolve(&shared.resources, &work.spec).await,
        false => Vec::new(),
    };
    let stuck = shared.stuck.get(&applied_name);
    let former = controller.former_owners(name);
    Ok(Some(Observed { work, applied_work, manifests, former, stuck, settings: shared.settings.clone() }))
}

/// Whether the work is applied, or its record is deleted: which objects that concerns depends on the manifests as well.
fn needs_manifests(work: &ManifestWork, applied_work: Option<&AppliedManifestWork>) -> bool {
    let is_record_deleted = applied_work.is_some_and(write::is_deleting);
    let is_applied = !write::is_deleting(work);
    !is_record_deleted && (is_applied || applied_work.is_some())
}
