//! Maintaining RBAC objects: [`upsert`] and [`removal`] decide, [`Step::run`] writes.
//!
//! What somebody added (labels, annotations) stays. Rules and subjects are ours alone, since they are what an agent may
//! do. A binding to another role is deleted and created again: Kubernetes does not allow it to change.

pub(crate) mod objects;

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, RoleBinding};
use kube::{Api, Client, ResourceExt as _, api::DeleteParams, api::Preconditions};
use ocm_api::{finalizers::MANIFEST_WORK, labels};
use ocm_runtime::{
    Cache, ResultExt as _,
    error::found,
    write::{self, Writable},
};

use crate::{caches::check_adoptable, error::Result};

/// An RBAC object the hub keeps.
pub(crate) trait Granting: Writable + PartialEq + Send + Sync + 'static {
    /// Where the object is.
    fn api(&self, client: &Client) -> Api<Self>;
    /// Makes what it grants the same as in `desired`.
    fn grant_as(&mut self, desired: &Self);
    /// Whether it must be deleted and created again to grant the same as `desired`.
    fn is_bound_elsewhere(&self, desired: &Self) -> bool;
}

impl Granting for ClusterRole {
    fn api(&self, client: &Client) -> Api<Self> {
        Api::all(client.clone())
    }
    fn grant_as(&mut self, desired: &Self) {
        self.rules.clone_from(&desired.rules);
        // Rules of an aggregated role are somebody else's.
        self.aggregation_rule = None;
    }
    fn is_bound_elsewhere(&self, _: &Self) -> bool {
        false
    }
}

impl Granting for ClusterRoleBinding {
    fn api(&self, client: &Client) -> Api<Self> {
        Api::all(client.clone())
    }
    fn grant_as(&mut self, desired: &Self) {
        self.subjects.clone_from(&desired.subjects);
    }
    fn is_bound_elsewhere(&self, desired: &Self) -> bool {
        self.role_ref != desired.role_ref
    }
}

impl Granting for RoleBinding {
    fn api(&self, client: &Client) -> Api<Self> {
        Api::namespaced(client.clone(), self.metadata.namespace.as_deref().unwrap_or_default())
    }
    fn grant_as(&mut self, desired: &Self) {
        self.subjects.clone_from(&desired.subjects);
    }
    fn is_bound_elsewhere(&self, desired: &Self) -> bool {
        self.role_ref != desired.role_ref
    }
}

/// What to do with an RBAC object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step<K> {
    /// Make it.
    Create(Box<K>),
    /// Change what differs.
    Update { old: Arc<K>, new: Box<K> },
    /// Delete it and create it again.
    Replace { old: Arc<K>, new: Box<K> },
    /// Delete it, unless it is being deleted, and with `release` remove the finalizer that holds it.
    Remove { old: Arc<K>, release: bool },
}

/// What makes an object as desired; `None` when it is.
pub(crate) fn upsert<K: Granting>(existing: Option<&Arc<K>>, desired: K) -> Option<Step<K>> {
    let Some(old) = existing else { return Some(Step::Create(Box::new(desired))) };
    if write::is_deleting(old.as_ref()) || old.is_bound_elsewhere(&desired) {
        return Some(Step::Replace { old: old.clone(), new: Box::new(desired) });
    }
    let mut new = K::clone(old);
    new.grant_as(&desired);
    add_missing(new.meta_mut().labels.get_or_insert_default(), desired.labels());
    for finalizer in desired.finalizers() {
        if !write::has_finalizer(&new, finalizer) {
            new.meta_mut().finalizers.get_or_insert_default().push(finalizer.clone());
        }
    }
    (new != **old).then(|| Step::Update { old: old.clone(), new: Box::new(new) })
}

