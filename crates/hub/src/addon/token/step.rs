//! What to do with one object: [`step`] decides, [`Step::run`] writes.

use std::sync::Arc;

use kube::{Client, ResourceExt as _};
use ocm_runtime::{Cache, write};

use super::objects::{TokenObject, is_own};
use crate::error::{Error, Result};

/// What to do with an object that the add-on needs.
#[derive(Debug, PartialEq)]
pub(crate) enum Step<K> {
    /// It is as it should be.
    Keep(Arc<K>),
    Create(Box<K>),
    /// Change what differs.
    Update {
        old: Arc<K>,
        new: Box<K>,
    },
    /// Delete it and create it again.
    Replace {
        old: Arc<K>,
        new: Box<K>,
    },
    /// It is being deleted, and can be created again only when it is gone.
    Wait(Arc<K>),
}

pub(super) fn step<K: TokenObject>(existing: Option<&Arc<K>>, desired: K) -> Step<K> {
    let Some(old) = existing else { return Step::Create(Box::new(desired)) };
    if write::is_deleting(old.as_ref()) {
        return Step::Wait(old.clone());
    }
    match old.with_grant_of(&desired) {
        None => Step::Replace { old: old.clone(), new: Box::new(desired) },
        Some(new) if new == **old => Step::Keep(old.clone()),
        Some(new) => Step::Update { old: old.clone(), new: Box::new(new) },
    }
}

impl<K: TokenObject> Step<K> {
    /// Writes for this add-on, and records the write in the cache; returns the object.
    pub(super) async fn run(self, client: &Client, cache: &Cache<K>, addon: &str) -> Result<Arc<K>> {
        match self {
            Self::Keep(object) => Ok(object),
            Self::Create(new) => create(client, cache, *new, addon).await,
            Self::Update { old, new } => update(client, cache, old, &new).await,
            Self::Replace { old, new } => {
                write::delete(&old.api(client), old.as_ref()).await?;
                cache.record_delete(&old);
                create(client, cache, *new, addon).await
            }
            Self::Wait(object) => Err(Error::BeingDeleted { noun: write::describe(object.as_ref()) }),
        }
    }
}

async fn create<K: TokenObject>(client: &Client, cache: &Cache<K>, new: K, addon: &str) -> Result<Arc<K>> {
    match write::create(&new.api(client), &new).await {
        Ok(created) => Ok(recorded(cache, created)),
        Err(error) if error.is_conflict() => use_existing(client, cache, new, addon, error).await,
        Err(error) => Err(error.into()),
    }
}

/// Uses an object of that name that the cache does not show yet, if it is the add-on's own.
async fn use_existing<K: TokenObject>(
    client: &Client,
    cache: &Cache<K>,
    new: K,
    addon: &str,
    exists: ocm_runtime::Error,
) -> Result<Arc<K>> {
    let Some(live) = write::get(&new.api(client), &new.name_any()).await? else { return Err(exists.into()) };
    if !is_own(&live, addon) {
        return Err(Error::NotOwned { noun: write::describe(&live), addon: addon.to_owned() });
    }
    match step(Some(&Arc::new(live)), new) {
        Step::Keep(live) => Ok(recorded(cache, K::clone(&live))),
        Step::Update { old, new } => update(client, cache, old, &new).await,
        Step::Wait(live) => Err(Error::BeingDeleted { noun: write::describe(live.as_ref()) }),
        Step::Create(_) | Step::Replace { .. } => Err(exists.into()),
    }
}

async fn update<K: TokenObject>(client: &Client, cache: &Cache<K>, old: Arc<K>, new: &K) -> Result<Arc<K>> {
    let updated = write::patch(&old.api(client), old.as_ref(), new).await?;
    Ok(updated.map_or(old, |updated| recorded(cache, updated)))
}

fn recorded<K: TokenObject>(cache: &Cache<K>, object: K) -> Arc<K> {
    cache.record_write(object.clone());
    Arc::new(object)
}
