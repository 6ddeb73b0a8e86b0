//! Which placement decides on which clusters, in which groups.

use std::{collections::HashMap, sync::Arc};

use crate::decisions::{ClusterName, DecisionGroups, PlacementDecisions, PlacementSnapshot};

/// The clusters of the placements that an add-on follows. Depends on their PlacementDecisions only, so one is reused as long
/// as those are the same: while a rollout goes on, installations change and these do not.
#[derive(Debug, Default)]
pub(crate) struct Chosen {
    decisions: Vec<Option<Arc<PlacementDecisions>>>,
    /// The position of the placement that decides on each cluster: of several that choose it, the last.
    placement_of: HashMap<ClusterName, usize>,
    groups: Vec<DecisionGroups>,
}

impl Chosen {
    pub(crate) fn of(placements: &[Option<PlacementSnapshot>]) -> Self {
        let decisions: Vec<_> = decisions_of(placements).map(Option::<&_>::cloned).collect();
        let chosen = decisions.iter().enumerate().flat_map(|(index, decisions)| {
            let clusters = decisions.iter().flat_map(|decisions| decisions.clusters());
            clusters.map(move |cluster| (cluster, index))
        });
        let placement_of: HashMap<_, _> = chosen.collect();
        let groups = decisions.iter().enumerate().map(|(index, decisions)| {
            let groups = decisions.as_deref().map(groups).unwrap_or_default();
            groups.filtered(|cluster| placement_of.get(cluster) == Some(&index))
        });
        Self { groups: groups.collect(), placement_of, decisions }
    }

    /// Whether the placements have made no other decisions since.
    pub(crate) fn is_of(&self, placements: &[Option<PlacementSnapshot>]) -> bool {
        let is_same = |(one, other): (Option<&Arc<_>>, Option<&Arc<_>>)| match (one, other) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        };
        let known = self.decisions.iter().map(Option::as_ref);
        self.decisions.len() == placements.len() && known.zip(decisions_of(placements)).all(is_same)
    }

    /// Whether any placement chooses the cluster.
    pub(super) fn contains(&self, cluster: &ClusterName) -> bool {
        self.placement_of.contains_key(cluster)
    }

    /// The groups of a placement, with those clusters that it decides on.
    pub(super) fn groups(&self, placement: usize) -> Option<&DecisionGroups> {
        self.groups.get(placement)
    }
}

fn decisions_of(placements: &[Option<PlacementSnapshot>]) -> impl Iterator<Item = Option<&Arc<PlacementDecisions>>> {
    placements.iter().map(|snapshot| snapshot.as_ref().map(|snapshot| &snapshot.decisions))
}

/// Without an order of groups, all clusters are one group, which makes no difference to rollouts of type All.
fn groups(decisions: &PlacementDecisions) -> DecisionGroups {
    decisions.groups().unwrap_or_else(|_| decisions.as_one_group())
}
