//! Writes the Roles and RoleBindings of one add-on installation.
//!
//! Only objects that the ManagedClusterAddOn owns, by the uid of an owner reference, are changed or deleted. Those that a
//! former ManagedClusterAddOn of the same name owned are adopted if they carry the add-on's label. An object of the same name
//! that somebody else made is left alone and reported.
//!
//! Objects that are no longer configured are deleted, if the ManagedClusterAddOn owns them and they carry the add-on's label,
//! which every object written here gets. An object without that label may have been made by the add-on's own code.

use k8s_openapi::{
    NamespaceResourceScope,
    api::rbac::v1::{Role, RoleBinding},
};
use kube::{Api, Client, Resource, ResourceExt as _, api::ListParams};
use ocm_api::labels;
use ocm_runtime::{
    ResultExt as _,
    error::found,
    write::{self, Writable},
};

use super::PermissionContext;
use crate::{PermissionError, owner};

/// A kind of RBAC object in a namespace.
pub(super) trait RbacObject: Writable + Resource<Scope = NamespaceResourceScope> + PartialEq {
    /// This object with what `desired` grants; `None` if it must be created again for that.
    fn with_grant_of(&self, desired: &Self) -> Option<Self>;
}

impl RbacObject for Role {
    fn with_grant_of(&self, desired: &Self) -> Option<Self> {
        Some(Self { rules: desired.rules.clone(), ..self.clone() })
    }
}

impl RbacObject for RoleBinding {
    fn with_grant_of(&self, desired: &Self) -> Option<Self> {
        let has_same_role = self.role_ref == desired.role_ref;
        has_same_role.then(|| Self { subjects: desired.subjects.clone(), ..self.clone() })
    }
}

/// A Role, unless an existing one is bound, and the RoleBinding to it.
pub(super) type Pair = (Option<Role>, RoleBinding);

/// Creates, updates and deletes the installation's own objects until exactly these exist. All are tried, and the first error is
/// returned.
pub(super) async fn reconcile(grant: &PermissionContext<'_>, pairs: &[Pair]) -> Result<(), PermissionError> {
    let existing = Existing::read(grant).await?;
    let mut outcome = existing.prune(grant, pairs).await;
    for (role, binding) in pairs {
        let written = async {
            // Never bind a Role that is not the add-on's own: it may grant anything.
            if let Some(role) = role {
                ensure(grant, role, &existing.roles).await?;
            }
            ensure(grant, binding, &existing.bindings).await
        };
        outcome = outcome.and(written.await);
    }
    outcome
}

/// Deletes the installation's own objects that are not among `pairs`.
pub(super) async fn prune(grant: &PermissionContext<'_>, pairs: &[Pair]) -> Result<(), PermissionError> {
    Existing::read(grant).await?.prune(grant, pairs).await
}

/// What carries the add-on's label in the cluster's namespace.
#[derive(Default)]
struct Existing {
    roles: Vec<Role>,
    bindings: Vec<RoleBinding>,
}

impl Existing {
    async fn read(grant: &PermissionContext<'_>) -> Result<Self, PermissionError> {
        if grant.is_first {
            // Most likely there is nothing; what exists all the same is found when it is created.
            return Ok(Self::default());
        }
        Ok(Self { roles: list(grant).await?, bindings: list(grant).await? })
    }

    async fn prune(&self, grant: &PermissionContext<'_>, pairs: &[Pair]) -> Result<(), PermissionError> {
        let bindings = withdrawn(grant, &self.bindings, |name| pairs.iter().any(|pair| pair.1.name_any() == name));
        let roles = withdrawn(grant, &self.roles, |name| {
            pairs.iter().flat_map(|pair| &pair.0).any(|role| role.name_any() == name)
        });
        let mut outcome = Ok(());
        for binding in bindings {
            outcome = outcome.and(write::delete(&api(grant), binding).await.map(|_| ()));
        }
        for role in roles {
            outcome = outcome.and(write::delete(&api(grant), role).await.map(|_| ()));
        }
        Ok(outcome?)
    }
}

fn withdrawn<'a, K: RbacObject>(
    grant: &PermissionContext<'_>,
    existing: &'a [K],
    is_desired: impl Fn(&str) -> bool,
) -> Vec<&'a K> {
    let is_own =
        |object: &K| owner::owns(grant.on.addon, object) && is_labelled(grant, object) && !write::is_deleting(object);
    existing.iter().filter(|object| is_own(object) && !is_desired(&object.name_any())).collect()
}

