//! What is shown of an explanation. Pure.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kube::ResourceExt as _;
use ocm_api::annotations::PLACEMENT_DISABLE;
use ocm_scheduler::{ClusterExplanation, Explanation, Reason, Snapshot, Verdict, smallest_change, taint_as_text};
use serde::Serialize;

use super::{read::HubObjects, what_if::WhatIf};
use crate::failure::Failure;

/// Up to how many clusters are all shown.
const FEW: usize = 20;
/// How many clusters of a group are named.
const EXAMPLES: usize = 3;

/// What removed a cluster if nothing is decided.
pub(super) const UNDECIDED: &str = "Problem";

/// The note if the decisions in the hub differ.
const DIFFERS: &str = "The hub decides again when something changes that the placement depends on, but not because other \
                       placements select other clusters. If it should have done so, check whether its placement controller \
                       runs: clusteradm check hub.";

/// Which clusters to show.
#[derive(Debug)]
pub(super) enum Shown {
    /// The selected ones, and all if there are few or all are wanted.
    Overview { all: bool },
    /// These, in detail.
    Named(Vec<String>),
}

/// An explanation of a placement.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    pub(super) namespace: String,
    pub(super) name: String,
    /// What is wrong with the placement, or with one of its sets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) problem: Option<String>,
    /// The sets that it may select from.
    pub(super) cluster_sets: Vec<String>,
    /// How many clusters it wants; absent if all that fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) number_of_clusters: Option<usize>,
    /// How many clusters the hub has.
    pub(super) number_of_all_clusters: usize,
    pub(super) prioritizers: Vec<Prioritizer>,
    /// The selected clusters, the best first.
    pub(super) selected: Vec<String>,
    pub(super) clusters: Vec<Cluster>,
    /// Whether the clusters are shown in detail.
    #[serde(skip)]
    pub(super) in_detail: bool,
    /// Clusters that are not selected and not among the clusters above, by reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) others: Vec<Group>,
    /// What the decisions in the hub list otherwise than this decision; absent if they agree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stored: Option<Difference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) what_if: Option<Comparison>,
    pub(super) notes: Vec<String>,
}

#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Prioritizer {
    pub(super) name: String,
    pub(super) weight: i32,
}

/// What became of a cluster.
#[derive(Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Cluster {
    pub(super) name: String,
    pub(super) selected: bool,
    /// The first filter that removed it, ClusterSets or NumberOfClusters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) removed_by: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rank: Option<usize>,
    /// The sum of the scores, each multiplied by its weight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) score: Option<i64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) scores: Vec<Score>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tolerated_until: Option<Timestamp>,
    /// The smallest change that would select it; absent if none is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) change: Option<Vec<String>>,
    /// How many points more would select it as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) points_needed: Option<i64>,
}

/// The score of a cluster by one prioritizer.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Score {
    pub(super) prioritizer: String,
    pub(super) weight: i32,
    pub(super) score: i64,
    pub(super) input: String,
}

/// Clusters that are not selected for the same reason.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Group {
    pub(super) removed_by: &'static str,
    pub(super) reason: String,
    pub(super) count: usize,
    /// Some of them.
    pub(super) examples: Vec<String>,
}

/// Clusters that the decisions in the hub list, and this decision does not, and the other way around.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Difference {
    pub(super) surplus: Vec<String>,
    pub(super) missing: Vec<String>,
}

/// What hypothetical changes lead to.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Comparison {
    pub(super) changes: Vec<String>,
    pub(super) now: Vec<String>,
    pub(super) then: Vec<String>,
    pub(super) gained: Vec<String>,
    pub(super) lost: Vec<String>,
}

impl Report {
    pub(super) fn of(
        objects: &HubObjects,
        snapshot: &Snapshot,
        explanation: &Explanation,
        shown: &Shown,
        now: Timestamp,
    ) -> Result<Self, Failure> {
        let selected: Vec<_> = super::selected(explanation);
        let (shown_clusters, others) = split(explanation, shown)?;
        let cluster = |one: &ClusterExplanation| Cluster::of(one, snapshot, explanation, now);
        let stored = difference(&selected, explanation, snapshot);
        Ok(Self {
            namespace: objects.placement.namespace().unwrap_or_default(),
            name: objects.placement.name_any(),
            problem: explanation.problem.clone().or_else(|| explanation.eligible.problem.clone()),
            cluster_sets: explanation.eligible.sets.iter().map(ToString::to_string).collect(),
            number_of_clusters: explanation.wanted,
            number_of_all_clusters: explanation.clusters.len(),
            prioritizers: explanation
                .prioritizers
                .iter()
                .map(|one| Prioritizer { name: one.name.clone(), weight: one.weight })
                .collect(),
            clusters: shown_clusters.into_iter().map(cluster).collect(),
            in_detail: matches!(shown, Shown::Named(_)),
            others: groups(&others, explanation),
            notes: notes(objects, explanation, stored.is_some()),
            stored,
            what_if: None,
            selected,
        })
    }

