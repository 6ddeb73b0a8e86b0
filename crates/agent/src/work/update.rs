//! The Update strategy: what to write so that an object becomes what its manifest says.
//!
//! Labels, annotations and owner references are merged, finalizers are left alone. What else is
//! compared and written depends on the kind: for some, only the sections that the manifest is
//! about; for all others the whole object. All of it is pure; [`super::resources`] does the writing.

mod kinds;
mod metadata;

use kube::core::DynamicObject;

use self::kinds::Body;
use super::{manifest::DesiredObject, ownership::Ownership};

/// What to write.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Change {
    /// The object is as it should be.
    Nothing,
    /// Replace it by this.
    Update(Box<DynamicObject>),
    /// What has to change cannot be changed in place: delete it, and create this.
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

/// The object to create where there is none.
pub(super) fn to_create(desired: &DesiredObject, ownership: &Ownership) -> Result<DynamicObject, UpdateError> {
    let mut object = desired.object.clone();
    metadata::strip_removals(&mut object.metadata);
    metadata::own(&mut object.metadata, ownership);
    let body = Body::of(&desired.gvk);
    body.prepare(&mut object)?;
    Ok(object)
}

/// What to write so that `present` becomes what `desired` says.
pub(super) fn to_update(
    present: &DynamicObject,
    desired: &DesiredObject,
    ownership: &Ownership,
) -> Result<Change, UpdateError> {
    let body = Body::of(&desired.gvk);
    let mut manifest = desired.object.clone();
    body.prepare(&mut manifest)?;
    body.keep_present_metadata(present, &mut manifest);
    let mut updated = present.clone();
    let metadata_changed = metadata::merge(&mut updated.metadata, &manifest.metadata, ownership);
    if body.must_recreate(present, &manifest) {
        return to_recreate(present, desired, ownership).map(|object| Change::Recreate(Box::new(object)));
    }
    let body_changed = body.merge(&mut updated.data, &manifest, metadata_changed);
    if !metadata_changed && !body_changed {
        return Ok(Change::Nothing);
    }
    // Sent back they would claim everybody's fields for whoever they name.
    updated.metadata.managed_fields = None;
    updated.types = manifest.types;
    Ok(Change::Update(Box::new(updated)))
}

/// The object to create in place of `present`: what the manifest says, with the owners, labels and annotations that others
/// have given it.
pub(super) fn to_recreate(
    present: &DynamicObject,
    desired: &DesiredObject,
    ownership: &Ownership,
) -> Result<DynamicObject, UpdateError> {
    let body = Body::of(&desired.gvk);
    let mut object = desired.object.clone();
    body.prepare(&mut object)?;
    body.keep_present_metadata(present, &mut object);
    let mut merged = present.metadata.clone();
    metadata::merge(&mut merged, &object.metadata, ownership);
    object.metadata.labels = merged.labels;
    object.metadata.annotations = merged.annotations;
    object.metadata.owner_references = merged.owner_references;
    Ok(object)
}

#[cfg(test)]
mod tests;
