//! Writing Roles and RoleBindings, so that they grant what they are to grant.

use k8s_openapi::{
    NamespaceResourceScope,
    api::rbac::v1::{Role, RoleBinding},
};
use kube::{Api, Resource, ResourceExt as _};
use ocm_runtime::{
    error::found,
    write::{self, Writable},
};

use super::Grant;
use crate::owner;

/// A kind of RBAC object in a namespace.
pub(super) trait Granting: Writable + Resource<Scope = NamespaceResourceScope> + PartialEq {
    /// Makes it grant the same as `desired`; `None` when it must be made anew for that.
    fn granting_as(&self, desired: &Self) -> Option<Self>;
}

impl Granting for Role {
    fn granting_as(&self, desired: &Self) -> Option<Self> {
        Some(Self { rules: desired.rules.clone(), ..self.clone() })
    }
}

impl Granting for RoleBinding {
    fn granting_as(&self, desired: &Self) -> Option<Self> {
        let same = self.role_ref == desired.role_ref;
        same.then(|| Self { subjects: desired.subjects.clone(), ..self.clone() })
    }
}

/// Makes an object, or makes the one that is there grant the same. What else stands in it stays.
pub(super) async fn ensure<K: Granting>(grant: &Grant<'_>, desired: &K) -> Result<(), ocm_runtime::Error> {
    let namespace = desired.namespace().unwrap_or_default();
    let api: Api<K> = Api::namespaced(grant.client.clone(), &namespace);
    if grant.is_first && create(&api, desired).await? {
        return Ok(());
    }
    let Some(old) = write::get(&api, &desired.name_any()).await? else {
        return write::create(&api, desired).await.map(|_| ());
    };
    match old.granting_as(desired) {
        Some(mut new) => {
            owner::adopt(new.meta_mut(), desired.owner_references());
            write::patch(&api, &old, &new).await.map(|_| ())
        }
        None => {
            found(write::delete(&api, &old).await)?;
            write::create(&api, desired).await.map(|_| ())
        }
    }
}

/// Whether it was made; not when there is one already.
async fn create<K: Granting>(api: &Api<K>, desired: &K) -> Result<bool, ocm_runtime::Error> {
    match write::create(api, desired).await {
        Ok(_) => Ok(true),
        Err(error) if error.is_conflict() => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::rbac::v1::RoleRef;

    use super::*;

    #[test]
    fn a_binding_to_another_role_must_be_made_anew_and_one_to_the_same_gets_its_subjects() {
        let to = |role: &str| RoleBinding {
            role_ref: RoleRef { name: role.into(), ..RoleRef::default() },
            subjects: Some(vec![Default::default()]),
            ..RoleBinding::default()
        };
        let (one, other) = (to("view"), to("edit"));
        assert_eq!(one.granting_as(&other), None);
        let wider = RoleBinding { subjects: None, ..one.clone() };
        assert_eq!(wider.granting_as(&one), Some(one));
    }
}
