//! Selects clusters among the candidates: filters leave those that fit, prioritizers score them, and the best are selected.

mod prioritizers;

use std::{cmp::Reverse, collections::HashMap, sync::Arc};

use jiff::Timestamp;
use ocm_api::cluster::v1beta1::DecisionGroupStatus;

pub use self::prioritizers::{Input, Prioritizer};
use crate::{
    eligible::Eligible,
    facts::{Cluster, Name},
    group::{self, DesiredDecision},
    rules::{Problem, Rules, Until},
    snapshot::Snapshot,
};

/// How many decisions list each cluster.
pub type ClusterCounts = HashMap<Name, u32>;

/// A cluster that may be selected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate<'a> {
    /// Its name.
    pub name: &'a Name,
    /// What is known of it.
    pub facts: &'a Arc<Cluster>,
}

/// What is decided on a placement.
#[derive(Clone, Debug)]
pub struct Schedule<'a> {
    /// The sets that it may select from.
    pub eligible: Eligible,
    /// The clusters of these sets, by name.
    pub candidates: Vec<Candidate<'a>>,
    /// Whether its decisions stay as they are, since it is not known what they should be. Nothing is selected then.
    pub is_frozen: bool,
    /// The selected clusters.
    pub selection: Selection<'a>,
    /// What is wrong with the placement.
    pub problem: Option<Problem>,
    /// The decisions that list the selected clusters.
    pub decisions: Vec<DesiredDecision>,
    /// The groups of these decisions.
    pub groups: Vec<DecisionGroupStatus>,
}

/// What scheduling depends on, except the clusters themselves.
#[derive(Clone, Debug)]
pub(crate) struct ScheduleContext<'a> {
    pub(crate) now: Timestamp,
    /// The clusters that the placement's decisions list, each with how often.
    pub(crate) decided: HashMap<&'a str, u32>,
    /// How many decisions of all placements list each cluster, this one's `own` included.
    pub(crate) counts: &'a ClusterCounts,
    /// What is counted for this placement.
    pub(crate) own: HashMap<&'a str, u32>,
}

impl<'a> ScheduleContext<'a> {
    pub(crate) fn of(snapshot: &'a Snapshot, now: Timestamp) -> Self {
        let (decided, own) = (count(snapshot.decided.values().flatten()), count(&snapshot.own));
        Self { now, decided, counts: &snapshot.counts, own }
    }

    pub(crate) fn has_decided(&self, cluster: &str) -> bool {
        self.decided.contains_key(cluster)
    }
}

fn count<'a>(names: impl IntoIterator<Item = &'a Name>) -> HashMap<&'a str, u32> {
    let mut counts = HashMap::new();
    names.into_iter().for_each(|name| *counts.entry(&**name).or_default() += 1);
    counts
}

/// The selected clusters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection<'a> {
    /// The best, in this order.
    pub chosen: Vec<Candidate<'a>>,
    /// How many more are wanted.
    pub missing: usize,
    /// The scores of all that fit, by name.
    pub scores: Vec<(Name, i64)>,
    /// The scores of add-ons that no longer count, each as the name of a cluster and of its AddOnPlacementScore.
    pub expired: Vec<(Name, String)>,
    /// When to decide again even if nothing changes: the first toleration of a selected cluster ends, or the first score of
    /// an add-on expires.
    pub until: Option<Timestamp>,
}

/// A part of a decision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step<'a> {
    /// A filter of this name was applied to all candidates.
    Filter(&'static str),
    /// A prioritizer has scored all clusters that fit.
    Prioritizer(&'a Prioritizer),
}

/// Selects clusters for a placement, and distributes them over decisions. No cluster is selected if the spec is invalid.
#[must_use]
pub fn schedule(snapshot: &Snapshot, now: Timestamp) -> Schedule<'_> {
    schedule_in_steps(snapshot, now, &mut |_| {})
}

