//! Writing what changed, and only that.
//!
//! Objects are changed by JSON merge patches that carry their uid and resource version: who
//! decided on a stale object gets a conflict and decides again, and since a merge patch replaces
//! lists whole, that is what keeps two writers of `conditions` from undoing each other. A patch
//! that would change nothing is not sent. Where the other side grants no patch, an object is replaced
//! as a whole, guarded the same way. (Server-side apply and strategic merge patches are not
//! used: OCM's RBAC and its gRPC service know merge patches only.)

mod approval;

use std::fmt::Debug;

use kube::{
    Api, Resource,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions},
};
use ocm_apimachinery::merge;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

pub use self::approval::{approval, approve};
use crate::{
    error::{Error, PATCH, PATCH_STATUS, Result, ResultExt as _, found},
    informer::ObjectKey,
};

/// A kind that can be written. Implemented for all that qualify.
pub trait Writable: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone + Debug {}
impl<K: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone + Debug> Writable for K {}

/// Writes the difference between the `status` of two versions of an object; `None` when there is
/// none and nothing was sent, else the object as the server now has it.
///
/// # Errors
/// [`Error::Request`]; a conflict if the object differs from `old`, or does not exist.
pub async fn patch_status<K: Writable>(api: &Api<K>, old: &K, new: &K) -> Result<Option<K>> {
    let Some(patch) = patch_of(old, new, &["status"])? else { return Ok(None) };
    let name = name_of(old)?;
    let patched = api.patch_status(name, &PatchParams::default(), &Patch::Merge(&patch)).await;
    patched.map(Some).while_trying_to(PATCH_STATUS, || describe(old))
}

/// Writes the difference between everything but the `status` of two versions of an object; `None`
/// when there is none and nothing was sent, else the object as the server now has it.
///
/// # Errors
/// [`Error::Request`]; a conflict if the object differs from `old`, or does not exist.
pub async fn patch<K: Writable>(api: &Api<K>, old: &K, new: &K) -> Result<Option<K>> {
    let Some(patch) = patch_of(old, new, &[])? else { return Ok(None) };
    let name = name_of(old)?;
    let patched = api.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await;
    patched.map(Some).while_trying_to(PATCH, || describe(old))
}

/// The merge patch from one version of an object to another, in the given sections or, when none
/// are given, in all but `status`.
fn patch_of<K: Writable>(old: &K, new: &K, sections: &[&str]) -> Result<Option<Value>> {
    let failed = |source| Error::Serialize { noun: describe(old), source };
    let old_value = serde_json::to_value(old).map_err(failed)?;
    let new_value = serde_json::to_value(new).map_err(failed)?;
    let Some(Value::Object(mut difference)) = merge::diff(&old_value, &new_value) else {
        return Ok(None);
    };
    difference
        .retain(|section, _| if sections.is_empty() { section != "status" } else { sections.contains(&&**section) });
    if difference.is_empty() {
        return Ok(None);
    }
    let metadata = difference.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    metadata["uid"] = json!(old.meta().uid);
    metadata["resourceVersion"] = json!(old.meta().resource_version);
    Ok(Some(Value::Object(difference)))
}

/// Adds a finalizer, unless the object has it; returns the object as the server now has it.
///
/// # Errors
/// [`Error::Request`].
pub async fn add_finalizer<K: Writable>(api: &Api<K>, object: &K, finalizer: &str) -> Result<Option<K>> {
    match with_finalizer(object, finalizer) {
        Some(new) => patch(api, object, &new).await,
        None => Ok(None),
    }
}

/// Removes a finalizer. An object that is gone or never had it is fine.
///
/// # Errors
/// [`Error::Request`].
pub async fn remove_finalizer<K: Writable>(api: &Api<K>, object: &K, finalizer: &str) -> Result<()> {
    let Some(new) = without_finalizer(object, finalizer) else { return Ok(()) };
    found(patch(api, object, &new).await).map(|_| ())
}

/// The object with a finalizer; `None` if it has it already.
pub fn with_finalizer<K: Resource + Clone>(object: &K, finalizer: &str) -> Option<K> {
    (!has_finalizer(object, finalizer)).then(|| {
        let mut new = object.clone();
        new.meta_mut().finalizers.get_or_insert_default().push(finalizer.into());
        new
    })
}

