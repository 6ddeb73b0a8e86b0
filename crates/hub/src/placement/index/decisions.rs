//! Decisions: those that there are, those that are wanted, and how often each cluster is chosen.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::Bound,
    sync::Arc,
};

use kube::ResourceExt as _;
use ocm_api::{
    cluster::v1beta1::PlacementDecision,
    labels::{DECISION_GROUP_INDEX, DECISION_GROUP_NAME, PLACEMENT},
};
use ocm_runtime::ObjectKey;

use crate::placement::{facts::Name, group::Wanted, schedule::Tally};

/// Decisions of one namespace, by name.
pub(crate) type Slices = BTreeMap<String, Arc<Slice>>;

/// A PlacementDecision as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Slice {
    /// The placement it is of, as its label has it.
    pub(crate) placement: Option<String>,
    pub(crate) group: Option<String>,
    pub(crate) index: Option<String>,
    pub(crate) clusters: Vec<Name>,
}

impl Slice {
    /// What a decision says; `intern` gives the name of a cluster.
    pub(super) fn of(decision: &PlacementDecision, intern: impl Fn(&str) -> Name) -> Self {
        let label = |key: &str| decision.labels().get(key).cloned();
        let listed = decision.status.iter().flat_map(|status| &status.decisions);
        Self {
            placement: label(PLACEMENT),
            group: label(DECISION_GROUP_NAME),
            index: label(DECISION_GROUP_INDEX),
            clusters: listed.map(|decision| intern(&decision.cluster_name)).collect(),
        }
    }

    /// Whether it is of that placement.
    pub(crate) fn is_of(&self, placement: &str) -> bool {
        self.placement.as_deref() == Some(placement)
    }

    /// Whether its labels are as wanted.
    pub(crate) fn is_labelled(&self, placement: &str, wanted: &Wanted) -> bool {
        self.is_of(placement)
            && self.group.as_ref() == Some(&wanted.group)
            && self.index.as_ref() == Some(&wanted.index)
    }
}

/// Decisions: those that there are, those that are wanted, and how often each cluster is chosen.
#[derive(Debug, Default)]
pub(super) struct Decisions {
    all: BTreeMap<ObjectKey, Arc<Slice>>,
    /// The names of a placement's decisions, by its key.
    of_placement: HashMap<ObjectKey, BTreeSet<String>>,
    /// What a placement's last plan wants. These count, not those that there are: the plan is about to be written.
    wanted: HashMap<ObjectKey, Vec<Wanted>>,
    tally: Arc<Tally>,
}

impl Decisions {
    /// Takes in a decision, or that it is gone; the placements for which that is news.
    pub(super) fn take(&mut self, key: &ObjectKey, new: Option<Slice>) -> BTreeSet<ObjectKey> {
        let new = new.map(Arc::new);
        let old = match &new {
            Some(slice) => self.all.insert(key.clone(), slice.clone()),
            None => self.all.remove(key),
        };
        if old == new {
            return BTreeSet::new();
        }
        self.release(key, old.as_deref());
        self.claim(key, new.as_deref());
        let concerned = [&old, &new].into_iter().flatten().filter_map(|slice| owner(key, slice));
        concerned.filter(|owner| !self.is_as_wanted(owner, key, old.is_none(), new.as_deref())).collect()
    }

    fn claim(&mut self, key: &ObjectKey, slice: Option<&Slice>) {
        let Some(slice) = slice else { return };
        let owner = owner(key, slice);
        if let Some(owner) = &owner {
            self.of_placement.entry(owner.clone()).or_default().insert(key.name.clone());
        }
        if owner.is_none_or(|owner| !self.wanted.contains_key(&owner)) {
            self.add(slice.clusters.iter().cloned());
        }
    }

    fn release(&mut self, key: &ObjectKey, slice: Option<&Slice>) {
        let Some(slice) = slice else { return };
        let owner = owner(key, slice);
        if let Some(owner) = &owner
            && let Some(names) = self.of_placement.get_mut(owner)
        {
            names.remove(&key.name);
            if names.is_empty() {
                self.of_placement.remove(owner);
            }
        }
        if owner.is_none_or(|owner| !self.wanted.contains_key(&owner)) {
            self.subtract(&slice.clusters);
        }
    }

