//! Selects clusters among the candidates: filters leave those that fit, prioritizers score them, and the best are selected.

mod prioritizers;

use std::{cmp::Reverse, collections::HashMap, sync::Arc};

use jiff::Timestamp;

pub(crate) use self::prioritizers::Prioritizer;
use super::{
    facts::{Cluster, Name},
    rules::{Problem, Rules, Tolerations, Until},
};

/// How many decisions list each cluster.
pub(crate) type ClusterCounts = HashMap<Name, u32>;

/// A cluster that may be selected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Candidate<'a> {
    pub(crate) name: &'a Name,
    pub(crate) facts: &'a Arc<Cluster>,
}

/// What scheduling depends on, except the clusters themselves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScheduleContext<'a> {
    pub(crate) now: Timestamp,
    /// The clusters that the placement's decisions list, each with how often.
    pub(crate) decided: &'a HashMap<&'a str, u32>,
    /// How many decisions of all placements list each cluster, this one's `own` included.
    pub(crate) counts: &'a ClusterCounts,
    /// What is counted for this placement.
    pub(crate) own: &'a HashMap<&'a str, u32>,
}

impl ScheduleContext<'_> {
    fn has_decided(&self, cluster: &str) -> bool {
        self.decided.contains_key(cluster)
    }
}

/// The selected clusters.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Selection<'a> {
    /// The best, in this order.
    pub(crate) chosen: Vec<Candidate<'a>>,
    /// How many more are wanted.
    pub(crate) missing: usize,
    /// The scores of all that fit, by name.
    pub(crate) scores: Vec<(Name, i64)>,
    /// When the first toleration of a selected cluster ends.
    pub(crate) until: Option<Timestamp>,
}

/// Selects among the candidates, which are sorted by name.
///
/// # Errors
/// What is wrong with the placement; no cluster is selected then.
pub(crate) fn choose<'a>(
    rules: &Rules,
    candidates: Vec<Candidate<'a>>,
    context: &ScheduleContext<'_>,
) -> Result<Selection<'a>, Problem> {
    let fitting = filter(rules, candidates, context)?;
    let weights = rules.weights.as_ref().map_err(Clone::clone)?;
    let wanted = rules.number_of_clusters.clone()?;
    let mut scores = vec![0; fitting.len()];
    for (prioritizer, weight) in &weights.0 {
        let more = prioritizer.scores(&fitting, context);
        scores.iter_mut().zip(more).for_each(|(sum, score)| *sum += i64::from(*weight) * score);
    }
    let scored: Vec<_> = fitting.iter().zip(scores).map(|(one, score)| (one.name.clone(), score)).collect();
    let chosen = best(fitting, &scored, wanted);
    let missing = wanted.map_or(0, |wanted| wanted - chosen.len());
    Ok(Selection { until: end_of_tolerance(rules, &chosen, context), chosen, missing, scores: scored })
}

/// Whether a cluster passes all filters, or reaches one that is invalid: the status reports that as soon as a cluster reaches
/// it. (Every candidate reaches the predicates.)
pub(crate) fn fits(rules: &Rules, cluster: &Cluster, is_decided: bool, now: Timestamp) -> bool {
    let is_tolerated = |tolerations: &Tolerations| tolerations.tolerate(&cluster.taints, is_decided, now) != Until::Now;
    rules.predicates.as_ref().is_ok_and(|predicates| predicates.admit(cluster))
        && rules.tolerations.as_ref().map_or(true, is_tolerated)
}

/// One filter after the other. Without clusters to filter, an invalid filter is not reported, as in OCM.
fn filter<'a>(
    rules: &Rules,
    mut candidates: Vec<Candidate<'a>>,
    context: &ScheduleContext<'_>,
) -> Result<Vec<Candidate<'a>>, Problem> {
    if !candidates.is_empty() {
        let predicates = rules.predicates.as_ref().map_err(Clone::clone)?;
        candidates.retain(|one| predicates.admit(one.facts));
    }
    if !candidates.is_empty() {
        let tolerations = rules.tolerations.as_ref().map_err(Clone::clone)?;
        let is_tolerated = |one: &Candidate<'_>| {
            tolerations.tolerate(&one.facts.taints, context.has_decided(one.name), context.now) != Until::Now
        };
        candidates.retain(is_tolerated);
    }
    Ok(candidates)
}

/// As many as are wanted, by descending score and then by name.
fn best<'a>(fitting: Vec<Candidate<'a>>, scores: &[(Name, i64)], wanted: Option<usize>) -> Vec<Candidate<'a>> {
    let mut ranked: Vec<_> = fitting.into_iter().zip(scores.iter().map(|(_, score)| *score)).collect();
    ranked.sort_by_key(|(_, score)| Reverse(*score));
    ranked.truncate(wanted.unwrap_or(usize::MAX));
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