fn is_labelled(grant: &PermissionContext<'_>, object: &impl Resource) -> bool {
    let label = object.meta().labels.as_ref().and_then(|labels| labels.get(labels::ADDON_NAME));
    label == Some(&grant.on.addon_name())
}

fn api<K: RbacObject>(grant: &PermissionContext<'_>) -> Api<K> {
    let client: Client = grant.client.clone();
    Api::namespaced(client, &grant.on.addon.namespace().unwrap_or_default())
}

async fn list<K: RbacObject>(grant: &PermissionContext<'_>) -> Result<Vec<K>, PermissionError> {
    let noun = || format!("{}s in namespace {}", K::kind(&()), grant.on.cluster_name());
    let labelled = ListParams::default().labels(&format!("{}={}", labels::ADDON_NAME, grant.on.addon_name()));
    let listed = api::<K>(grant).list(&labelled).await.while_trying_to("list", noun)?;
    Ok(listed.items)
}

async fn ensure<K: RbacObject>(
    grant: &PermissionContext<'_>,
    desired: &K,
    existing: &[K],
) -> Result<(), PermissionError> {
    let (api, name) = (api::<K>(grant), desired.name_any());
    let old = match existing.iter().find(|object| object.name_any() == name) {
        Some(known) => known.clone(),
        None => match find_or_create(grant, desired).await? {
            Some(unlabelled) => unlabelled,
            None => return Ok(()),
        },
    };
    match plan(grant, desired, &old)? {
        Some(new) => write::patch(&api, &old, &new).await.map(|_| ())?,
        None => {
            found(write::delete(&api, &old).await)?;
            write::create(&api, desired).await.map(|_| ())?;
        }
    }
    Ok(())
}

/// Returns the object of that name without the add-on's label, if there is one, and creates it otherwise.
async fn find_or_create<K: RbacObject>(
    grant: &PermissionContext<'_>,
    desired: &K,
) -> Result<Option<K>, PermissionError> {
    let api = api::<K>(grant);
    let known = if grant.is_first { None } else { write::get(&api, &desired.name_any()).await? };
    if known.is_some() { Ok(known) } else { create(&api, desired).await }
}

/// Creates an object; returns the one that exists instead, if there is one.
async fn create<K: RbacObject>(api: &Api<K>, desired: &K) -> Result<Option<K>, PermissionError> {
    let exists = match write::create(api, desired).await {
        Ok(_) => return Ok(None),
        Err(error) if error.is_conflict() => error,
        Err(error) => return Err(error.into()),
    };
    write::get(api, &desired.name_any()).await?.map(Some).ok_or_else(|| exists.into())
}

/// The object as it is to be; `None` if it must be created again.
fn plan<K: RbacObject>(grant: &PermissionContext<'_>, desired: &K, old: &K) -> Result<Option<K>, PermissionError> {
    let (addon, is_deleting) = (grant.on.addon, write::is_deleting(old));
    // That of a former installation is about to be deleted, unless this one adopts it.
    let is_of_former = owner::is_of_former(addon, old);
    let is_own = owner::owns(addon, old) || (is_of_former && is_labelled(grant, old));
    if is_own && !is_deleting {
        return Ok(old.with_grant_of(desired).map(|mut new| {
            new.labels_mut().extend(desired.labels().clone());
            owner::adopt(new.meta_mut(), desired.owner_references());
            new
        }));
    }
    let object = write::describe(old);
    Err(if is_deleting || is_of_former {
        PermissionError::BeingDeleted { object }
    } else {
        PermissionError::NotOwned { object }
    })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::rbac::v1::RoleRef;

    use super::*;

    #[test]
    fn a_binding_to_another_role_must_be_created_again_and_one_to_the_same_gets_its_subjects() {
        let to = |role: &str| RoleBinding {
            role_ref: RoleRef { name: role.into(), ..RoleRef::default() },
            subjects: Some(vec![Default::default()]),
            ..RoleBinding::default()
        };
        let (one, other) = (to("view"), to("edit"));
        assert_eq!(one.with_grant_of(&other), None);
        let wider = RoleBinding { subjects: None, ..one.clone() };
        assert_eq!(wider.with_grant_of(&one), Some(one));
    }
}
