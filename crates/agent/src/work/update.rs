//! The Update strategy: what to write so that an object equals its manifest.
//!
//! Labels, annotations and owner references are merged, finalizers are left alone. What else is
//! compared and written depends on the kind: for some, only the sections that the manifest is
//! about; for all others the whole object. All of it is a pure function of the existing and the desired object;
//! [`super::resources`] writes.

mod kinds;
mod metadata;

use kube::core::DynamicObject;

use self::kinds::Body;
use super::{
    drift::{Compared, Demands},
    manifest::DesiredObject,
    ownership::Ownership,
};

/// What to write.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Change {
    /// The object equals the manifest.
    Nothing,
    /// Replace the object by this one.
    Update(Box<DynamicObject>),
    /// The API server does not allow the change: delete the object, and create this one.
    Recreate(Box<DynamicObject>),
}

/// Why a manifest cannot be applied, whatever is on the cluster.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum UpdateError {
    #[error("data and stringData give different values for key {0:?}: keep one of the two")]
    SecretConflict(String),
    #[error(
        "an ephemeral CSIDriver needs the label security.openshift.io/csi-ephemeral-volume-profile: add it to the manifest"
    )]
    EphemeralProfile,
}

/// The object of the manifest with its owner: what strategies without a care for kinds create.
pub(super) fn as_in_manifest(desired: &DesiredObject, ownership: &Ownership) -> DynamicObject {
    let mut object = desired.object.clone();
    metadata::strip_removals(&mut object.metadata);
    metadata::own(&mut object.metadata, ownership);
    object
}

/// What to create where the object does not exist.
pub(super) fn to_create(desired: &DesiredObject, ownership: &Ownership) -> Result<DynamicObject, UpdateError> {
    let mut object = as_in_manifest(desired, ownership);
    let body = Body::of(&desired.gvk);
    body.prepare(&mut object)?;
    Ok(object)
}

/// What to write so that an existing object equals its manifest.
pub(super) fn to_update(
    existing: &DynamicObject,
    desired: &DesiredObject,
    ownership: &Ownership,
) -> Result<Change, UpdateError> {
    let body = Body::of(&desired.gvk);
    let mut manifest = desired.object.clone();
    body.prepare(&mut manifest)?;
    body.keep_existing_metadata(existing, &mut manifest);
    let mut updated = existing.clone();
    let metadata_changed = metadata::merge(&mut updated.metadata, &manifest.metadata, ownership);
    if body.must_recreate(existing, &manifest) {
        return to_recreate(existing, desired, ownership).map(|object| Change::Recreate(Box::new(object)));
    }
    let body_changed = body.merge(&mut updated.data, &manifest, metadata_changed);
    if !metadata_changed && !body_changed {
        return Ok(Change::Nothing);
    }
    // Sent back, they would make the managers they name the owners of all fields again.
    updated.metadata.managed_fields = None;
    updated.types = manifest.types;
    Ok(Change::Update(Box::new(updated)))
}

/// What is compared to find out whether an object was changed since it was written.
pub(super) fn compared(desired: &DesiredObject, ownership: &Ownership) -> Compared {
    let body = Body::of(&desired.gvk);
    let mut manifest = desired.object.clone();
    // What cannot be prepared is not written either.
    let _ = body.prepare(&mut manifest);
    Compared { demands: Demands::of(&manifest.metadata, ownership), body: body != Body::Ignored }
}

/// The object to create in place of `existing`: that of the manifest, with the owners, labels and annotations that others
/// have given it.
pub(super) fn to_recreate(
    existing: &DynamicObject,
    desired: &DesiredObject,
    ownership: &Ownership,
) -> Result<DynamicObject, UpdateError> {
    let body = Body::of(&desired.gvk);
    let mut object = desired.object.clone();
    body.prepare(&mut object)?;
    body.keep_existing_metadata(existing, &mut object);
    let mut merged = existing.metadata.clone();
    metadata::merge(&mut merged, &object.metadata, ownership);
    object.metadata.labels = merged.labels;
    object.metadata.annotations = merged.annotations;
    object.metadata.owner_references = merged.owner_references;
    Ok(object)
}

#[cfg(test)]
mod tests;
