//! A small world for unit tests: what informers would bring, and the plans that follow.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use jiff::Timestamp;
use kube::ResourceExt as _;
use ocm_api::cluster::{
    v1::ManagedCluster,
    v1alpha1::AddOnPlacementScore,
    v1beta1::{ClusterDecision, Placement, PlacementDecision, PlacementDecisionStatus},
    v1beta2::{ManagedClusterSet, ManagedClusterSetBinding},
};
use ocm_runtime::{Change, ObjectKey};
use ocm_scheduler::DesiredDecision;
use serde_json::{Value, json};

use super::{
    index::Index,
    plan::{Observed, Plan, Step, plan},
};

pub(crate) const NAMESPACE: &str = "fleet";

/// The moment at which tests begin, and seconds after it.
pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

/// The key of a placement in the namespace of the tests.
pub(crate) fn key(name: &str) -> ObjectKey {
    ObjectKey::new(NAMESPACE, name)
}

/// An index, and the objects in it.
pub(crate) struct World {
    pub(crate) index: Index,
    /// Seconds after the beginning at which the next change of a cluster is seen.
    pub(crate) now: i64,
    clusters: ClustersByName,
    scores: BTreeMap<String, Arc<AddOnPlacementScore>>,
    sets: BTreeMap<String, Arc<ManagedClusterSet>>,
    placements: BTreeMap<String, Arc<Placement>>,
    decisions: BTreeMap<String, Arc<PlacementDecision>>,
}

/// Clusters as the cache keeps them.
#[derive(Clone, Default)]
struct ClustersByName(Arc<Mutex<BTreeMap<String, Arc<ManagedCluster>>>>);

impl ClustersByName {
    fn insert(&self, name: String, cluster: Arc<ManagedCluster>) -> Option<Arc<ManagedCluster>> {
        self.0.lock().unwrap().insert(name, cluster)
    }

    fn remove(&self, name: &str) -> Option<Arc<ManagedCluster>> {
        self.0.lock().unwrap().remove(name)
    }

    fn json(&self, name: &str) -> Option<Arc<[u8]>> {
        self.0.lock().unwrap().get(name).map(|cluster| serde_json::to_vec(cluster.as_ref()).unwrap().into())
    }
}

impl Default for World {
    fn default() -> Self {
        let clusters = ClustersByName::default();
        let json = {
            let clusters = clusters.clone();
            move |name: &str| clusters.json(name)
        };
        Self {
            index: Index::new(json),
            now: 0,
            clusters,
            scores: BTreeMap::new(),
            sets: BTreeMap::new(),
            placements: BTreeMap::new(),
            decisions: BTreeMap::new(),
        }
    }
}

