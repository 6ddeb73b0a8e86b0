//! The join of placements and decisions.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use k8s_openapi::apimachinery::pkg::{apis::meta::v1::Condition, util::intstr::IntOrString};
use kube::ResourceExt as _;
use ocm_api::{
    cluster::v1beta1::{Placement, PlacementDecision},
    conditions::{placement as types, status},
    labels::{DECISION_GROUP_INDEX, DECISION_GROUP_NAME},
};
use ocm_runtime::{ObjectKey, conditions};

use super::{ClusterName, DecisionGroups, GroupKey, placement_of};

/// A placement and what it has chosen, as of one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlacementSnapshot {
    /// Why it has chosen fewer clusters than it should, if so.
    pub problem: Option<String>,
    /// The number of selected clusters in its status, whether or not its decisions list them yet.
    pub selected: i32,
    /// The number of decision groups in its status.
    pub decision_groups: usize,
    /// Its `clustersPerDecisionGroup`.
    pub clusters_per_group: Option<IntOrString>,
    /// Its decisions.
    pub decisions: Arc<PlacementDecisions>,
}

impl PlacementSnapshot {
    fn of(placement: &Placement, decisions: Arc<PlacementDecisions>) -> Self {
        let status = placement.status.as_ref();
        let found = status.map(|status| status.conditions.as_slice()).unwrap_or_default();
        let is = |type_, value| conditions::find(found, type_).filter(|condition| condition.status == value);
        let problem = is(types::MISCONFIGURED, status::TRUE).or_else(|| is(types::SATISFIED, status::FALSE));
        Self {
            problem: problem.map(reason_and_message),
            selected: status.map_or(0, |status| status.number_of_selected_clusters),
            decision_groups: status.map_or(0, |status| status.decision_groups.len()),
            clusters_per_group: placement.spec.decision_strategy.group_strategy.clusters_per_decision_group.clone(),
            decisions,
        }
    }
}

fn reason_and_message(condition: &Condition) -> String {
    format!("{}: {}", condition.reason, condition.message)
}

/// The PlacementDecisions of one placement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlacementDecisions(BTreeMap<String, Arc<Slice>>);

/// One PlacementDecision.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Slice {
    group: Arc<str>,
    /// As its label has it.
    index: String,
    /// By name.
    clusters: Vec<ClusterName>,
}

/// The label with the index of a decision's group is not a number, so that the order of the groups is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "label {DECISION_GROUP_INDEX} of PlacementDecision {decision} is {value:?}: it must be a number. The placement \
     controller corrects it when it runs"
)]
pub struct GroupIndexError {
    /// The decision.
    pub decision: String,
    /// The label's value.
    pub value: String,
}

impl PlacementDecisions {
    /// Every cluster that they list.
    #[must_use]
    pub fn clusters(&self) -> BTreeSet<ClusterName> {
        self.0.values().flat_map(|slice| slice.clusters.iter().cloned()).collect()
    }

    /// Whether one of them lists the cluster.
    #[must_use]
    pub fn contains(&self, cluster: &str) -> bool {
        let lists = |slice: &Arc<Slice>| slice.clusters.binary_search_by(|known| (**known).cmp(cluster)).is_ok();
        self.0.values().any(lists)
    }

    /// The clusters in one group, for those to whom the order makes no difference.
    #[must_use]
    pub fn as_one_group(&self) -> DecisionGroups {
        let key = GroupKey { name: "".into(), index: 0 };
        DecisionGroups::new(self.clusters().into_iter().map(|cluster| (key.clone(), cluster)))
    }

    /// The clusters in their groups.
    ///
    /// # Errors
    /// [`GroupIndexError`]
    pub fn groups(&self) -> Result<DecisionGroups, GroupIndexError> {
        let mut listed = Vec::new();
        for (decision, slice) in &self.0 {
            let wrong = |_| GroupIndexError { decision: decision.clone(), value: slice.index.clone() };
            let key = GroupKey { name: slice.group.clone(), index: slice.index.parse().map_err(wrong)? };
            listed.extend(slice.clusters.iter().map(|cluster| (key.clone(), cluster.clone())));
        }
        Ok(DecisionGroups::new(listed))
    }
}

