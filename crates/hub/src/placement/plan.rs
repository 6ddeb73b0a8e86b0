//! Plans one placement: its clusters, in which decisions, and its status.

use std::{collections::HashSet, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt as _;
use ocm_api::cluster::v1beta1::{Placement, PlacementStatus};
use ocm_scheduler::{self as scheduler, DesiredDecision, Name, Schedule, schedule_in_steps};

use super::{
    frozen,
    index::{Slices, Snapshot},
    status::{StatusInputs, status},
};

/// How many expired scores are named.
const MAX_EXPIRED: usize = 5;

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
    /// Which scores of add-ons count as 0 since they have expired, for messages.
    pub(crate) expired: Option<String>,
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

/// Plans a placement. Calls `ended` at the end of each step of the decision.
pub(crate) fn plan(observed: &Observed, now: Timestamp, ended: &mut dyn FnMut(scheduler::Step<'_>)) -> Plan {
    let Observed { placement, snapshot } = observed;
    let name = placement.name_any();
    let mut schedule = schedule_in_steps(&snapshot.inputs, now, ended);
    let mut selected = schedule.selection.chosen.len();
    if schedule.is_frozen {
        (schedule.decisions, schedule.groups) = frozen::decisions(&name, snapshot);
        selected = schedule.decisions.iter().map(|decision| decision.clusters.len()).sum();
    }
    let Schedule { eligible, candidates, selection, problem, decisions, groups, .. } = schedule;
    let inputs = StatusInputs {
        eligible,
        requested_sets: &snapshot.inputs.rules.sets,
        has_candidates: !candidates.is_empty(),
        selected,
        missing: selection.missing,
        problem,
        expired: expired(&selection.expired),
    };
    Plan {
        expired: inputs.expired.clone(),
        steps: steps(&name, &snapshot.slices, &decisions),
        status: status(placement, &inputs, groups, now),
        desired: decisions,
        requeue_after: selection.until.map(|until| until.duration_since(now)),
        scores: selection.scores,
    }
}

/// Names the first scores that have expired.
fn expired(scores: &[(Name, String)]) -> Option<String> {
    let mut names: Vec<_> = scores.iter().map(|(cluster, name)| format!("{cluster}/{name}")).collect();
    names.sort_unstable();
    names.dedup();
    let more = names.len().saturating_sub(MAX_EXPIRED);
    names.truncate(MAX_EXPIRED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!names.is_empty())
        .then(|| format!("These AddOnPlacementScores have expired and count as 0: {}{more}", names.join(", ")))
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
