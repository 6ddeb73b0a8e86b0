//! Splits the selected clusters into groups, and groups into decisions.
//!
//! A decision lists at most a hundred clusters. As long as a group needs as many decisions as before, each cluster stays in
//! the one that lists it, and new clusters fill the gaps. If decisions were filled by name, as OCM does, a cluster that leaves a
//! large group would move one cluster of each decision after its own, and all of these would have to be written. A cluster that
//! moves is for a moment in no decision, or in two.

use std::collections::{BTreeMap, HashSet};

use ocm_api::{cluster::v1beta1::DecisionGroupStatus, components, limits::MAX_DECISIONS};

use crate::{facts::Name, rules::Grouping, schedule::Candidate};

/// Selected clusters that belong together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// Empty for clusters that no named group takes.
    pub name: String,
    /// Its clusters, by name.
    pub clusters: Vec<Name>,
}

/// A PlacementDecision as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DesiredDecision {
    /// Its name.
    pub name: String,
    /// The name of the group.
    pub group: String,
    /// Index of the group, as its label has it.
    pub index: String,
    /// The clusters it lists, by name.
    pub clusters: Vec<Name>,
}

/// The clusters that each decision of a placement lists, by the name of the decision.
pub type Listed = BTreeMap<String, Vec<Name>>;

