//! Puts objects into works, as few as hold them.
//!
//! An object stays in the work that holds it, and new objects are placed big ones first, each into the work with the most
//! room, or into a new one. A work that is empty is deleted. Objects of a work that is being deleted wait until it is
//! gone: the cluster's agent is about to delete them.
//!
//! Where objects have grown so much that their work cannot hold them any more, the biggest move to other works. An object
//! must not be missing from all works for a moment, or the cluster's agent deletes it. So an object that moves is in two
//! works for a while, as `shard` and `transfer` describe.

use std::{
    collections::{BTreeMap, BTreeSet},
    iter,
    sync::Arc,
};

use ocm_api::{limits::MAX_MANIFEST_BYTES, work::v1::ManifestWork};

use super::{Item, WorkTemplate, read::Id, shard::Shard, stored, transfer::Homes};

/// How much of what a work can hold is filled, so that its objects can grow in place.
pub(super) const BUDGET: usize = MAX_MANIFEST_BYTES / 10 * 8;

/// What to do with a work.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// Create it.
    Create(Box<ManifestWork>),
    /// Patch what differs.
    Update { old: Arc<ManifestWork>, new: Box<ManifestWork> },
    /// Leave it: it is up to date, or must not be written now.
    Keep(Arc<ManifestWork>),
    /// Delete it.
    Delete(Arc<ManifestWork>),
    /// Wait until it is gone: it is being deleted, and holds desired objects.
    Wait(Arc<ManifestWork>),
}

/// The steps after which `known`, the add-on's works on a cluster, hold exactly these objects.
pub(crate) fn steps(template: &WorkTemplate, items: Vec<Item>, known: &[Arc<ManifestWork>]) -> Vec<Step> {
    let mut known: Vec<_> = known.iter().filter_map(|work| Some((template.number(work)?, work.clone()))).collect();
    known.sort_by_key(|(index, _)| *index);
    let mut shards: Vec<_> = known.into_iter().map(|(_, work)| Shard::of(work)).collect();
    let desired: BTreeSet<Id> = items.iter().map(|item| item.id.clone()).collect();
    let mut rest = keep(&mut shards, items);
    rest.extend(shards.iter_mut().flat_map(Shard::take_overflow));
    shards.iter_mut().for_each(|shard| shard.close_if_giving(&desired));
    rest.sort_by_key(|item| (std::cmp::Reverse(item.size), item.position));
    for item in rest {
        place(template, &mut shards, item);
    }
    let homes = Homes::of(&shards);
    shards.iter().filter_map(|shard| step(template, shard, &homes)).collect()
}

/// Leaves each object in the work that holds it; returns those that none holds.
fn keep(shards: &mut [Shard], items: Vec<Item>) -> Vec<Item> {
    let (mut moving, mut rest) = (Vec::new(), Vec::new());
    for item in items {
        let holders = || (0..shards.len()).filter(|index| shards[*index].holds(&item.id));
        let live: Vec<_> = holders().filter(|index| !shards[*index].is_deleting()).collect();
        match (&live[..], holders().next()) {
            ([], None) => rest.push(item),
            ([], Some(deleting)) => shards[deleting].put(item),
            ([only], _) => shards[*only].put(item),
            _ => moving.push((live, item)),
        }
    }
    for (live, item) in moving {
        // The one that has it as it is to be: it has moved there.
        let best = live.into_iter().max_by_key(|index| (shards[*index].has_same(&item), shards[*index].room()));
        best.map(|index| &mut shards[index]).into_iter().for_each(|shard| shard.put(item.clone()));
    }
    rest
}

fn place(template: &WorkTemplate, shards: &mut Vec<Shard>, item: Item) {
    let roomiest = shards.iter_mut().max_by_key(|shard| shard.room()).filter(|shard| shard.room() >= item.size);
    match roomiest {
        Some(shard) => shard.put(item),
        None => {
            let mut shard = Shard::new(free_name(template, shards));
            shard.put(item);
            shards.push(shard);
        }
    }
}

/// The number of works, as in OCM, or the smallest number that no work of the add-on has.
///
/// Where somebody else's work has that name, it cannot be created, and every pass must try that name again: with a new
/// name, the next pass would remove the condition that reports this one.
fn free_name(template: &WorkTemplate, shards: &[Shard]) -> String {
    let is_free = |name: &String| shards.iter().all(|shard| shard.name != *name);
    let numbers = iter::once(shards.len()).chain(0..);
    numbers.map(|number| template.name(number)).find(is_free).unwrap_or_default()
}

fn step(template: &WorkTemplate, shard: &Shard, homes: &Homes<'_>) -> Option<Step> {
    let Some(old) = shard.old.clone() else {
        let mut new = template.empty(shard.name.clone());
        template.apply_to(&mut new);
        new.spec.workload.manifests = shard.manifests(&BTreeMap::new());
        return Some(Step::Create(Box::new(new)));
    };
    if shard.is_deleting() {
        return (!shard.is_empty()).then_some(Step::Wait(old));
    }
    let Some(copies) = homes.copies(shard) else { return Some(Step::Keep(old)) };
    let manifests = shard.manifests(&copies);
    if manifests.is_empty() {
        return Some(Step::Delete(old));
    }
    let mut new = ManifestWork::clone(&old);
    template.apply_to(&mut new);
    if stored::are_same(&old.spec.workload.manifests, &manifests) && new == *old {
        return Some(Step::Keep(old));
    }
    new.spec.workload.manifests = manifests;
    Some(Step::Update { old, new: Box::new(new) })
}

#[cfg(test)]
mod tests;
