//! Which of the candidates are chosen: filters leave those that fit, prioritizers score them, the best are taken.

mod prioritizers;

use std::{cmp::Reverse, collections::HashMap, sync::Arc};

use jiff::Timestamp;

pub(crate) use self::prioritizers::Prioritizer;
use super::{
    facts::{Cluster, Name},
    rules::{Problem, Rules, Tolerations, Until},
};

/// How often each cluster is chosen.
pub(crate) type Tally = HashMap<Name, u32>;

/// A cluster that may be chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Candidate<'a> {
    pub(crate) name: &'a Name,
    pub(crate) facts: &'a Arc<Cluster>,
}

/// What counts besides the clusters themselves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Situation<'a> {
    pub(crate) now: Timestamp,
    /// The clusters that the placement's decisions list, each with how often.
    pub(crate) decided: &'a HashMap<&'a str, u32>,
    /// How often each cluster is chosen by all placements, this one's `claims` included.
    pub(crate) tally: &'a Tally,
    /// What this placement adds to the tally.
    pub(crate) claims: &'a HashMap<&'a str, u32>,
}

impl Situation<'_> {
    fn has_decided(&self, cluster: &str) -> bool {
        self.decided.contains_key(cluster)
    }
}

/// What was chosen.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Choice<'a> {
    /// The best, in this order.
    pub(crate) chosen: Vec<Candidate<'a>>,
    /// How many more are wanted.
    pub(crate) missing: usize,
    /// The scores of all that fit, by name.
    pub(crate) scores: Vec<(Name, i64)>,
    /// When the first toleration of a chosen cluster ends.
    pub(crate) until: Option<Timestamp>,
}

/// Chooses among the candidates, which come by name.
///
/// # Errors
/// What is wrong with the placement; nothing is chosen then.
pub(crate) fn choose<'a>(
    rules: &Rules,
    candidates: Vec<Candidate<'a>>,
    situation: &Situation<'_>,
) -> Result<Choice<'a>, Problem> {
    let fitting = filter(rules, candidates, situation)?;
    let weights = rules.weights.as_ref().map_err(Clone::clone)?;
    let wanted = rules.wanted.clone()?;
    let mut scores = vec![0; fitting.len()];
    for (prioritizer, weight) in &weights.0 {
        let more = prioritizer.scores(&fitting, situation);
        scores.iter_mut().zip(more).for_each(|(sum, score)| *sum += i64::from(*weight) * score);
    }
    let scored: Vec<_> = fitting.iter().zip(scores).map(|(one, score)| (one.name.clone(), score)).collect();
    let chosen = best(fitting, &scored, wanted);
    let missing = wanted.map_or(0, |wanted| wanted - chosen.len());
    Ok(Choice { until: end_of_tolerance(rules, &chosen, situation), chosen, missing, scores: scored })
}

/// Whether a cluster passes all filters, or comes as far as one that is wrong: that is told as soon as a cluster does.
/// (Every candidate comes as far as the predicates.)
pub(crate) fn fits(rules: &Rules, cluster: &Cluster, is_decided: bool, now: Timestamp) -> bool {
    let is_tolerated = |tolerations: &Tolerations| tolerations.tolerate(&cluster.taints, is_decided, now) != Until::Now;
    rules.predicates.as_ref().is_ok_and(|predicates| predicates.admit(cluster))
        && rules.tolerations.as_ref().map_or(true, is_tolerated)
}

/// One filter after the other. Without anything to filter, nobody notices what is wrong with one, as in OCM.
fn filter<'a>(
    rules: &Rules,
    mut candidates: Vec<Candidate<'a>>,
    situation: &Situation<'_>,
) -> Result<Vec<Candidate<'a>>, Problem> {
    if !candidates.is_empty() {
        let predicates = rules.predicates.as_ref().map_err(Clone::clone)?;
        candidates.retain(|one| predicates.admit(one.facts));
    }
    if !candidates.is_empty() {
        let tolerations = rules.tolerations.as_ref().map_err(Clone::clone)?;
        let is_tolerated = |one: &Candidate<'_>| {
            tolerations.tolerate(&one.facts.taints, situation.has_decided(one.name), situation.now) != Until::Now
        };
        candidates.retain(is_tolerated);
    }
    Ok(candidates)
}

/// As many as are wanted, the highest score first and of equal ones by name, which is how they come.
fn best<'a>(fitting: Vec<Candidate<'a>>, scores: &[(Name, i64)], wanted: Option<usize>) -> Vec<Candidate<'a>> {
    let mut ranked: Vec<_> = fitting.into_iter().zip(scores.iter().map(|(_, score)| *score)).collect();
    ranked.sort_by_key(|(_, score)| Reverse(*score));
    ranked.truncate(wanted.unwrap_or(usize::MAX));
    ranked.into_iter().map(|(candidate, _)| candidate).collect()
}

fn end_of_tolerance(rules: &Rules, chosen: &[Candidate<'_>], situation: &Situation<'_>) -> Option<Timestamp> {
    let tolerations = rules.tolerations.as_ref().ok().filter(|tolerations| tolerations.may_expire())?;
    let untils = chosen.iter().map(|one| tolerations.tolerate(&one.facts.taints, true, situation.now));
    match untils.fold(Until::Forever, Until::earlier) {
        Until::Then(end) => Some(end),
        Until::Now | Until::Forever => None,
    }
}
