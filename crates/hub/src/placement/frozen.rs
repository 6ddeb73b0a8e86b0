//! Decisions that are not changed, because it is not known what they should be.
//!
//! If a cluster set of the placement cannot be read, emptying its decisions would remove what runs on their clusters, which
//! nobody has asked for.

use std::collections::BTreeMap;

use ocm_api::cluster::v1beta1::DecisionGroupStatus;
use ocm_scheduler::{DesiredDecision, Group, Listed, count, slice};

use super::index::Snapshot;

/// The decisions, and the status of their groups. A placement without decisions gets the empty one that a placement without
/// clusters has.
pub(crate) fn decisions(placement: &str, snapshot: &Snapshot) -> (Vec<DesiredDecision>, Vec<DecisionGroupStatus>) {
    let slices = snapshot.slices.iter().filter(|(_, slice)| slice.is_of(placement));
    let mut stay: Vec<DesiredDecision> = slices
        .map(|(name, slice)| DesiredDecision {
            name: name.clone(),
            group: slice.group.clone().unwrap_or_default(),
            index: index(slice.index.as_deref()).to_string(),
            clusters: slice.clusters.clone(),
        })
        .collect();
    if stay.iter().all(|decision| decision.clusters.is_empty()) {
        return slice(placement, &[Group::default()], &Listed::default());
    }
    stay.sort_by_key(|decision| (decision.name.len(), decision.name.clone()));
    let groups = groups(&stay);
    (stay, groups)
}

/// The index of a decision's group, by its label. If the label of one is not a number, OCM's consumers reject all of them.
fn index(label: Option<&str>) -> i32 {
    label.and_then(|label| label.parse().ok()).unwrap_or_default()
}

fn groups(decisions: &[DesiredDecision]) -> Vec<DecisionGroupStatus> {
    let mut groups: BTreeMap<i32, DecisionGroupStatus> = BTreeMap::new();
    for decision in decisions {
        let index = index(Some(&decision.index));
        let group = groups.entry(index).or_default();
        group.decision_group_index = index;
        group.decision_group_name.clone_from(&decision.group);
        group.decisions.push(decision.name.clone());
        group.clusters_count += count(decision.clusters.len());
    }
    groups.into_values().collect()
}
