//! What one decision depends on.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use jiff::Timestamp;
use kube_core::ResourceExt as _;
use ocm_api::{
    cluster::{
        v1::ManagedCluster,
        v1alpha1::AddOnPlacementScore,
        v1beta1::{Placement, PlacementDecision},
        v1beta2::{ManagedClusterSet, ManagedClusterSetBinding},
    },
    labels::PLACEMENT,
};

use crate::{
    facts::{AddOnScores, Cluster, Clusters, Document, Name, Scores},
    group::Listed,
    rules::Rules,
    schedule::ClusterCounts,
    sets::{Set, Sets, sets_of},
};

/// Everything that the decision of one placement depends on, as of one moment. What is large is shared.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The name of the placement.
    pub placement: String,
    /// Its spec.
    pub rules: Arc<Rules>,
    /// Every cluster, with the sets it belongs to.
    pub clusters: Arc<Clusters>,
    /// Every set.
    pub sets: Arc<Sets>,
    /// The names of the bindings of the placement's namespace.
    pub bound: Arc<BTreeSet<String>>,
    /// How many decisions of all placements list each cluster.
    pub counts: Arc<ClusterCounts>,
    /// The clusters that are counted for this placement: what its decisions list, or will list once its last plan is written.
    pub own: Vec<Name>,
    /// What its decisions list.
    pub decided: Listed,
}

/// The objects of a hub that the decision of a placement depends on. It does no harm if there are more of them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Objects<'a> {
    /// All clusters.
    pub clusters: &'a [ManagedCluster],
    /// All sets.
    pub sets: &'a [ManagedClusterSet],
    /// The bindings of the placement's namespace.
    pub bindings: &'a [ManagedClusterSetBinding],
    /// The decisions of all namespaces: prioritizer Balance counts them.
    pub decisions: &'a [PlacementDecision],
    /// The scores that add-ons give clusters, in the namespaces of these.
    pub scores: &'a [AddOnPlacementScore],
}

impl Snapshot {
    /// Reads objects. A toleration of a taint without `timeAdded` begins `now`.
    #[must_use]
    pub fn of(placement: &Placement, objects: &Objects<'_>, now: Timestamp) -> Self {
        let mut sets: Sets = objects.sets.iter().map(|set| (set.name_any().into(), Set::of(set))).collect();
        let rules = Rules::of(placement);
        let clusters = clusters(objects, &rules, &mut sets, now);
        let decided = decided(placement, objects);
        Self {
            placement: placement.name_any(),
            rules: Arc::new(rules),
            clusters: Arc::new(clusters),
            sets: Arc::new(sets),
            bound: Arc::new(bound(placement, objects)),
            counts: Arc::new(counts(objects)),
            own: decided.values().flatten().cloned().collect(),
            decided,
        }
    }
}

fn clusters(objects: &Objects<'_>, rules: &Rules, sets: &mut Sets, now: Timestamp) -> Clusters {
    let mut scores = scores(objects);
    let mut clusters = BTreeMap::new();
    for object in objects.clusters {
        let mut cluster = Cluster::of(object, &[], now);
        cluster.sets = sets_of(&cluster, sets);
        for name in &cluster.sets {
            sets.entry(name.clone()).and_modify(|set| set.members += 1);
        }
        cluster.scores = scores.remove(&object.name_any()).unwrap_or_default();
        let document = || Document::of(object, cluster.scores.clone()).ok().map(Arc::new);
        cluster.document = rules.use_cel().then(document).flatten();
        clusters.insert(object.name_any().into(), Arc::new(cluster));
    }
    clusters
}

/// The scores by the name of the cluster.
fn scores(objects: &Objects<'_>) -> HashMap<String, Scores> {
    let mut scores: HashMap<String, Scores> = HashMap::new();
    for object in objects.scores {
        let of_cluster = scores.entry(object.namespace().unwrap_or_default()).or_default();
        of_cluster.insert(object.name_any(), Arc::new(AddOnScores::of(object)));
    }
    scores
}

fn bound(placement: &Placement, objects: &Objects<'_>) -> BTreeSet<String> {
    let its = objects.bindings.iter().filter(|binding| binding.namespace() == placement.namespace());
    its.map(kube_core::ResourceExt::name_any).collect()
}

fn listed(decision: &PlacementDecision) -> impl Iterator<Item = Name> {
    let listed = decision.status.iter().flat_map(|status| &status.decisions);
    listed.map(|decision| Name::from(decision.cluster_name.as_str()))
}

fn counts(objects: &Objects<'_>) -> ClusterCounts {
    let mut counts = HashMap::new();
    objects.decisions.iter().flat_map(listed).for_each(|name| *counts.entry(name).or_default() += 1);
    counts
}

fn decided(placement: &Placement, objects: &Objects<'_>) -> Listed {
    let name = placement.name_any();
    let is_its = |decision: &&PlacementDecision| {
        decision.namespace() == placement.namespace() && decision.labels().get(PLACEMENT) == Some(&name)
    };
    let its = objects.decisions.iter().filter(is_its);
    its.map(|decision| (decision.name_any(), listed(decision).collect())).collect()
}