    /// Whether the placement expects this decision to be so.
    fn is_as_wanted(&self, owner: &ObjectKey, key: &ObjectKey, is_added: bool, slice: Option<&Slice>) -> bool {
        let Some(all) = self.wanted.get(owner) else { return false };
        match (all.iter().find(|wanted| wanted.name == key.name), slice) {
            // A decision is made without clusters, which are written next.
            (Some(wanted), Some(slice)) => {
                slice.is_labelled(&owner.name, wanted)
                    && (slice.clusters == wanted.clusters || is_added && slice.clusters.is_empty())
            }
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        }
    }

    /// What a plan wants, from now on.
    pub(super) fn expect(&mut self, key: &ObjectKey, wanted: Vec<Wanted>) {
        self.subtract(&self.claims(key));
        self.add(wanted.iter().flat_map(|decision| decision.clusters.iter().cloned()));
        self.wanted.insert(key.clone(), wanted);
    }

    /// No plan, from now on: the decisions that there are count.
    pub(super) fn expect_nothing(&mut self, key: &ObjectKey) {
        self.subtract(&self.claims(key));
        self.wanted.remove(key);
        self.add(self.claims(key).into_iter());
    }

    /// The clusters that a placement adds to the tally.
    pub(super) fn claims(&self, key: &ObjectKey) -> Vec<Name> {
        match self.wanted.get(key) {
            Some(wanted) => wanted.iter().flat_map(|decision| decision.clusters.iter().cloned()).collect(),
            None => self.slices_of(key).flat_map(|(_, slice)| slice.clusters.iter().cloned()).collect(),
        }
    }

    /// Whether a decision of the placement lists the cluster.
    pub(super) fn lists(&self, key: &ObjectKey, cluster: &str) -> bool {
        self.slices_of(key).any(|(_, slice)| slice.clusters.iter().any(|listed| **listed == *cluster))
    }

    /// How often each cluster is chosen.
    pub(super) fn tally(&self) -> Arc<Tally> {
        self.tally.clone()
    }

    /// The decisions of a placement, and whatever else has a name like those.
    pub(super) fn around(&self, key: &ObjectKey) -> Slices {
        let first = ObjectKey::new(key.namespace.clone(), format!("{}-decision-", key.name));
        let alike = self.all.range((Bound::Included(&first), Bound::Unbounded));
        let alike = alike
            .take_while(|(other, _)| other.namespace == first.namespace && other.name.starts_with(&first.name))
            .map(|(key, slice)| (key.name.clone(), slice.clone()));
        alike.chain(self.slices_of(key).map(|(name, slice)| (name.clone(), slice.clone()))).collect()
    }

    fn slices_of<'a>(&'a self, key: &'a ObjectKey) -> impl Iterator<Item = (&'a String, &'a Arc<Slice>)> {
        let names = self.of_placement.get(key).into_iter().flatten();
        names.filter_map(|name| Some((name, self.all.get(&ObjectKey::new(key.namespace.clone(), name.clone()))?)))
    }

    fn add(&mut self, clusters: impl Iterator<Item = Name>) {
        let tally = Arc::make_mut(&mut self.tally);
        clusters.for_each(|cluster| *tally.entry(cluster).or_default() += 1);
    }

    fn subtract(&mut self, clusters: &[Name]) {
        let tally = Arc::make_mut(&mut self.tally);
        for cluster in clusters {
            let left = tally.get(cluster).copied().unwrap_or_default().saturating_sub(1);
            if left == 0 {
                tally.remove(cluster)
            } else {
                tally.insert(cluster.clone(), left)
            };
        }
    }
}

/// The placement that a decision is of, as its label has it.
fn owner(key: &ObjectKey, slice: &Slice) -> Option<ObjectKey> {
    let placement = slice.placement.as_ref()?;
    Some(ObjectKey::new(key.namespace.clone(), placement.clone()))
}
