//! Why a placement selects the clusters that it selects.

use std::{collections::HashMap, fmt};

use jiff::Timestamp;
use ocm_api::cluster::v1beta1::DecisionGroupStatus;

use crate::{
    eligible::Eligible,
    facts::{Cluster, Name},
    group::DesiredDecision,
    rules::{Intolerance, Mismatch, Problem, Rules, Until},
    schedule::{
        Candidate, FILTERS, Input, PREDICATE, Prioritizer, Schedule, ScheduleContext, TAINT_TOLERATION, pass, ranked,
        schedule,
    },
    snapshot::Snapshot,
};

/// What is decided on a placement, and why.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The sets that it may select from.
    pub eligible: Eligible,
    /// What is wrong with the placement. With most problems, no cluster is selected.
    pub problem: Option<Problem>,
    /// Whether its decisions stay as they are, since it is not known what they should be.
    pub is_frozen: bool,
    /// How many clusters it wants; `None` for all that fit.
    pub wanted: Option<usize>,
    /// How many more than those selected it wants.
    pub missing: usize,
    /// What each filter leaves, in their order, up to the first that is invalid.
    pub filters: Vec<Filtered>,
    /// What the clusters are scored by.
    pub prioritizers: Vec<WeightedPrioritizer>,
    /// All clusters, by name.
    pub clusters: Vec<ClusterExplanation>,
    /// The scores of add-ons that no longer count, each as the name of a cluster and of its AddOnPlacementScore.
    pub expired: Vec<(Name, String)>,
    /// When the placement is decided again even if nothing changes.
    pub until: Option<Timestamp>,
    /// The decisions that list the selected clusters.
    pub decisions: Vec<DesiredDecision>,
    /// The groups of these decisions.
    pub groups: Vec<DecisionGroupStatus>,
}

/// The clusters that a filter and those before it leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filtered {
    /// The name of the filter, as in OCM.
    pub name: &'static str,
    /// The clusters, by name.
    pub left: Vec<Name>,
}

/// A prioritizer that counts.
#[derive(Clone, Debug, PartialEq)]
pub struct WeightedPrioritizer {
    /// Its name, as in OCM.
    pub name: String,
    /// What its scores are multiplied by.
    pub weight: i32,
}

/// One cluster and what was decided on it.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterExplanation {
    /// Its name.
    pub name: Name,
    /// What became of it.
    pub verdict: Verdict,
}

/// What became of one cluster.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It is in none of the sets that the placement may select from.
    NotEligible {
        /// The sets it is in.
        sets: Vec<Name>,
        /// Whether it is being deleted, and so in no set.
        is_deleting: bool,
    },
    /// It is a candidate, but nothing is decided on it: see the problem of the placement or of its sets.
    Undecided,
    /// A filter removed it.
    Removed {
        /// The name of the first filter that did, as in OCM.
        filter: &'static str,
        /// Why.
        reason: Reason,
    },
    /// It passed all filters.
    Ranked {
        /// Its score by each prioritizer, in their order.
        scores: Vec<Score>,
        /// The sum of the scores, each multiplied by the weight of its prioritizer.
        sum: i64,
        /// The place that this gives it, from 1. Of clusters with the same sum, the first by name comes first.
        rank: usize,
        /// Whether it is selected.
        is_selected: bool,
        /// When the first toleration of one of its taints ends.
        tolerated_until: Option<Timestamp>,
    },
}

/// Why a filter removed a cluster.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// It meets none of the predicates: what of each of them it does not meet.
    Predicates(Vec<Mismatch>),
    /// The first taint that is not tolerated.
    Taint(Intolerance),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Predicates(mismatches) => {
                let all: Vec<_> = mismatches.iter().map(ToString::to_string).collect();
                f.write_str(&all.join("; "))
            }
            Self::Taint(intolerance) => intolerance.fmt(f),
        }
    }
}

/// The score of a cluster by one prioritizer.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// The score, not yet multiplied by the weight.
    pub score: i64,
    /// What it was computed from.
    pub input: Input,
}

/// Decides as [`schedule`] does, and returns why.
#[must_use]
pub fn explain(snapshot: &Snapshot, now: Timestamp) -> Explanation {
    let schedule = schedule(snapshot, now);
    let context = ScheduleContext::of(snapshot, now);
    let weights = snapshot.rules.weights.as_ref().map(|weights| weights.0.as_slice()).unwrap_or_default();
    let mut ranked = ranking(&schedule, weights, &context, &snapshot.rules);
    let mut verdict = |name: &Name, cluster: &Cluster| match ranked.remove(name) {
        Some(ranked) => ranked,
        None => unranked(&schedule, &snapshot.rules, name, cluster, &context),
    };
    let clusters = snapshot
        .clusters
        .iter()
        .map(|(name, cluster)| ClusterExplanation { name: name.clone(), verdict: verdict(name, cluster) })
        .collect();
    Explanation {
        wanted: snapshot.rules.number_of_clusters.clone().unwrap_or_default(),
        filters: filters(&schedule, &snapshot.rules, &context),
        prioritizers: weights.iter().map(WeightedPrioritizer::of).collect(),
        clusters,
        missing: schedule.selection.missing,
        expired: schedule.selection.expired,
        until: schedule.selection.until,
        eligible: schedule.eligible,
        problem: schedule.problem,
        is_frozen: schedule.is_frozen,
        decisions: schedule.decisions,
        groups: schedule.groups,
    }
}

