//! Decisions that stay as they are, since this hub cannot tell what they should be.
//!
//! A placement may have been decided by another hub that can do what this one cannot. To empty its decisions would take
//! away what runs on their clusters, and nobody has asked for that. Only clusters that the placement may no longer choose
//! from are left out.

use std::collections::{BTreeMap, HashSet};

use ocm_api::cluster::v1beta1::DecisionGroupStatus;
use ocm_apimachinery::labels;

use super::{
    group::{self, Group, Wanted},
    index::Scene,
    schedule::Candidate,
};

/// The decisions that stay, and what the status says of their groups. With `candidates`, only those of their clusters that
/// are among these. A placement without any gets the one that a placement without clusters has.
pub(crate) fn decisions(
    placement: &str,
    scene: &Scene,
    candidates: Option<&[Candidate<'_>]>,
) -> (Vec<Wanted>, Vec<DecisionGroupStatus>) {
    let allowed: Option<HashSet<&str>> = candidates.map(|all| all.iter().map(|one| &**one.name).collect());
    let may_stay = |cluster: &str| allowed.as_ref().is_none_or(|allowed| allowed.contains(cluster));
    let slices = scene.slices.iter().filter(|(_, slice)| slice.is_of(placement));
    let mut stay: Vec<Wanted> = slices
        .map(|(name, slice)| Wanted {
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
    if labels::is_value(placement) { group::slice(placement, &[Group::default()]) } else { <_>::default() }
}

/// The index of a decision's group, by its label. Consumers of decisions read none at all when one has no number there.
fn index(label: Option<&str>) -> i32 {
    label.and_then(|label| label.parse().ok()).unwrap_or_default()
}

fn groups(decisions: &[Wanted]) -> Vec<DecisionGroupStatus> {
    let mut groups: BTreeMap<i32, DecisionGroupStatus> = BTreeMap::new();
    for decision in decisions {
        let index = index(Some(&decision.index));
        let group = groups.entry(index).or_default();
        group.decision_group_index = index;
        group.decision_group_name.clone_from(&decision.group);
        group.decisions.push(decision.name.clone());
        group.clusters_count += group::count(decision.clusters.len());
    }
    groups.into_values().collect()
}