/// Like [`schedule`]. Calls `ended` at the end of each step, so that a caller that has a clock can measure the steps.
#[must_use]
pub fn schedule_in_steps<'a>(snapshot: &'a Snapshot, now: Timestamp, ended: &mut dyn FnMut(Step<'_>)) -> Schedule<'a> {
    let rules = &snapshot.rules;
    let eligible = Eligible::of(snapshot);
    let candidates = eligible.candidates(snapshot);
    let (is_frozen, name) = (eligible.problem.is_some() && rules.name.is_none(), rules.name.clone());
    if is_frozen || name.is_some() {
        let selection = Selection::default();
        return Schedule {
            eligible,
            candidates,
            is_frozen,
            selection,
            problem: name,
            decisions: vec![],
            groups: vec![],
        };
    }
    let (selection, problem) = match choose(rules, &candidates, &ScheduleContext::of(snapshot, now), ended) {
        Ok(selection) => (selection, rules.grouping.problem.clone()),
        Err(problem) => (Selection::default(), Some(problem)),
    };
    let (decisions, groups) =
        group::slice(&snapshot.placement, &group::split(&rules.grouping, &selection.chosen), &snapshot.decided);
    Schedule { eligible, candidates, is_frozen, selection, problem, decisions, groups }
}

/// Selects among the candidates, which are sorted by name.
///
/// # Errors
/// What is wrong with the placement; no cluster is selected then.
fn choose<'a>(
    rules: &Rules,
    candidates: &[Candidate<'a>],
    context: &ScheduleContext<'_>,
    ended: &mut dyn FnMut(Step<'_>),
) -> Result<Selection<'a>, Problem> {
    let fitting = filter(rules, candidates, context, ended)?;
    let weights = rules.weights.as_ref().map_err(Clone::clone)?;
    let wanted = rules.number_of_clusters.clone()?;
    let mut scores = vec![0; fitting.len()];
    let (mut expired, mut until) = (Vec::new(), None);
    for (prioritizer, weight) in &weights.0 {
        let inputs = prioritizer.inputs(&fitting, context);
        expired.extend(prioritizer.expired(&fitting, &inputs));
        until = earlier(until, prioritizer.expires(&fitting, context.now));
        scores.iter_mut().zip(inputs).for_each(|(sum, input)| *sum += i64::from(*weight) * input.score());
        ended(Step::Prioritizer(prioritizer));
    }
    let scored: Vec<_> = fitting.iter().zip(scores).map(|(one, score)| (one.name.clone(), score)).collect();
    let mut chosen = ranked(fitting, &scored);
    chosen.truncate(wanted.unwrap_or(usize::MAX));
    let missing = wanted.map_or(0, |wanted| wanted - chosen.len());
    let until = earlier(until, end_of_tolerance(rules, &chosen, context));
    Ok(Selection { chosen, missing, scores: scored, expired, until })
}

fn earlier(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    [one, other].into_iter().flatten().min()
}

/// Whether a cluster passes all filters, or reaches one that is invalid: the status reports that as soon as a cluster reaches
/// it. (Every candidate reaches the predicates.) `None` if that would take long to know.
#[must_use]
pub fn fits(rules: &Rules, cluster: &Cluster, is_decided: bool, now: Timestamp) -> Option<bool> {
    let is_tolerated =
        || rules.tolerations.as_ref().map_or(true, |tolerations| tolerations.admits(&cluster.taints, is_decided, now));
    match &rules.predicates {
        Ok(predicates) if is_tolerated() => predicates.admits_at_once(cluster),
        Ok(_) | Err(_) => Some(false),
    }
}

/// The filters by name, in their order.
pub(crate) const FILTERS: [(&str, Filter); 2] =
    [(PREDICATE, meeting_predicates), (TAINT_TOLERATION, with_tolerated_taints)];
/// The names of the filters, as in OCM.
pub(crate) const PREDICATE: &str = "Predicate";
pub(crate) const TAINT_TOLERATION: &str = "TaintToleration";

/// Leaves the clusters that pass; an error if the filter is invalid.
type Filter = for<'a> fn(&Rules, Vec<Candidate<'a>>, &ScheduleContext<'_>) -> Result<Vec<Candidate<'a>>, Problem>;

/// One filter after the other.
fn filter<'a>(
    rules: &Rules,
    candidates: &[Candidate<'a>],
    context: &ScheduleContext<'_>,
    ended: &mut dyn FnMut(Step<'_>),
) -> Result<Vec<Candidate<'a>>, Problem> {
    FILTERS.iter().try_fold(candidates.to_vec(), |left, (name, filter)| {
        let passed = pass(*filter, rules, left, context);
        ended(Step::Filter(name));
        passed
    })
}

/// Without clusters to filter, an invalid filter is not reported, as in OCM.
pub(crate) fn pass<'a>(
    filter: Filter,
    rules: &Rules,
    candidates: Vec<Candidate<'a>>,
    context: &ScheduleContext<'_>,
) -> Result<Vec<Candidate<'a>>, Problem> {
    if candidates.is_empty() { Ok(candidates) } else { filter(rules, candidates, context) }
}

fn meeting_predicates<'a>(
    rules: &Rules,
    mut candidates: Vec<Candidate<'a>>,
    _: &ScheduleContext<'_>,
) -> Result<Vec<Candidate<'a>>, Problem> {
    let predicates = rules.predicates.as_ref().map_err(Clone::clone)?;
    candidates.retain(|one| predicates.admits(one.facts));
    Ok(candidates)
}

fn with_tolerated_taints<'a>(
    rules: &Rules,
    mut candidates: Vec<Candidate<'a>>,
    context: &ScheduleContext<'_>,
) -> Result<Vec<Candidate<'a>>, Problem> {
    let tolerations = rules.tolerations.as_ref().map_err(Clone::clone)?;
    candidates.retain(|one| tolerations.admits(&one.facts.taints, context.has_decided(one.name), context.now));
    Ok(candidates)
}

/// By descending score, and then by name.
pub(crate) fn ranked<'a>(fitting: Vec<Candidate<'a>>, scores: &[(Name, i64)]) -> Vec<Candidate<'a>> {
    let mut ranked: Vec<_> = fitting.into_iter().zip(scores.iter().map(|(_, score)| *score)).collect();
    ranked.sort_by_key(|(_, score)| Reverse(*score));
    ranked.into_iter().map(|(candidate, _)| candidate).collect()
}

fn end_of_tolerance(rules: &Rules, chosen: &[Candidate<'_>], context: &ScheduleContext<'_>) -> Option<Timestamp> {
    let tolerations = rules.tolerations.as_ref().ok().filter(|tolerations| tolerations.may_expire())?;
    let untils = chosen.iter().map(|one| tolerations.tolerate(&one.facts.taints, true, context.now));
    match untils.fold(Until::Forever, Until::earlier) {
        Until::Then(end) => Some(end),
        Until::Now | Until::Forever => None,
    }
}