/// The object without a finalizer; `None` if it does not have it.
pub fn without_finalizer<K: Resource + Clone>(object: &K, finalizer: &str) -> Option<K> {
    has_finalizer(object, finalizer).then(|| {
        let mut new = object.clone();
        new.meta_mut().finalizers.get_or_insert_default().retain(|present| present != finalizer);
        new
    })
}

/// Whether the object carries the finalizer.
pub fn has_finalizer<K: Resource>(object: &K, finalizer: &str) -> bool {
    object.meta().finalizers.iter().flatten().any(|present| present == finalizer)
}

/// Whether somebody has asked for the object to be deleted.
pub fn is_deleting<K: Resource>(object: &K) -> bool {
    object.meta().deletion_timestamp.is_some()
}

/// Creates an object.
///
/// # Errors
/// [`Error::Request`]; a conflict when it exists.
pub async fn create<K: Writable>(api: &Api<K>, object: &K) -> Result<K> {
    api.create(&PostParams::default(), object).await.while_trying_to("create", || describe(object))
}

/// Replaces an object. It must carry the resource version that was read.
///
/// # Errors
/// [`Error::Request`]; a conflict when somebody else wrote first.
pub async fn replace<K: Writable>(api: &Api<K>, object: &K) -> Result<K> {
    let replaced = api.replace(name_of(object)?, &PostParams::default(), object).await;
    replaced.while_trying_to("update", || describe(object))
}

/// Deletes exactly this object, not another that has its name since. Fine when it is gone.
///
/// # Errors
/// [`Error::Request`].
pub async fn delete<K: Writable>(api: &Api<K>, object: &K) -> Result<()> {
    let only_this = Preconditions { uid: object.meta().uid.clone(), ..Preconditions::default() };
    let params = DeleteParams { preconditions: Some(only_this), ..DeleteParams::default() };
    let deleted = api.delete(name_of(object)?, &params).await;
    found(deleted.while_trying_to("delete", || describe(object))).map(|_| ())
}

/// Reads an object; `None` when it does not exist.
///
/// # Errors
/// [`Error::Request`].
pub async fn get<K: Writable>(api: &Api<K>, name: &str) -> Result<Option<K>> {
    api.get_opt(name).await.while_trying_to("get", || format!("{} {name}", K::kind(&())))
}

fn name_of<K: Writable>(object: &K) -> Result<&str> {
    let missing = || Error::Incomplete { noun: K::kind(&()).into_owned(), field: "metadata.name" };
    object.meta().name.as_deref().ok_or_else(missing)
}

/// The object for a message: `ManagedCluster cluster1`.
#[must_use]
pub fn describe<K: Resource<DynamicType = ()>>(object: &K) -> String {
    format!("{} {}", K::kind(&()), ObjectKey::of(object))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;

    use super::*;

    fn pod(value: Value) -> Pod {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_patch_holds_the_changed_section_and_what_guards_it() {
        let old =
            pod(json!({"metadata": {"name": "a", "uid": "u", "resourceVersion": "7"}, "status": {"phase": "Pending"}}));
        let mut new = old.clone();
        new.status.get_or_insert_default().phase = Some("Running".into());
        new.metadata.labels = Some([("x".to_owned(), "y".to_owned())].into());
        assert_eq!(
            patch_of(&old, &new, &["status"]).unwrap(),
            Some(json!({"metadata": {"uid": "u", "resourceVersion": "7"}, "status": {"phase": "Running"}}))
        );
        assert_eq!(
            patch_of(&old, &new, &[]).unwrap(),
            Some(json!({"metadata": {"uid": "u", "resourceVersion": "7", "labels": {"x": "y"}}}))
        );
    }

    #[test]
    fn no_difference_is_no_patch() {
        let old = pod(json!({"metadata": {"name": "a"}}));
        assert_eq!(patch_of(&old, &old.clone(), &[]).unwrap(), None);
        let mut new = old.clone();
        new.metadata.labels = Some([("x".to_owned(), "y".to_owned())].into());
        assert_eq!(patch_of(&old, &new, &["status"]).unwrap(), None);
    }
}
