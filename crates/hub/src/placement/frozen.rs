//! Decisions that are not changed, because this hub does not know what they should be.
//!
//! A placement may have been decided by another hub that supports what this one does not. Emptying its decisions would
//! remove what runs on their clusters, which nobody has asked for. Only clusters that the placement may no longer select are
//! left out.

use std::collections::{BTreeMap, HashSet};

use ocm_api::cluster::v1beta1::DecisionGroupStatus;
use ocm_apimachinery::labels;
use ocm_scheduler::{Candidate, DesiredDecision, Group, count, slice};

use super::index::Snapshot;

/// The decisions, and the status of their groups. With `candidates`, only clusters that are among these stay. A placement
/// without decisions gets the empty one that a placement without clusters has.
pub(crate) fn decisions(
    placement: &str,
    snapshot: &Snapshot,
    candidates: Option<&[Candidate<'_>]>,
) -> (Vec<DesiredDecision>, Vec<DecisionGroupStatus>) {
    let allowed: Option<HashSet<&str>> = candidates.map(|all| all.iter().map(|one| &**one.name).collect());
    let may_stay = |cluster: &str| allowed.as_ref().is_none_or(|allowed| allowed.contains(cluster));
    let slices = snapshot.slices.iter().filter(|(_, slice)| slice.is_of(placement));
    let mut stay: Vec<DesiredDecision> = slices
        .map(|(name, slice)| DesiredDecision {
            name: name.clone(),
            group: slice.group.clone().unwrap_or_default(),
            index: index(slice.index.as_deref()).to_string(),
            clusters: slice.clusters.iter().filter(|cluster| may_stay(cluster)).cloned().collect(),
        })
        .collect();
    if stay.iter().any(|decision| !decision.clusters.is_empty()) {
        stay.sort_by_key(|decision| (decision.name.len(), decision.name.clone()));
        let groups = groups(&stay);
        return (stay, groups);
    }
    if labels::is_value(placement) { slice(placement, &[Group::default()]) } else { <_>::default() }
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