    /// The same, with what the changes lead to. The decisions in the hub are of the clusters as they are, so they are not
    /// compared.
    pub(super) fn compared(self, changes: &[WhatIf], before: &[String]) -> Self {
        let without = |names: &[String], others: &[String]| {
            let others: BTreeSet<_> = others.iter().collect();
            names.iter().filter(|name| !others.contains(name)).cloned().collect()
        };
        let comparison = Comparison {
            changes: changes.iter().map(|change| change.argument.clone()).collect(),
            now: before.to_vec(),
            then: self.selected.clone(),
            gained: without(&self.selected, before),
            lost: without(before, &self.selected),
        };
        let notes = self.notes.into_iter().filter(|note| note != DIFFERS).collect();
        Self { what_if: Some(comparison), stored: None, notes, ..self }
    }
}

/// The names of the clusters that passed all filters, the best first, and whether they are selected.
pub(super) fn ranking(explanation: &Explanation) -> Vec<(String, bool)> {
    let mut ranked: Vec<_> = explanation
        .clusters
        .iter()
        .filter_map(|one| match one.verdict {
            Verdict::Ranked { rank, is_selected, .. } => Some((rank, one.name.to_string(), is_selected)),
            _ => None,
        })
        .collect();
    ranked.sort_unstable();
    ranked.into_iter().map(|(_, name, is_selected)| (name, is_selected)).collect()
}

/// The clusters to show, the best first, and the others.
fn split<'a>(
    explanation: &'a Explanation,
    shown: &Shown,
) -> Result<(Vec<&'a ClusterExplanation>, Vec<&'a ClusterExplanation>), Failure> {
    let (mut shown, others): (Vec<_>, Vec<_>) = match shown {
        Shown::Named(names) => (named(explanation, names)?, Vec::new()),
        Shown::Overview { all } if *all || explanation.clusters.len() <= FEW => {
            (explanation.clusters.iter().collect(), Vec::new())
        }
        Shown::Overview { .. } => explanation.clusters.iter().partition(|one| is_selected(one)),
    };
    shown.sort_by_key(|one| match one.verdict {
        Verdict::Ranked { rank, .. } => rank,
        _ => usize::MAX,
    });
    Ok((shown, others))
}

fn named<'a>(explanation: &'a Explanation, names: &[String]) -> Result<Vec<&'a ClusterExplanation>, Failure> {
    let find = |name: &String| {
        explanation.clusters.iter().find(|one| *one.name == **name).ok_or_else(|| {
            Failure::new(format!("cluster {name} does not exist")).hint("`clusteradm get clusters` lists them")
        })
    };
    names.iter().map(find).collect()
}

fn is_selected(one: &ClusterExplanation) -> bool {
    matches!(one.verdict, Verdict::Ranked { is_selected: true, .. })
}

impl Cluster {
    fn of(one: &ClusterExplanation, snapshot: &Snapshot, explanation: &Explanation, now: Timestamp) -> Self {
        let (removed_by, reason) = removal(one, explanation).unzip();
        let cluster = Self { name: one.name.to_string(), removed_by, reason, ..Self::default() };
        let cluster = match &one.verdict {
            Verdict::Ranked { scores, sum, rank, is_selected, tolerated_until } => Self {
                selected: *is_selected,
                rank: Some(*rank),
                score: Some(*sum),
                scores: explanation.prioritizers.iter().zip(scores).map(score).collect(),
                tolerated_until: *tolerated_until,
                points_needed: explanation.points_needed(&one.name),
                ..cluster
            },
            _ => cluster,
        };
        if cluster.selected {
            return cluster;
        }
        let changes = smallest_change(snapshot, &one.name, now);
        Self { change: changes.map(|changes| changes.iter().map(ToString::to_string).collect()), ..cluster }
    }
}

fn score((prioritizer, score): (&ocm_scheduler::WeightedPrioritizer, &ocm_scheduler::Score)) -> Score {
    Score {
        prioritizer: prioritizer.name.clone(),
        weight: prioritizer.weight,
        score: score.score,
        input: score.input.to_string(),
    }
}

