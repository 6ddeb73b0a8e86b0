//! What belongs to an add-on on a cluster goes with it: owner references.

use k8s_openapi::{
    Resource as _,
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};
use kube::ResourceExt as _;
use ocm_api::addon::{v1alpha1::ManagedClusterAddOn, v1beta1};

/// A reference to an add-on on a cluster. It names version v1beta1, as OCM's do.
pub(crate) fn reference(addon: &ManagedClusterAddOn, controller: bool) -> OwnerReference {
    OwnerReference {
        api_version: v1beta1::ManagedClusterAddOn::API_VERSION.into(),
        kind: v1beta1::ManagedClusterAddOn::KIND.into(),
        name: addon.name_any(),
        uid: addon.uid().unwrap_or_default(),
        block_owner_deletion: Some(true),
        controller: controller.then_some(true),
    }
}

/// Gives an object these owners, instead of former ones of the same kind and name. Others stay.
pub(crate) fn adopt(meta: &mut ObjectMeta, new: &[OwnerReference]) {
    for owner in new {
        let owners = meta.owner_references.get_or_insert_default();
        match owners.iter_mut().find(|known| known.kind == owner.kind && known.name == owner.name) {
            Some(known) => known.clone_from(owner),
            None => owners.push(owner.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_former_add_on_of_the_same_name_is_replaced_and_other_owners_stay() {
        let mut addon = ManagedClusterAddOn::new("c1", "hello", Default::default());
        addon.metadata.uid = Some("new".into());
        let mut former = reference(&addon, true);
        former.uid = "former".into();
        let other = OwnerReference { kind: "Other".into(), ..OwnerReference::default() };
        let mut meta = ObjectMeta { owner_references: Some(vec![other, former]), ..Default::default() };
        adopt(&mut meta, &[reference(&addon, true)]);
        let uids: Vec<_> = meta.owner_references.unwrap().into_iter().map(|owner| owner.uid).collect();
        assert_eq!(uids, ["", "new"]);
    }
}