macro_rules! changes {
    ($(#[$doc:meta])* $tell:ident, $forget:ident, $objects:ident, $index:ident, $kind:ty $(, $now:ident)?) => {
        $(#[$doc])*
        pub(crate) fn $tell(&mut self, object: $kind) -> Vec<ObjectKey> {
            let new = Arc::new(object);
            match self.$objects.insert(name_of(&*new), new.clone()) {
                Some(old) => self.index.$index(Change::Updated { old: &old, new: &new } $(, at(self.$now))?).into_iter().collect(),
                None => self.index.$index(Change::Added(&new) $(, at(self.$now))?).into_iter().collect(),
            }
        }

        /// The object of that name is gone; the placements affected.
        pub(crate) fn $forget(&mut self, name: &str) -> Vec<ObjectKey> {
            let old = self.$objects.remove(name).unwrap();
            self.index.$index(Change::Deleted(&old) $(, at(self.$now))?).into_iter().collect()
        }
    };
}

impl World {
    /// The set `global`, bound to the namespace.
    pub(crate) fn new() -> Self {
        let mut world = Self::default();
        world.set(set("global", json!({"selectorType": "LabelSelector", "labelSelector": {}})));
        world.bind("global");
        world
    }

    /// The same clusters, decisions and placements, as a hub that starts finds them.
    pub(crate) fn restarted(self) -> Self {
        let mut world = Self::new();
        let clusters = std::mem::take(&mut *self.clusters.0.lock().unwrap());
        clusters.into_values().for_each(|it| _ = world.cluster(Arc::unwrap_or_clone(it)));
        self.decisions.into_values().for_each(|it| _ = world.decision(Arc::unwrap_or_clone(it)));
        self.placements.into_values().for_each(|it| _ = world.placement(Arc::unwrap_or_clone(it)));
        world
    }

    changes!(
        /// A cluster comes or changes; the placements affected.
        cluster, no_cluster, clusters, cluster, ManagedCluster, now
    );
    changes!(
        /// Scores of a cluster come or change; the placements affected.
        scores, no_scores, scores, scores, AddOnPlacementScore
    );
    changes!(
        /// A set comes or changes; the placements affected.
        set, no_set, sets, set, ManagedClusterSet
    );
    changes!(
        /// A placement comes or changes; its key, if it is to be planned.
        placement, no_placement, placements, placement, Placement
    );
    changes!(
        /// A decision comes or changes; the placements affected.
        decision, no_decision, decisions, decision, PlacementDecision
    );

    /// Whether there is a cluster of that name.
    pub(crate) fn has_cluster(&self, name: &str) -> bool {
        self.clusters.json(name).is_some()
    }

    /// Whether that cluster has scores.
    pub(crate) fn has_scores(&self, cluster: &str) -> bool {
        self.scores.contains_key(cluster)
    }

    /// A set is bound; the placements affected.
    pub(crate) fn bind(&self, set: &str) -> Vec<ObjectKey> {
        self.index.binding(Change::Added(&binding(set)))
    }

    /// A set is no longer bound; the placements affected.
    pub(crate) fn unbind(&self, set: &str) -> Vec<ObjectKey> {
        self.index.binding(Change::Deleted(&binding(set)))
    }

    /// The placement of that name.
    pub(crate) fn object(&self, placement: &str) -> Arc<Placement> {
        self.placements[placement].clone()
    }

    /// What is planned for a placement.
    pub(crate) fn plan(&self, name: &str, now: Timestamp) -> Plan {
        let snapshot = self.index.snapshot(&key(name)).unwrap();
        plan(&Observed { placement: self.placements[name].clone(), snapshot }, now, &mut |_| {})
    }

    /// Plans, carries out the plan, and returns it.
    pub(crate) fn settle(&mut self, name: &str, now: Timestamp) -> Plan {
        let plan = self.plan(name, now);
        self.index.record_plan(&key(name), plan.desired.clone(), plan.status.clone());
        for step in &plan.steps {
            let affected = match step {
                Step::Create(desired) => {
                    assert!(self.decision(decision(name, desired, false)).is_empty());
                    self.decision(decision(name, desired, true))
                }
                Step::List(desired) | Step::Label(desired) => self.decision(decision(name, desired, true)),
                Step::Delete(gone) => self.no_decision(gone),
            };
            assert!(affected.is_empty(), "what a plan desires affects no placement: {step:?}");
        }
        let mut placement = Placement::clone(&self.placements[name]);
        placement.status = Some(plan.status.clone());
        assert!(self.placement(placement).is_empty());
        plan
    }

    /// The clusters that the decisions of a placement list.
    pub(crate) fn decided(&self, name: &str) -> Vec<String> {
        let of_it = self.decisions.values().filter(|decision| decision.labels().values().any(|value| value == name));
        let listed = of_it.filter_map(|decision| decision.status.as_ref()).flat_map(|status| &status.decisions);
        let mut names: Vec<_> = listed.map(|decision| decision.cluster_name.clone()).collect();
        names.sort_unstable();
        names
    }
}

/// The name by which tests refer to an object: scores by their cluster.
fn name_of<K: kube::Resource>(object: &K) -> String {
    object.namespace().filter(|namespace| namespace != NAMESPACE).unwrap_or_else(|| object.name_any())
}

fn binding(set: &str) -> Arc<ManagedClusterSetBinding> {
    Arc::new(ManagedClusterSetBinding::new(NAMESPACE, set, serde_json::from_value(json!({"clusterSet": set})).unwrap()))
}

/// A decision as it is once it is written.
pub(crate) fn decision(placement: &str, desired: &DesiredDecision, listed: bool) -> PlacementDecision {
    let mut decision = PlacementDecision::new(NAMESPACE, &desired.name);
    decision.labels_mut().extend(super::apply::labels(placement, desired));
    let decide = |name: &str| ClusterDecision { cluster_name: name.into(), ..ClusterDecision::default() };
    let decisions = desired.clusters.iter().map(|name| decide(name)).collect();
    decision.status = listed.then_some(PlacementDecisionStatus { decisions });
    decision
}

/// A cluster with these labels.
pub(crate) fn cluster(name: &str, labels: &[(&str, &str)]) -> ManagedCluster {
    let mut cluster = ManagedCluster::new(name, <_>::default());
    cluster.labels_mut().extend(labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
    cluster
}

/// The cluster with a taint, added at the beginning.
pub(crate) fn tainted(mut cluster: ManagedCluster, key: &str, effect: &str) -> ManagedCluster {
    let taint = json!({"key": key, "effect": effect, "timeAdded": at(0)});
    cluster.spec.taints.push(serde_json::from_value(taint).unwrap());
    cluster
}

/// Scores of a cluster, in an AddOnPlacementScore named `usage`.
pub(crate) fn scores(cluster: &str, status: Value) -> AddOnPlacementScore {
    let mut scores = AddOnPlacementScore::new(cluster, "usage");
    scores.status = Some(serde_json::from_value(status).unwrap());
    scores
}

/// A set with this selector.
pub(crate) fn set(name: &str, selector: Value) -> ManagedClusterSet {
    ManagedClusterSet::new(name, serde_json::from_value([("clusterSelector", selector)].into_iter().collect()).unwrap())
}

/// A placement with this spec.
pub(crate) fn placement(name: &str, spec: Value) -> Placement {
    let mut placement = Placement::new(NAMESPACE, name, serde_json::from_value(spec).unwrap());
    placement.metadata.uid = Some("uid".into());
    placement
}