impl Explanation {
    /// How many points a cluster that fits lacks to be selected in place of the last one that is; `None` if it is selected, does
    /// not fit, or none is selected.
    #[must_use]
    pub fn points_needed(&self, cluster: &str) -> Option<i64> {
        let ranked = || {
            self.clusters.iter().filter_map(|one| match one.verdict {
                Verdict::Ranked { sum, rank, is_selected, .. } => Some((&*one.name, sum, rank, is_selected)),
                _ => None,
            })
        };
        let (last, least, ..) =
            ranked().filter(|(.., is_selected)| *is_selected).max_by_key(|(_, _, rank, _)| *rank)?;
        let (_, sum, ..) = ranked().find(|(name, _, _, is_selected)| *name == cluster && !is_selected)?;
        Some(least - sum + i64::from(last < cluster))
    }
}

impl WeightedPrioritizer {
    fn of((prioritizer, weight): &(Prioritizer, i32)) -> Self {
        Self { name: prioritizer.name(), weight: *weight }
    }
}

/// What each filter leaves; nothing is filtered if nothing is decided.
fn filters(schedule: &Schedule<'_>, rules: &Rules, context: &ScheduleContext<'_>) -> Vec<Filtered> {
    let mut left = schedule.candidates.clone();
    let mut filters = Vec::new();
    for (name, filter) in FILTERS.into_iter().filter(|_| !schedule.is_frozen && rules.name.is_none()) {
        let Ok(passed) = pass(filter, rules, left, context) else { break };
        filters.push(Filtered { name, left: passed.iter().map(|one| one.name.clone()).collect() });
        left = passed;
    }
    filters
}

/// The clusters that passed all filters.
fn ranking(
    schedule: &Schedule<'_>,
    weights: &[(Prioritizer, i32)],
    context: &ScheduleContext<'_>,
    rules: &Rules,
) -> HashMap<Name, Verdict> {
    let sums = &schedule.selection.scores;
    let is_fitting = |one: &&Candidate<'_>| sums.binary_search_by(|(name, _)| name.cmp(one.name)).is_ok();
    let fitting: Vec<_> = schedule.candidates.iter().filter(is_fitting).copied().collect();
    let mut scores = vec![Vec::new(); fitting.len()];
    for (prioritizer, _) in weights {
        let inputs = prioritizer.inputs(&fitting, context);
        scores.iter_mut().zip(inputs).for_each(|(scores, input)| scores.push(Score { score: input.score(), input }));
    }
    let chosen = schedule.selection.chosen.len();
    let ranks: HashMap<_, _> =
        ranked(fitting.clone(), sums).into_iter().enumerate().map(|(rank, one)| (one.name.clone(), rank)).collect();
    let verdict = |((one, (name, sum)), scores): ((&Candidate<'_>, &(Name, i64)), Vec<Score>)| {
        let rank = ranks.get(name).copied().unwrap_or_default();
        let (is_selected, sum, rank) = (rank < chosen, *sum, rank + 1);
        let tolerated_until = tolerated_until(rules, one, is_selected, context);
        (name.clone(), Verdict::Ranked { scores, sum, rank, is_selected, tolerated_until })
    };
    fitting.iter().zip(sums).zip(scores).map(verdict).collect()
}

fn tolerated_until(
    rules: &Rules,
    one: &Candidate<'_>,
    is_selected: bool,
    context: &ScheduleContext<'_>,
) -> Option<Timestamp> {
    let is_decided = is_selected || context.has_decided(one.name);
    match rules.tolerations.as_ref().ok()?.tolerate(&one.facts.taints, is_decided, context.now) {
        Until::Then(end) => Some(end),
        Until::Now | Until::Forever => None,
    }
}

/// A cluster that did not pass all filters.
fn unranked(
    schedule: &Schedule<'_>,
    rules: &Rules,
    name: &Name,
    cluster: &Cluster,
    context: &ScheduleContext<'_>,
) -> Verdict {
    if !schedule.eligible.includes(&cluster.sets) {
        return Verdict::NotEligible { sets: cluster.sets.clone(), is_deleting: cluster.is_deleting };
    }
    if schedule.is_frozen {
        return Verdict::Undecided;
    }
    removal(rules, name, cluster, context)
        .map_or(Verdict::Undecided, |(filter, reason)| Verdict::Removed { filter, reason })
}

/// The first filter that removes a cluster; `None` if it passes all or reaches one that is invalid.
fn removal(
    rules: &Rules,
    name: &Name,
    cluster: &Cluster,
    context: &ScheduleContext<'_>,
) -> Option<(&'static str, Reason)> {
    let predicates = rules.predicates.as_ref().ok()?;
    if let Some(mismatches) = predicates.why_not(cluster) {
        return Some((PREDICATE, Reason::Predicates(mismatches)));
    }
    let tolerations = rules.tolerations.as_ref().ok()?;
    let intolerance = tolerations.why_not(&cluster.taints, context.has_decided(name), context.now)?;
    Some((TAINT_TOLERATION, Reason::Taint(intolerance)))
}
