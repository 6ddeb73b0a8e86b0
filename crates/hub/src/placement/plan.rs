//! Plans one placement: its clusters, in which decisions, and its status.

use std::{collections::HashSet, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt as _;
use ocm_api::cluster::v1beta1::{Placement, PlacementStatus};
use ocm_scheduler::{DesiredDecision, Name, Schedule, schedule};

use super::{
    frozen,
    index::{Slices, Snapshot},
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

/// Plans a placement.
pub(crate) fn plan(observed: &Observed, now: Timestamp) -> Plan {
    let Observed { placement, snapshot } = observed;
    let name = placement.name_any();
    let mut schedule = schedule(&snapshot.inputs, now);
    let mut selected = schedule.selection.chosen.len();
    if schedule.is_frozen {
        freeze(&name, snapshot, &mut schedule);
        selected = schedule.decisions.iter().map(|decision| decision.clusters.len()).sum();
    }
    let Schedule { eligible, candidates, is_frozen, selection, problem, decisions, groups } = schedule;
    let inputs = StatusInputs {
        eligible,
        requested_sets: &snapshot.inputs.rules.sets,
        has_candidates: !candidates.is_empty(),
        selected,
        missing: selection.missing,
        problem,
        is_frozen,
    };
    Plan {
        steps: steps(&name, &snapshot.slices, &decisions),
        status: status(placement, &inputs, groups, now),
        desired: decisions,
        requeue_after: selection.until.map(|until| until.duration_since(now)),
        scores: selection.scores,
    }
}

/// The decisions stay as they are.
fn freeze(name: &str, snapshot: &Snapshot, schedule: &mut Schedule<'_>) {
    let candidates = schedule.eligible.problem.is_none().then_some(&schedule.candidates[..]);
    (schedule.decisions, schedule.groups) = frozen::decisions(name, snapshot, candidates);
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
