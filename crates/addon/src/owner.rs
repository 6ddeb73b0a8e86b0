//! Owner references to an add-on on a cluster.

use k8s_openapi::{
    Resource as _,
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};
use kube::{Resource, ResourceExt as _};
use ocm_api::addon::v1beta1;

/// Whether an owner reference of the object names exactly this object.
pub(crate) fn owns(owner: &impl Resource, object: &impl Resource) -> bool {
    let uid = owner.meta().uid.as_ref();
    uid.is_some() && references(object).any(|reference| Some(&reference.uid) == uid)
}

/// Whether only a former add-on of the same name owns the object: the garbage collector is about to delete it.
pub(crate) fn is_of_former(addon: &impl Resource, object: &impl Resource) -> bool {
    let is_addon = |reference: &OwnerReference| {
        let group = reference.api_version.split_once('/').map(|(group, _)| group);
        group == Some(v1beta1::ManagedClusterAddOn::GROUP)
            && reference.kind == v1beta1::ManagedClusterAddOn::KIND
            && reference.name == addon.name_any()
    };
    !owns(addon, object) && references(object).count() > 0 && references(object).all(is_addon)
}

fn references(object: &impl Resource) -> impl Iterator<Item = &OwnerReference> {
    object.meta().owner_references.iter().flatten()
}

/// An owner reference to an add-on on a cluster. It names version v1beta1, as OCM's do.
pub(crate) fn reference(addon: &impl Resource, controller: bool) -> OwnerReference {
    OwnerReference {
        api_version: v1beta1::ManagedClusterAddOn::API_VERSION.into(),
        kind: v1beta1::ManagedClusterAddOn::KIND.into(),
        name: addon.name_any(),
        uid: addon.uid().unwrap_or_default(),
        block_owner_deletion: Some(true),
        controller: controller.then_some(true),
    }
}

/// Adds these owner references, and removes former ones of the same kind and name. Others stay.
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
    use ocm_api::addon::v1alpha1::ManagedClusterAddOn;

    use super::*;

    #[test]
    fn an_owner_is_known_by_its_uid_and_a_former_one_is_none() {
        let with_uid = |uid: &str| {
            let mut addon = ManagedClusterAddOn::new("c1", "hello", Default::default());
            addon.metadata.uid = Some(uid.into());
            addon
        };
        let (addon, former) = (with_uid("new"), with_uid("former"));
        let owned_by = |owners: Vec<OwnerReference>| {
            let mut object = with_uid("object");
            object.metadata.owner_references = Some(owners);
            object
        };
        let own = owned_by(vec![reference(&former, false), reference(&addon, false)]);
        assert!(owns(&addon, &own) && !is_of_former(&addon, &own));
        let left_over = owned_by(vec![reference(&former, false)]);
        assert!(!owns(&addon, &left_over) && is_of_former(&addon, &left_over));
        let other = OwnerReference { kind: "Other".into(), ..reference(&former, false) };
        for foreign in [owned_by(vec![]), owned_by(vec![reference(&former, false), other])] {
            assert!(!owns(&addon, &foreign) && !is_of_former(&addon, &foreign));
        }
        assert!(!owns(&ManagedClusterAddOn::default(), &ManagedClusterAddOn::default()));
    }

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