/// Splits the selected clusters. There is always at least one group, which may be empty.
pub(crate) fn split(grouping: &Grouping, chosen: &[Candidate<'_>]) -> Vec<Group> {
    let size = grouping.size(chosen.len());
    let mut rest: Vec<Candidate<'_>> = chosen.to_vec();
    let mut groups = Vec::new();
    for rule in &grouping.rules {
        let (taken, left) = rest.into_iter().partition(|one| rule.selector.matches(one.facts));
        rest = left;
        groups.extend(pieces(&rule.name, taken, size));
    }
    if grouping.problem.is_none() {
        groups.extend(pieces("", rest, size));
    }
    if groups.is_empty() {
        groups.push(Group::default());
    }
    groups
}

fn pieces(name: &str, clusters: Vec<Candidate<'_>>, size: usize) -> Vec<Group> {
    let mut names: Vec<Name> = clusters.into_iter().map(|one| one.name.clone()).collect();
    names.sort_unstable();
    names.chunks(size).map(|piece| Group { name: name.to_owned(), clusters: piece.to_vec() }).collect()
}

/// The decisions that list the groups, of which each has as few as possible, and the status of each group.
#[must_use]
pub fn slice(placement: &str, groups: &[Group], listed: &Listed) -> (Vec<DesiredDecision>, Vec<DecisionGroupStatus>) {
    let mut desired: Vec<DesiredDecision> = Vec::new();
    let mut statuses = Vec::new();
    for (index, group) in groups.iter().enumerate() {
        let first = desired.len();
        let number = group.clusters.len().div_ceil(MAX_DECISIONS).max(1);
        let names = (1..=number).map(|number| components::placement_decision_name(placement, first + number));
        for (name, clusters) in fill(names.collect(), &group.clusters, listed) {
            desired.push(DesiredDecision { name, group: group.name.clone(), index: index.to_string(), clusters });
        }
        statuses.push(DecisionGroupStatus {
            decision_group_index: count(index),
            decision_group_name: group.name.clone(),
            decisions: desired[first..].iter().map(|decision| decision.name.clone()).collect(),
            clusters_count: count(group.clusters.len()),
        });
    }
    (desired, statuses)
}

/// Distributes the clusters of a group over its decisions, of which the last need not be full.
fn fill(names: Vec<String>, clusters: &[Name], listed: &Listed) -> Vec<(String, Vec<Name>)> {
    let mut left: HashSet<&str> = clusters.iter().map(|cluster| &**cluster).collect();
    let mut filled: Vec<_> = names.into_iter().map(|name| (kept(&name, &mut left, listed), name)).collect();
    let mut rest = clusters.iter().filter(|cluster| left.contains(&***cluster)).cloned();
    for (clusters, _) in &mut filled {
        let room = MAX_DECISIONS - clusters.len();
        clusters.extend(rest.by_ref().take(room));
        clusters.sort_unstable();
    }
    filled.into_iter().map(|(clusters, name)| (name, clusters)).collect()
}

/// The clusters that stay in a decision, which are no longer left for others.
fn kept(decision: &str, left: &mut HashSet<&str>, listed: &Listed) -> Vec<Name> {
    let listed = listed.get(decision).into_iter().flatten();
    listed.filter(|cluster| left.remove(&***cluster)).take(MAX_DECISIONS).cloned().collect()
}

/// As a number of the API.
#[must_use]
pub fn count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::facts::{Cluster, Clusters};

    fn clusters(count: usize) -> Clusters {
        let labels = |index: usize| [("parity".to_owned(), (index % 2).to_string())].into();
        let cluster = |index| Arc::new(Cluster { labels: labels(index), ..Cluster::default() });
        (0..count).map(|index| (format!("c{index:03}").into(), cluster(index))).collect()
    }

    fn grouped(count: usize, strategy: Value) -> Vec<(String, usize)> {
        let clusters = clusters(count);
        // In any order but theirs: groups are by name.
        let chosen: Vec<_> = clusters.iter().rev().map(|(name, facts)| Candidate { name, facts }).collect();
        let groups = split(&Grouping::read(&serde_json::from_value(strategy).unwrap()), &chosen);
        assert!(groups.iter().all(|group| group.clusters.is_sorted()));
        groups.into_iter().map(|group| (group.name, group.clusters.len())).collect()
    }

    fn even(name: &str) -> Value {
        json!({"groupName": name, "groupClusterSelector": {"labelSelector": {"matchLabels": {"parity": "0"}}}})
    }

    #[test]
    fn without_a_strategy_there_is_one_group_even_of_no_clusters() {
        assert_eq!(grouped(3, json!({})), [(String::new(), 3)]);
        assert_eq!(grouped(0, json!({})), [(String::new(), 0)]);
    }

    #[test]
    fn named_groups_take_theirs_first_and_all_are_split_by_size() {
        let strategy = json!({"decisionGroups": [even("even"), even("again")], "clustersPerDecisionGroup": 2});
        let expected = [("even", 2), ("even", 1), ("", 2)].map(|(name, size)| (name.to_owned(), size));
        assert_eq!(grouped(5, strategy), expected);
    }

    #[test]
    fn what_comes_after_a_wrong_selector_is_dropped() {
        let wrong = json!({"matchExpressions": [{"key": "a", "operator": "Like"}]});
        let wrong = json!({"groupName": "wrong", "groupClusterSelector": {"labelSelector": wrong}});
        assert_eq!(grouped(4, json!({"decisionGroups": [even("even"), wrong.clone()]})), [("even".to_owned(), 2)]);
        assert_eq!(grouped(4, json!({"decisionGroups": [wrong]})), [(String::new(), 0)]);
    }

    #[test]
    fn a_decision_lists_a_hundred_clusters_and_their_numbers_go_on_over_groups() {
        let names: Vec<Name> = clusters(201).keys().cloned().collect();
        let groups = [
            Group { name: "canary".into(), clusters: names[..101].to_vec() },
            Group { name: String::new(), clusters: names[101..].to_vec() },
        ];
        let (desired, statuses) = slice("p", &groups, &Listed::default());
        let seen: Vec<_> =
            desired.iter().map(|one| (&*one.name, &*one.group, &*one.index, one.clusters.len())).collect();
        assert_eq!(
            seen,
            [("p-decision-1", "canary", "0", 100), ("p-decision-2", "canary", "0", 1), ("p-decision-3", "", "1", 100)]
        );
        assert_eq!(statuses[0].decisions, ["p-decision-1", "p-decision-2"]);
        assert_eq!((statuses[0].clusters_count, statuses[1].clusters_count), (101, 100));
        assert_eq!((statuses[1].decision_group_index, &*statuses[1].decision_group_name), (1, ""));
    }

    /// How the clusters of one group are distributed, after `listed`.
    fn distributed(clusters: Vec<Name>, listed: &Listed) -> Listed {
        let (desired, _) = slice("p", &[Group { name: String::new(), clusters }], listed);
        desired.into_iter().map(|decision| (decision.name, decision.clusters)).collect()
    }

    #[test]
    fn each_cluster_stays_in_its_decision_and_new_ones_fill_the_gaps() {
        let mut names: Vec<Name> = clusters(250).keys().cloned().collect();
        let before = distributed(names.clone(), &Listed::default());
        assert_eq!(before.values().map(Vec::len).collect::<Vec<_>>(), [100, 100, 50]);
        let gone = names.remove(7);
        let mut expected = before.clone();
        expected.get_mut("p-decision-1").unwrap().retain(|name| *name != gone);
        let fewer = distributed(names.clone(), &before);
        assert_eq!(fewer, expected);
        names.push("new".into());
        expected.get_mut("p-decision-1").unwrap().push("new".into());
        assert_eq!(distributed(names, &fewer), expected);
    }

    #[test]
    fn a_decision_that_is_no_longer_needed_gives_its_clusters_to_others_and_none_is_listed_twice_or_too_long() {
        let names: Vec<Name> = clusters(250).keys().cloned().collect();
        let before = distributed(names.clone(), &Listed::default());
        let fewer = distributed(names[60..].to_vec(), &before);
        assert_eq!(fewer.values().map(Vec::len).collect::<Vec<_>>(), [90, 100]);
        assert_eq!(fewer["p-decision-2"], before["p-decision-2"]);
        let mut all: Vec<_> = fewer.values().flatten().cloned().collect();
        all.sort_unstable();
        assert_eq!(all, names[60..]);
        let crowded = Listed::from([("p-decision-1".into(), names.clone()), ("p-decision-2".into(), names.clone())]);
        let lengths: Vec<_> = distributed(names, &crowded).values().map(Vec::len).collect();
        assert_eq!(lengths, [100, 100, 50]);
    }

    #[test]
    fn a_group_without_clusters_has_a_decision_without_clusters() {
        let (desired, statuses) = slice("p", &[Group::default()], &Listed::default());
        assert_eq!((desired.len(), desired[0].clusters.len(), statuses[0].clusters_count), (1, 0, 0));
        assert_eq!(statuses[0].decisions, ["p-decision-1"]);
    }
}