/// What removes an object; `None` when there is none, or nothing more can be done. While `release` is false, an object
/// with a finalizer stays while it is being deleted, and grants until it is gone.
pub(crate) fn removal<K: Granting>(existing: Option<&Arc<K>>, release: bool) -> Option<Step<K>> {
    let old = existing?;
    let release = release && write::has_finalizer(old.as_ref(), MANIFEST_WORK);
    (release || !write::is_deleting(old.as_ref())).then(|| Step::Remove { old: old.clone(), release })
}

/// Adds labels, or gives them the value they should have. Says whether that changed anything.
pub(crate) fn add_missing(labels: &mut BTreeMap<String, String>, wanted: &BTreeMap<String, String>) -> bool {
    let before = labels.clone();
    labels.extend(wanted.clone());
    *labels != before
}

impl<K: Granting> Step<K> {
    /// Writes, and records the write in the cache.
    pub(crate) async fn run(self, client: &Client, cache: &Cache<K>) -> Result<()> {
        match self {
            Self::Create(new) => create(client, cache, &new).await,
            Self::Update { old, new } => update(client, cache, &old, &new).await,
            Self::Replace { old, new } => {
                remove(client, cache, &old, true).await?;
                create(client, cache, &new).await
            }
            Self::Remove { old, release } => remove(client, cache, &old, release).await,
        }
    }
}

/// Runs a step, if there is one.
pub(crate) async fn run<K: Granting>(step: Option<Step<K>>, client: &Client, cache: &Cache<K>) -> Result<()> {
    match step {
        Some(step) => step.run(client, cache).await,
        None => Ok(()),
    }
}

async fn create<K: Granting>(client: &Client, cache: &Cache<K>, new: &K) -> Result<()> {
    let api = new.api(client);
    match write::create(&api, new).await {
        Ok(created) => cache.record_write(created),
        Err(error) if error.is_conflict() => return adopt(client, cache, new, error).await,
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

/// Adopts an object of that name that the cache does not show because it lost its label. If it is gone again, the conflict
/// is returned: nothing has been created.
async fn adopt<K: Granting>(client: &Client, cache: &Cache<K>, new: &K, exists: ocm_runtime::Error) -> Result<()> {
    let Some(live) = write::get(&new.api(client), &new.name_any()).await? else { return Err(exists.into()) };
    check_adoptable(&live, new.labels().get(labels::CLUSTER_NAME).map_or("", String::as_str))?;
    let live = Arc::new(live);
    match upsert(Some(&live), new.clone()) {
        None => cache.record_write(K::clone(&live)),
        Some(Step::Update { old, new }) => update(client, cache, &old, &new).await?,
        Some(_) => return Err(exists.into()),
    }
    Ok(())
}

async fn update<K: Granting>(client: &Client, cache: &Cache<K>, old: &K, new: &K) -> Result<()> {
    if let Some(updated) = write::patch(&old.api(client), old, new).await? {
        cache.record_write(updated);
    }
    Ok(())
}

async fn remove<K: Granting>(client: &Client, cache: &Cache<K>, old: &Arc<K>, release: bool) -> Result<()> {
    let api = old.api(client);
    if release {
        write::remove_finalizer(&api, old.as_ref(), MANIFEST_WORK).await?;
    }
    if !write::is_deleting(old.as_ref()) {
        return delete(&api, cache, old).await;
    }
    if release {
        cache.record_delete(old);
    }
    Ok(())
}

/// Deletes exactly this object. One that a finalizer holds is recorded as it is now.
async fn delete<K: Granting>(api: &Api<K>, cache: &Cache<K>, old: &Arc<K>) -> Result<()> {
    let only_this = Preconditions { uid: old.meta().uid.clone(), ..Preconditions::default() };
    let params = DeleteParams { preconditions: Some(only_this), ..DeleteParams::default() };
    let deleted = api.delete(&old.name_any(), &params).await;
    if let Some(deleted) = found(deleted.while_trying_to("delete", || write::describe(old.as_ref())))?
        && let Some(left) = deleted.left()
        && !left.finalizers().is_empty()
    {
        cache.record_write(left);
    } else {
        cache.record_delete(old);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
