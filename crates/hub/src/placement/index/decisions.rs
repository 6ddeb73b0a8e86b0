//! Decisions: the existing and the desired ones, and how many list each cluster.

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
use ocm_scheduler::{ClusterCounts, DesiredDecision, Listed, Name};

/// Decisions of one namespace, by name.
pub(crate) type Slices = BTreeMap<String, Arc<Slice>>;

/// A PlacementDecision as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Slice {
    /// The placement it belongs to, by its label.
    pub(crate) placement: Option<String>,
    pub(crate) group: Option<String>,
    pub(crate) index: Option<String>,
    pub(crate) clusters: Vec<Name>,
    /// Whether the clusters are listed by name, as this hub writes them.
    is_sorted: bool,
}

impl Slice {
    /// Reads a decision; `intern` returns the shared name of a cluster.
    pub(super) fn of(decision: &PlacementDecision, intern: impl Fn(&str) -> Name) -> Self {
        let label = |key: &str| decision.labels().get(key).cloned();
        let listed = decision.status.iter().flat_map(|status| &status.decisions);
        let clusters: Vec<_> = listed.map(|decision| intern(&decision.cluster_name)).collect();
        Self {
            placement: label(PLACEMENT),
            group: label(DECISION_GROUP_NAME),
            index: label(DECISION_GROUP_INDEX),
            is_sorted: clusters.is_sorted(),
            clusters,
        }
    }

    /// Whether it lists the cluster.
    fn lists(&self, cluster: &str) -> bool {
        match self.is_sorted {
            true => self.clusters.binary_search_by(|listed| (**listed).cmp(cluster)).is_ok(),
            false => self.clusters.iter().any(|listed| **listed == *cluster),
        }
    }

    /// Whether it belongs to that placement.
    pub(crate) fn is_of(&self, placement: &str) -> bool {
        self.placement.as_deref() == Some(placement)
    }

    /// Whether its labels are as desired.
    pub(crate) fn is_labelled(&self, placement: &str, desired: &DesiredDecision) -> bool {
        self.is_of(placement)
            && self.group.as_ref() == Some(&desired.group)
            && self.index.as_ref() == Some(&desired.index)
    }
}

/// Decisions: the existing and the desired ones, and how many list each cluster.
#[derive(Debug, Default)]
pub(super) struct Decisions {
    all: BTreeMap<ObjectKey, Arc<Slice>>,
    /// The names of a placement's decisions, by its key.
    of_placement: HashMap<ObjectKey, BTreeSet<String>>,
    /// What a placement's last plan desires. These are counted instead of the existing ones: the plan is about to be written.
    desired: HashMap<ObjectKey, HashMap<String, DesiredDecision>>,
    counts: Arc<ClusterCounts>,
}

impl Decisions {
    /// Stores a decision, or removes it if `None`. Returns the placements that did not expect the change.
    pub(super) fn update(&mut self, key: &ObjectKey, new: Option<Slice>) -> BTreeSet<ObjectKey> {
        let new = new.map(Arc::new);
        let old = match &new {
            Some(slice) => self.all.insert(key.clone(), slice.clone()),
            None => self.all.remove(key),
        };
        if old == new {
            return BTreeSet::new();
        }
        self.uncount(key, old.as_deref());
        self.count(key, new.as_deref());
        let affected = [&old, &new].into_iter().flatten().filter_map(|slice| owner(key, slice));
        affected.filter(|owner| !self.is_as_desired(owner, key, old.is_none(), new.as_deref())).collect()
    }

    fn count(&mut self, key: &ObjectKey, slice: Option<&Slice>) {
        let Some(slice) = slice else { return };
        let owner = owner(key, slice);
        if let Some(owner) = &owner {
            self.of_placement.entry(owner.clone()).or_default().insert(key.name.clone());
        }
        if owner.is_none_or(|owner| !self.desired.contains_key(&owner)) {
            self.add(slice.clusters.iter().cloned());
        }
    }

    fn uncount(&mut self, key: &ObjectKey, slice: Option<&Slice>) {
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
        if owner.is_none_or(|owner| !self.desired.contains_key(&owner)) {
            self.subtract(&slice.clusters);
        }
    }

    /// Whether the placement expects this decision to be so.
    fn is_as_desired(&self, owner: &ObjectKey, key: &ObjectKey, is_added: bool, slice: Option<&Slice>) -> bool {
        let Some(all) = self.desired.get(owner) else { return false };
        match (all.get(&key.name), slice) {
            // A decision is created without clusters, which are written next.
            (Some(desired), Some(slice)) => {
                slice.is_labelled(&owner.name, desired)
                    && (slice.clusters == desired.clusters || is_added && slice.clusters.is_empty())
            }
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        }
    }

    /// Records a plan: its decisions are counted from now on.
    pub(super) fn record_plan(&mut self, key: &ObjectKey, desired: Vec<DesiredDecision>) {
        self.subtract(&self.clusters_of(key));
        self.add(desired.iter().flat_map(|decision| decision.clusters.iter().cloned()));
        let by_name = desired.into_iter().map(|decision| (decision.name.clone(), decision));
        self.desired.insert(key.clone(), by_name.collect());
    }

    /// Forgets the plan: the existing decisions are counted from now on.
    pub(super) fn forget_plan(&mut self, key: &ObjectKey) {
        self.subtract(&self.clusters_of(key));
        self.desired.remove(key);
        self.add(self.clusters_of(key).into_iter());
    }

    /// The clusters that are counted for a placement.
    pub(super) fn clusters_of(&self, key: &ObjectKey) -> Vec<Name> {
        match self.desired.get(key) {
            Some(desired) => desired.values().flat_map(|decision| decision.clusters.iter().cloned()).collect(),
            None => self.slices_of(key).flat_map(|(_, slice)| slice.clusters.iter().cloned()).collect(),
        }
    }

    /// What the decisions of a placement list.
    pub(super) fn listed_by(&self, key: &ObjectKey) -> Listed {
        self.slices_of(key).map(|(name, slice)| (name.clone(), slice.clusters.clone())).collect()
    }

    /// Whether a decision of the placement lists the cluster.
    pub(super) fn lists(&self, key: &ObjectKey, cluster: &str) -> bool {
        self.slices_of(key).any(|(_, slice)| slice.lists(cluster))
    }

    /// How many decisions list each cluster.
    pub(super) fn counts(&self) -> Arc<ClusterCounts> {
        self.counts.clone()
    }

    /// The decisions of a placement, and those of others that have such a name.
    pub(super) fn relevant_to(&self, key: &ObjectKey) -> Slices {
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
        let counts = Arc::make_mut(&mut self.counts);
        clusters.for_each(|cluster| *counts.entry(cluster).or_default() += 1);
    }

    fn subtract(&mut self, clusters: &[Name]) {
        let counts = Arc::make_mut(&mut self.counts);
        for cluster in clusters {
            let left = counts.get(cluster).copied().unwrap_or_default().saturating_sub(1);
            if left == 0 {
                counts.remove(cluster)
            } else {
                counts.insert(cluster.clone(), left)
            };
        }
    }
}

/// The placement that a decision belongs to, by its label.
fn owner(key: &ObjectKey, slice: &Slice) -> Option<ObjectKey> {
    let placement = slice.placement.as_ref()?;
    Some(ObjectKey::new(key.namespace.clone(), placement.clone()))
}
