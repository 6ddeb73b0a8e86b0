//! Putting objects into works, as few as hold them.
//!
//! An object stays in the work it is in: another work would bring it only after the first has taken it away. New objects
//! are placed big ones first, each into the work with the most room, or into a new one. A work that is empty goes. What a
//! work holds that is being deleted waits until it is gone: the cluster's agent is about to take it away.

use std::{collections::BTreeMap, sync::Arc};

use kube::ResourceExt as _;
use ocm_api::{
    limits::MAX_MANIFEST_BYTES,
    work::v1::{Manifest, ManifestWork},
    works,
};
use ocm_runtime::write;

use super::{
    Frame, Item,
    read::{Id, id_of},
};

/// How much of what a work can hold is filled, so that its objects can grow in place.
const BUDGET: usize = MAX_MANIFEST_BYTES / 10 * 8;

/// What to do with a work.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// Make it.
    Create(Box<ManifestWork>),
    /// Change what differs.
    Update { old: Arc<ManifestWork>, new: Box<ManifestWork> },
    /// Nothing: it is as it should be.
    Keep(Arc<ManifestWork>),
    /// Remove it.
    Delete(Arc<ManifestWork>),
    /// Nothing until it is gone: it is being deleted, and holds objects that are wanted.
    Wait(Arc<ManifestWork>),
}

/// A work as it is to be.
struct Shard {
    name: String,
    old: Option<Arc<ManifestWork>>,
    manifests: Vec<Manifest>,
    used: usize,
}

impl Shard {
    /// What is being deleted has none.
    fn room(&self) -> usize {
        if self.is_leaving() { 0 } else { BUDGET.saturating_sub(self.used) }
    }

    fn is_leaving(&self) -> bool {
        self.old.as_ref().is_some_and(|old| write::is_deleting(&**old))
    }

    fn put(&mut self, item: Item) {
        self.used += item.size;
        self.manifests.push(item.manifest);
    }
}

/// What makes `known`, the add-on's works on a cluster, hold exactly these objects.
pub(crate) fn steps(frame: &Frame, items: Vec<Item>, known: &[Arc<ManifestWork>]) -> Vec<Step> {
    let mut new: BTreeMap<Id, (usize, Item)> =
        items.into_iter().enumerate().map(|(order, item)| (item.id.clone(), (order, item))).collect();
    let mut known: Vec<_> = known.iter().filter_map(|work| Some((index(frame, work)?, work.clone()))).collect();
    known.sort_by_key(|(index, _)| *index);
    let mut shards: Vec<Shard> = known.into_iter().map(|(_, work)| keep(work, &mut new)).collect();
    let mut rest: Vec<_> = new.into_values().collect();
    rest.sort_by_key(|(order, item)| (std::cmp::Reverse(item.size), *order));
    for (_, item) in rest {
        place(frame, &mut shards, item);
    }
    shards.into_iter().filter_map(|shard| step(frame, shard)).collect()
}

/// The number of a work among those of its add-on; none for works that are for something else.
fn index(frame: &Frame, work: &ManifestWork) -> Option<usize> {
    work.name_any().strip_prefix(&works::addon_deploy_prefix(&frame.name))?.parse().ok()
}

/// A work with those of its objects that are still wanted, as they are wanted now.
fn keep(work: Arc<ManifestWork>, wanted: &mut BTreeMap<Id, (usize, Item)>) -> Shard {
    let mut shard = Shard { name: work.name_any(), old: None, manifests: Vec::new(), used: 0 };
    for manifest in &work.spec.workload.manifests {
        if let Some((_, item)) = wanted.remove(&id_of(&manifest.value())) {
            shard.put(item);
        }
    }
    shard.old = Some(work);
    shard
}

fn place(frame: &Frame, shards: &mut Vec<Shard>, item: Item) {
    let roomiest = shards.iter_mut().max_by_key(|shard| shard.room()).filter(|shard| shard.room() >= item.size);
    match roomiest {
        Some(shard) => shard.put(item),
        None => {
            let mut shard = Shard { name: free_name(frame, shards), old: None, manifests: Vec::new(), used: 0 };
            shard.put(item);
            shards.push(shard);
        }
    }
}

/// The next number; a smaller one may be free where a work went.
fn free_name(frame: &Frame, shards: &[Shard]) -> String {
    let numbered = |index| works::addon_deploy(&frame.name, index);
    let is_free = |name: &String| shards.iter().all(|shard| shard.name != *name);
    let mut names = (shards.len()..).chain(0..shards.len()).map(numbered);
    names.find(is_free).unwrap_or_default()
}

fn step(frame: &Frame, shard: Shard) -> Option<Step> {
    let is_leaving = shard.is_leaving();
    Some(match shard.old {
        Some(_) if is_leaving && shard.manifests.is_empty() => return None,
        Some(old) if is_leaving => Step::Wait(old),
        Some(old) if shard.manifests.is_empty() => Step::Delete(old),
        Some(old) => {
            let mut new = ManifestWork::clone(&old);
            frame.fit(&mut new);
            new.spec.workload.manifests = shard.manifests;
            if new == *old { Step::Keep(old) } else { Step::Update { old, new: Box::new(new) } }
        }
        None => {
            let mut new = frame.empty(shard.name);
            frame.fit(&mut new);
            new.spec.workload.manifests = shard.manifests;
            Step::Create(Box::new(new))
        }
    })
}

#[cfg(test)]
mod tests;
