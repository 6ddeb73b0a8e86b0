//! A work while its objects are distributed.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kube::ResourceExt as _;
use ocm_api::{
    limits::MAX_MANIFEST_BYTES,
    work::v1::{Manifest, ManifestWork},
};
use ocm_runtime::write;

use super::{
    Item,
    pack::BUDGET,
    read::{Id, id_of},
    stored,
};

/// See the module.
pub(super) struct Shard {
    pub(super) name: String,
    pub(super) old: Option<Arc<ManifestWork>>,
    /// What `old` holds, and in which place.
    stored: BTreeMap<Id, usize>,
    items: BTreeMap<Id, Item>,
    used: usize,
    is_closed: bool,
}

impl Shard {
    pub(super) fn new(name: String) -> Self {
        let (stored, items) = (BTreeMap::new(), BTreeMap::new());
        Self { name, old: None, stored, items, used: 0, is_closed: false }
    }

    pub(super) fn of(work: Arc<ManifestWork>) -> Self {
        let manifests = work.spec.workload.manifests.iter().enumerate();
        let stored = manifests.map(|(position, manifest)| (id_of(&manifest.value()), position)).collect();
        let name = work.name_any();
        Self { stored, old: Some(work), ..Self::new(name) }
    }

    pub(super) fn is_deleting(&self) -> bool {
        self.old.as_ref().is_some_and(|old| write::is_deleting(&**old))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Whether the work holds the object now.
    pub(super) fn holds(&self, id: &Id) -> bool {
        self.stored.contains_key(id)
    }

    /// Whether the work holds the object now as it is to be.
    pub(super) fn has_same(&self, item: &Item) -> bool {
        let manifest = self.stored_manifest(&item.id);
        manifest.is_some_and(|manifest| {
            stored::are_same(std::slice::from_ref(manifest), std::slice::from_ref(&item.manifest))
        })
    }

    pub(super) fn stored_manifest(&self, id: &Id) -> Option<&Manifest> {
        self.old.as_ref()?.spec.workload.manifests.get(*self.stored.get(id)?)
    }

    pub(super) fn room(&self) -> usize {
        if self.is_deleting() || self.is_closed { 0 } else { BUDGET.saturating_sub(self.used) }
    }

    pub(super) fn put(&mut self, item: Item) {
        self.used += item.size;
        self.items.insert(item.id.clone(), item);
    }

    /// Takes the biggest objects out of a work that cannot hold all it is to hold.
    pub(super) fn take_overflow(&mut self) -> Vec<Item> {
        let mut taken = Vec::new();
        if self.is_deleting() || self.used <= MAX_MANIFEST_BYTES {
            return taken;
        }
        let mut by_size: Vec<_> =
            self.items.values().map(|item| (Reverse(item.size), item.position, item.id.clone())).collect();
        by_size.sort();
        for (_, _, id) in by_size {
            if self.used <= BUDGET || self.items.len() == 1 {
                break;
            }
            taken.extend(self.items.remove(&id).inspect(|item| self.used -= item.size));
        }
        taken
    }

    /// Takes no more objects while one that is desired is to leave it: two works that gave each other objects would wait
    /// for each other.
    pub(super) fn close_if_giving(&mut self, desired: &BTreeSet<Id>) {
        self.is_closed = self.stored.keys().any(|id| desired.contains(id) && !self.items.contains_key(id));
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = &Id> {
        self.items.keys()
    }

    /// The objects that the work holds now and is not to hold any more.
    pub(super) fn leaving_ids(&self) -> impl Iterator<Item = &Id> {
        self.stored.keys().filter(|id| !self.items.contains_key(*id))
    }

    pub(super) fn used(&self) -> usize {
        self.used
    }

    /// Its objects and these copies, those it holds already in their places, new ones after them.
    pub(super) fn manifests(&self, copies: &BTreeMap<&Id, &Manifest>) -> Vec<Manifest> {
        let mut placed: Vec<_> = self.items.values().map(|item| (self.place_of(item), &item.manifest)).collect();
        let places = copies.iter().map(|(id, manifest)| (self.stored.get(*id).copied().unwrap_or_default(), *manifest));
        placed.extend(places.map(|(position, manifest)| ((position, Reverse(0), 0), manifest)));
        placed.sort_by_key(|(place, _)| *place);
        placed.into_iter().map(|(_, manifest)| manifest.clone()).collect()
    }

    fn place_of(&self, item: &Item) -> (usize, Reverse<usize>, usize) {
        match self.stored.get(&item.id) {
            Some(position) => (*position, Reverse(0), 0),
            None => (usize::MAX, Reverse(item.size), item.position),
        }
    }
}
