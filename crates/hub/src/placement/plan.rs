//! Plans one placement: its clusters, in which decisions, and its status.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt as _;
use ocm_api::cluster::v1beta1::{DecisionGroupStatus, Placement, PlacementStatus};

use super::{
    eligible::Eligible,
    facts::Name,
    frozen,
    group::{self, DesiredDecision},
    index::{Slices, Snapshot},
    rules::Problem,
    schedule::{self, Candidate, ScheduleContext, Selection},
    status::{StatusInputs, status},
};

/// A placement, and everything that its decision depends on.
#[derive(Debug)]
pub(crate) struct Observed {
    pub(crate) placement: Arc<Placement>,
    pub(crate) snapshot: Snapshot,
}

/// What to write.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan {
    /// The decisions as they should be.
    pub(crate) desired: Vec<DesiredDecision>,
    /// The writes that lead there, in this order.
    pub(crate) steps: Vec<Step>,
    /// The placement's status as it should be.
    pub(crate) status: PlacementStatus,
    /// The scores of all clusters that fit, by name.
    pub(crate) scores: Vec<(Name, i64)>,
    /// When to plan again even if nothing changes.
    pub(crate) requeue_after: Option<SignedDuration>,
}

/// One step towards the desired decisions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Create a decision, and list its clusters.
    Create(DesiredDecision),
    /// List the clusters of a decision.
    List(DesiredDecision),
    /// Set the labels of a decision.
    Label(DesiredDecision),
    /// Delete the decision of this name.
    Delete(String),
}

/// The selected clusters, or what is wrong, and the decisions that follow.
struct Outcome<'a> {
    selection: Selection<'a>,
    problem: Option<Problem>,
    desired: Vec<DesiredDecision>,
    groups: Vec<DecisionGroupStatus>,
}

/// Plans a placement.
pub(crate) fn plan(observed: &Observed, now: Timestamp) -> Plan {
    let Observed { placement, snapshot } = observed;
    let (name, rules) = (placement.name_any(), &snapshot.rules);
    let eligible = Eligible::of(snapshot);
    let candidates = eligible.candidates(snapshot);
    let has_candidates = !candidates.is_empty();
    let is_frozen = rules.refusal.is_some() || eligible.problem.is_some();
    let Outcome { selection, problem, desired, groups } = if is_frozen {
        let (desired, groups) =
            frozen::decisions(&name, snapshot, eligible.problem.is_none().then_some(&candidates[..]));
        Outcome { selection: Selection::default(), problem: rules.refusal.clone(), desired, groups }
    } else {
        decide(&name, snapshot, candidates, now)
    };
    let selected = desired.iter().map(|decision| decision.clusters.len()).sum();
    let inputs = StatusInputs {
        eligible,
        requested_sets: &rules.sets,
        has_candidates,
        selected: if is_frozen { selected } else { selection.chosen.len() },
        missing: selection.missing,
        problem,
        is_frozen,
    };
    Plan {
        steps: steps(&name, &snapshot.slices, &desired),
        status: status(placement, &inputs, groups, now),
        desired,
        requeue_after: selection.until.map(|until| until.duration_since(now)),
        scores: selection.scores,
    }
}

/// Selects clusters, and distributes them over decisions. No cluster is selected for a placement with an invalid spec.
fn decide<'a>(placement: &str, snapshot: &Snapshot, candidates: Vec<Candidate<'a>>, now: Timestamp) -> Outcome<'a> {
    let listed = snapshot.slices.values().filter(|slice| slice.is_of(placement)).flat_map(|slice| &slice.clusters);
    let (decided, own) = (count(listed), count(&snapshot.own));
    let context = ScheduleContext { now, decided: &decided, counts: &snapshot.counts, own: &own };
    let (selection, problem) = match schedule::choose(&snapshot.rules, candidates, &context) {
        Ok(selection) => (selection, snapshot.rules.grouping.problem.clone()),
        Err(problem) => (Selection::default(), Some(problem)),
    };
    let groups = group::split(&snapshot.rules.grouping, &selection.chosen);
    let (desired, groups) = group::slice(placement, &groups);
    Outcome { selection, problem, desired, groups }
}

fn count<'a>(names: impl IntoIterator<Item = &'a Name>) -> HashMap<&'a str, u32> {
    let mut counts = HashMap::new();
    names.into_iter().for_each(|name| *counts.entry(&**name).or_default() += 1);
    counts
}

/// The steps from the existing decisions to the desired ones.
fn steps(placement: &str, slices: &Slices, desired: &[DesiredDecision]) -> Vec<Step> {
    let mut steps = Vec::new();
    for decision in desired {
        let Some(slice) = slices.get(&decision.name) else {
            steps.push(Step::Create(decision.clone()));
            continue;
        };
        if slice.clusters != decision.clusters {
            steps.push(Step::List(decision.clone()));
        }
        if !slice.is_labelled(placement, decision) {
            steps.push(Step::Label(decision.clone()));
        }
    }
    let names: HashSet<_> = desired.iter().map(|decision| decision.name.as_str()).collect();
    let surplus = slices.iter().filter(|(name, slice)| slice.is_of(placement) && !names.contains(name.as_str()));
    steps.extend(surplus.map(|(name, _)| Step::Delete(name.clone())));
    steps
}
