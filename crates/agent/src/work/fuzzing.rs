//! What fuzz targets reach of reading works. Only builds by cargo-fuzz have it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::core::DynamicObject;
use ocm_api::work::v1::{AppliedManifestWork, IgnoreField, Manifest, ManifestResourceMeta, ManifestWorkSpec};
use serde_json::Value;

use super::{
    ignore_fields,
    manifest::{self, DesiredObject, ParsedManifest},
    ownership::{self, Ownership},
    refusal,
    update::{self, Change},
};

/// Why a work is not applied.
pub fn refusal(spec: &ManifestWorkSpec) -> Option<String> {
    refusal::reason(spec)
}

/// The objects of a work in the order in which they are applied: what is created, or why nothing is.
pub fn created(manifests: &[Manifest]) -> Vec<(ManifestResourceMeta, Result<DynamicObject, String>)> {
    let mut parsed = manifest::parse(manifests);
    parsed.sort_by_key(ParsedManifest::rank);
    parsed
        .into_iter()
        .map(|one| (one.meta("", true), one.desired.map_or_else(message, |object| create(&object))))
        .collect()
}

/// The write that updates an object to its manifest; `None` if there is nothing to write, or the manifest cannot be applied.
pub fn updated(existing: &DynamicObject, manifest: &Manifest) -> Option<DynamicObject> {
    let object = manifest::parse(std::slice::from_ref(manifest)).pop()?.desired.ok()?;
    match update::to_update(existing, &object, &ownership()).ok()? {
        Change::Nothing => None,
        Change::Update(written) | Change::Recreate(written) => Some(*written),
    }
}

/// What is left of a manifest without the fields that are to be ignored.
pub fn without_ignored(manifest: &Value, ignored: &[IgnoreField]) -> Result<Value, String> {
    ignore_fields::pruned(manifest, ignored).or_else(|(_, error)| message(error))
}

fn create(object: &DesiredObject) -> Result<DynamicObject, String> {
    update::to_create(object, &ownership()).or_else(message)
}

fn message<T>(error: impl ToString) -> Result<T, String> {
    Err(error.to_string())
}

fn ownership() -> Ownership {
    let applied = AppliedManifestWork::default();
    Ownership::Owned(OwnerReference { name: "work".into(), uid: "1".into(), ..ownership::reference(&applied) })
}