/// Placements and decisions, joined.
#[derive(Debug, Default)]
pub(super) struct State {
    placements: HashMap<ObjectKey, PlacementSnapshot>,
    /// By placement, whether or not the placement exists.
    decisions: HashMap<ObjectKey, Arc<PlacementDecisions>>,
    /// The placement that a decision belongs to.
    placement_of: HashMap<ObjectKey, ObjectKey>,
    names: Names,
}

impl State {
    pub(super) fn placement(&self, key: &ObjectKey) -> Option<PlacementSnapshot> {
        let decisions = self.decisions.get(key).cloned().unwrap_or_default();
        Some(PlacementSnapshot { decisions, ..self.placements.get(key)?.clone() })
    }

    pub(super) fn set_placement(&mut self, key: &ObjectKey, placement: Option<&Placement>) {
        match placement {
            Some(placement) => {
                _ = self.placements.insert(key.clone(), PlacementSnapshot::of(placement, Arc::default()));
            }
            None => _ = self.placements.remove(key),
        }
    }

    pub(super) fn set_decision(&mut self, key: &ObjectKey, decision: Option<&PlacementDecision>) {
        let placement = decision.and_then(placement_of);
        let before = match &placement {
            Some(placement) => self.placement_of.insert(key.clone(), placement.clone()),
            None => self.placement_of.remove(key),
        };
        if let Some(before) = before.filter(|before| placement.as_ref() != Some(before)) {
            self.remove(&before, &key.name);
        }
        if let (Some(placement), Some(decision)) = (placement, decision) {
            let slice = Arc::new(self.slice(decision));
            Arc::make_mut(self.decisions.entry(placement).or_default()).0.insert(key.name.clone(), slice);
        }
        self.names.forget_unused();
    }

    fn remove(&mut self, placement: &ObjectKey, decision: &str) {
        let Some(decisions) = self.decisions.get_mut(placement) else { return };
        Arc::make_mut(decisions).0.remove(decision);
        if decisions.0.is_empty() {
            self.decisions.remove(placement);
        }
    }

    fn slice(&mut self, decision: &PlacementDecision) -> Slice {
        let label = |key: &str| decision.labels().get(key).map(String::as_str).unwrap_or_default();
        let listed = decision.status.iter().flat_map(|status| &status.decisions);
        let named = listed.map(|decision| decision.cluster_name.as_str()).filter(|name| !name.is_empty());
        let mut clusters: Vec<_> = named.map(|name| self.names.intern(name)).collect();
        clusters.sort_unstable();
        clusters.dedup();
        Slice {
            group: self.names.intern(label(DECISION_GROUP_NAME)),
            index: label(DECISION_GROUP_INDEX).to_owned(),
            clusters,
        }
    }

    #[cfg(test)]
    pub(super) fn names(&self) -> usize {
        self.names.known.len()
    }
}

/// Each name once.
#[derive(Debug, Default)]
struct Names {
    known: HashSet<Arc<str>>,
    /// How many there were after unused ones were last forgotten.
    used: usize,
}

impl Names {
    /// There are seldom fewer.
    const FEW: usize = 64;

    fn intern(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.known.get(name) {
            return known.clone();
        }
        let new: Arc<str> = name.into();
        self.known.insert(new.clone());
        new
    }

    /// Forgets names that nobody uses, whenever there are twice as many names as last time.
    fn forget_unused(&mut self) {
        if self.known.len() > 2 * self.used.max(Self::FEW) {
            self.known.retain(|name| Arc::strong_count(name) > 1);
            self.used = self.known.len();
        }
    }
}