/// What removed a cluster, and why; `None` if it is selected.
fn removal(one: &ClusterExplanation, explanation: &Explanation) -> Option<(&'static str, String)> {
    Some(match &one.verdict {
        Verdict::NotEligible { is_deleting: true, .. } => ("ClusterSets", "it is being deleted".to_owned()),
        Verdict::NotEligible { sets, .. } if sets.is_empty() => ("ClusterSets", "it is in no cluster set".to_owned()),
        Verdict::NotEligible { sets, .. } => {
            let plural = if sets.len() == 1 { "" } else { "s" };
            let sets = sets.join(", ");
            let reason = format!("it is in cluster set{plural} {sets}, from which the placement does not select");
            ("ClusterSets", reason)
        }
        Verdict::Undecided => (UNDECIDED, "nothing is decided: see the problem".to_owned()),
        Verdict::Removed { filter, reason } => (filter, reason.to_string()),
        Verdict::Ranked { is_selected: true, .. } => return None,
        Verdict::Ranked { rank, .. } => {
            let wanted = explanation.wanted.unwrap_or_default();
            ("NumberOfClusters", format!("it has rank {rank}, and spec.numberOfClusters is {wanted}"))
        }
    })
}

/// The same without what differs from cluster to cluster.
fn shared_reason(one: &ClusterExplanation, reason: String) -> String {
    match &one.verdict {
        Verdict::Removed { reason: Reason::Predicates(mismatches), .. } => {
            let all: Vec<_> =
                mismatches.iter().map(|one| format!("{}: {} is not met", one.field, one.requirement)).collect();
            all.join("; ")
        }
        Verdict::Removed { reason: Reason::Taint(intolerance), .. } => {
            format!("taint {} is not tolerated", taint_as_text(&intolerance.taint))
        }
        Verdict::Ranked { .. } => "others have a better rank".to_owned(),
        _ => reason,
    }
}

/// The clusters by reason, the most frequent first.
fn groups(clusters: &[&ClusterExplanation], explanation: &Explanation) -> Vec<Group> {
    let mut by_reason: BTreeMap<(&'static str, String), Vec<String>> = BTreeMap::new();
    for one in clusters {
        if let Some((removed_by, reason)) = removal(one, explanation) {
            by_reason.entry((removed_by, shared_reason(one, reason))).or_default().push(one.name.to_string());
        }
    }
    let group = |((removed_by, reason), mut names): ((&'static str, String), Vec<String>)| {
        let count = names.len();
        names.truncate(EXAMPLES);
        Group { removed_by, reason, count, examples: names }
    };
    let mut groups: Vec<_> = by_reason.into_iter().map(group).collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.count));
    groups
}

/// How the decisions in the hub differ from this one; `None` if they do not, or nothing is decided.
fn difference(selected: &[String], explanation: &Explanation, snapshot: &Snapshot) -> Option<Difference> {
    let stored: BTreeSet<&str> = snapshot.decided.values().flatten().map(|name| &**name).collect();
    let computed: BTreeSet<&str> = selected.iter().map(String::as_str).collect();
    let names = |names: Vec<&&str>| names.into_iter().map(|name| (*name).to_owned()).collect();
    let difference = Difference {
        surplus: names(stored.difference(&computed).collect()),
        missing: names(computed.difference(&stored).collect()),
    };
    let agree = difference.surplus.is_empty() && difference.missing.is_empty();
    (!agree && !explanation.is_frozen && !snapshot.rules.is_ignored).then_some(difference)
}

fn notes(objects: &HubObjects, explanation: &Explanation, differs: bool) -> Vec<String> {
    let balances = explanation.prioritizers.iter().any(|one| one.name == "Balance") && explanation.wanted.is_some();
    let expired = explanation.expired.iter().map(|(cluster, object)| format!("{cluster}/{object}"));
    let expired: Vec<_> = expired.collect::<BTreeSet<_>>().into_iter().collect();
    let notes = [
        ignored(objects),
        explanation.is_frozen.then(|| "The decisions stay as they are until this is corrected.".to_owned()),
        (!expired.is_empty())
            .then(|| format!("Scores of these AddOnPlacementScores have expired: {}.", expired.join(", "))),
        explanation
            .until
            .map(|end| format!("The placement is decided again at {end}, when a toleration ends or a score expires.")),
        balances.then(|| {
            "Balance counts the decisions of all other placements: when these change, others can be selected."
                .to_owned()
        }),
        differs.then(|| DIFFERS.to_owned()),
    ];
    notes.into_iter().flatten().collect()
}

/// Why the hub ignores a placement, if it does.
fn ignored(objects: &HubObjects) -> Option<String> {
    let metadata = &objects.placement.metadata;
    if metadata.deletion_timestamp.is_some() {
        return Some("The hub ignores this placement: it is being deleted.".to_owned());
    }
    let is_disabled = objects.placement.annotations().get(PLACEMENT_DISABLE).is_some_and(|value| value == "true");
    is_disabled.then(|| {
        format!(
            "The hub ignores this placement: annotation {PLACEMENT_DISABLE} is true. Its decisions stay as they are."
        )
    })
}
