//! The owner references of an object that is not written as a whole.

use kube::{
    api::{Patch, PatchParams},
    core::ObjectMeta,
};
use ocm_runtime::ResultExt as _;
use serde_json::json;

use super::Task;
use crate::work::{ownership, resources::ApplyError};

impl Task<'_> {
    /// Adds or removes owner references, if they differ from what they should be; returns the metadata as it is then. The
    /// patch replaces the list of the object that was read: a conflict if somebody else wrote first, or it is gone.
    pub(super) async fn own(&self, existing: ObjectMeta) -> Result<ObjectMeta, ApplyError> {
        let present = existing.owner_references.as_deref().unwrap_or_default();
        let owners = ownership::merged(present, self.ownership);
        if owners == present {
            return Ok(existing);
        }
        let patch = json!({"metadata": {
            "uid": existing.uid,
            "resourceVersion": existing.resource_version,
            "ownerReferences": owners,
        }});
        let patched = self.api.patch_metadata(&self.object.name, &PatchParams::default(), &Patch::Merge(&patch)).await;
        Ok(patched.while_trying_to("patch", || self.object.to_string())?.metadata)
    }
}
