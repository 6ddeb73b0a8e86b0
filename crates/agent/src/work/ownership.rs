//! Who owns an applied object: owner references to AppliedManifestWorks.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Resource;
use ocm_api::work::v1::{AppliedManifestWork, DeleteOption, PropagationPolicy};

/// Whether an object has an owner reference to the record of its work.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Ownership {
    /// The object is deleted with the work.
    Owned(OwnerReference),
    /// The object stays when the work is deleted: existing references to any of its records are removed.
    Orphaned(Vec<OwnerReference>),
}

impl Ownership {
    /// The same with the reference of an owner. `former` are those of the records that the work had under other addresses of
    /// the hub.
    pub(super) fn of(is_owned: bool, owner: &AppliedManifestWork, former: &[OwnerReference]) -> Self {
        let reference = reference(owner);
        match is_owned {
            true => Self::Owned(reference),
            false => Self::Orphaned(former.iter().cloned().chain([reference]).collect()),
        }
    }
}

/// Whether the objects of a work with this delete option are deleted with it.
pub(super) fn is_owned(option: Option<&DeleteOption>) -> bool {
    option.is_none_or(|option| option.propagation_policy != PropagationPolicy::Orphan)
}

/// The reference an object carries when `applied` owns it.
pub(super) fn reference(applied: &AppliedManifestWork) -> OwnerReference {
    OwnerReference {
        api_version: AppliedManifestWork::api_version(&()).into_owned(),
        kind: AppliedManifestWork::kind(&()).into_owned(),
        name: applied.metadata.name.clone().unwrap_or_default(),
        uid: applied.metadata.uid.clone().unwrap_or_default(),
        ..OwnerReference::default()
    }
}

/// The owner references that an object should have. Another uid under the same name is an owner that no longer exists, and
/// is replaced by ours.
pub(super) fn merged(existing: &[OwnerReference], ownership: &Ownership) -> Vec<OwnerReference> {
    match ownership {
        Ownership::Orphaned(ours) => {
            let is_ours = |other: &OwnerReference| ours.iter().any(|ours| same_owner(other, ours));
            existing.iter().filter(|other| !is_ours(other)).cloned().collect()
        }
        Ownership::Owned(ours) => with(existing, ours),
    }
}

fn with(existing: &[OwnerReference], ours: &OwnerReference) -> Vec<OwnerReference> {
    let mut references = existing.to_vec();
    match references.iter_mut().find(|other| same_owner(other, ours)) {
        Some(known) if known.uid == ours.uid => {}
        Some(outdated) => *outdated = ours.clone(),
        None => references.push(ours.clone()),
    }
    references
}

/// Whether two references name the same owner: kind, group and name count, the uid does not.
fn same_owner(a: &OwnerReference, b: &OwnerReference) -> bool {
    a.name == b.name && a.kind == b.kind && group(a) == group(b)
}

fn group(reference: &OwnerReference) -> &str {
    reference.api_version.split_once('/').map_or("", |(group, _)| group)
}

/// Whether a reference names some AppliedManifestWork.
pub(super) fn is_applied_work(reference: &OwnerReference) -> bool {
    reference.kind == AppliedManifestWork::kind(&()) && group(reference) == AppliedManifestWork::group(&())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::work) fn owner(name: &str, uid: &str) -> OwnerReference {
        let mut applied = AppliedManifestWork::default();
        applied.metadata.name = Some(name.into());
        applied.metadata.uid = Some(uid.into());
        reference(&applied)
    }

    #[test]
    fn an_owned_object_gains_our_reference_beside_others() {
        let other = owner("other", "1");
        let references = merged(std::slice::from_ref(&other), &Ownership::Owned(owner("ours", "2")));
        assert_eq!(references, [other, owner("ours", "2")]);
    }

    #[test]
    fn a_reference_to_an_owner_that_is_gone_is_replaced() {
        let references = merged(&[owner("ours", "old")], &Ownership::Owned(owner("ours", "new")));
        assert_eq!(references, [owner("ours", "new")]);
    }

    #[test]
    fn what_others_set_on_our_reference_is_kept() {
        let mut existing = owner("ours", "1");
        existing.block_owner_deletion = Some(true);
        assert_eq!(merged(&[existing.clone()], &Ownership::Owned(owner("ours", "1"))), [existing]);
    }

    #[test]
    fn an_orphaned_object_loses_our_reference_only() {
        let other = owner("other", "1");
        let references = merged(&[other.clone(), owner("ours", "2")], &Ownership::Orphaned(vec![owner("ours", "3")]));
        assert_eq!(references, [other]);
    }
}
