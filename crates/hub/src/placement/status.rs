//! The status of a placement.

use jiff::Timestamp;
use ocm_api::{
    cluster::v1beta1::{DecisionGroupStatus, Placement, PlacementStatus},
    conditions::placement::{MISCONFIGURED, SATISFIED},
    reasons::placement as reasons,
};
use ocm_runtime::conditions::{self, NewCondition};
use ocm_scheduler::{Eligible, Problem, count};

/// What the status of a placement depends on.
#[derive(Clone, Debug, Default)]
pub(crate) struct StatusInputs<'a> {
    /// The sets it may select from.
    pub(crate) eligible: Eligible,
    /// The sets in its spec.
    pub(crate) requested_sets: &'a [String],
    /// Whether the eligible sets have any cluster.
    pub(crate) has_candidates: bool,
    /// How many clusters are selected.
    pub(crate) selected: usize,
    /// How many more are requested.
    pub(crate) missing: usize,
    /// What is wrong with it.
    pub(crate) problem: Option<Problem>,
    /// Which scores of add-ons have expired.
    pub(crate) expired: Option<String>,
}

/// The new status of a placement.
pub(crate) fn status(
    placement: &Placement,
    inputs: &StatusInputs<'_>,
    groups: Vec<DecisionGroupStatus>,
    now: Timestamp,
) -> PlacementStatus {
    let mut status = placement.status.clone().unwrap_or_default();
    status.number_of_selected_clusters = count(inputs.selected);
    status.decision_groups = groups;
    for condition in conditions_of(inputs) {
        conditions::set(&mut status.conditions, condition, None, now);
    }
    status
}

/// The conditions, in their order in the status.
fn conditions_of(inputs: &StatusInputs<'_>) -> [NewCondition; 2] {
    [misconfigured(inputs), satisfied(inputs)]
}

fn misconfigured(inputs: &StatusInputs<'_>) -> NewCondition {
    match &inputs.problem {
        Some(problem) => NewCondition::is_true(MISCONFIGURED, reasons::MISCONFIGURED, problem.clone()),
        None => NewCondition::is_false(MISCONFIGURED, reasons::SUCCEED_CONFIGURED, "The spec is valid"),
    }
}

fn satisfied(inputs: &StatusInputs<'_>) -> NewCondition {
    let StatusInputs { selected, missing, .. } = inputs;
    if let Some(condition) = without_clusters(inputs) {
        return condition;
    }
    let expired = inputs.expired.iter().map(|expired| format!(". {expired}")).collect::<String>();
    match (selected, missing) {
        (0, _) => unsatisfied(reasons::NO_MANAGED_CLUSTER_MATCHED, unmatched(inputs)),
        (_, 0) => NewCondition::is_true(
            SATISFIED,
            reasons::ALL_DECISIONS_SCHEDULED,
            format!("{selected} clusters are selected, as many as requested{expired}"),
        ),
        (_, missing) => unsatisfied(
            reasons::NOT_ALL_DECISIONS_SCHEDULED,
            format!(
                "{selected} clusters are selected, {missing} more are requested: no other cluster meets the predicates and has only \
                 tolerated taints{expired}"
            ),
        ),
    }
}

/// The condition of a placement whose cluster sets leave nothing to select from.
fn without_clusters(inputs: &StatusInputs<'_>) -> Option<NewCondition> {
    let StatusInputs { eligible, requested_sets, .. } = inputs;
    let (reason, message) = if !eligible.any_bound {
        let message = "No ManagedClusterSet is bound to this namespace: create a ManagedClusterSetBinding with the name of \
                       an existing set";
        (reasons::NO_MANAGED_CLUSTER_SET_BINDINGS, message.into())
    } else if eligible.sets.is_empty() {
        let requested = requested_sets.join(", ");
        let message =
            format!("None of the ManagedClusterSets in spec.clusterSets is bound to this namespace: {requested}");
        (reasons::NO_INTERSECTION, message)
    } else if let Some(problem) = &eligible.problem {
        let message = format!("The decisions are not changed until the ManagedClusterSet is corrected: {problem}");
        (reasons::NOT_ALL_DECISIONS_SCHEDULED, message)
    } else if !inputs.has_candidates {
        let message = format!("These ManagedClusterSets have no clusters: {}", eligible.sets.join(", "));
        (reasons::ALL_MANAGED_CLUSTER_SETS_EMPTY, message)
    } else {
        return None;
    };
    Some(unsatisfied(reason, message))
}

fn unsatisfied(reason: &'static str, message: String) -> NewCondition {
    NewCondition::is_false(SATISFIED, reason, message)
}

fn unmatched(inputs: &StatusInputs<'_>) -> String {
    match &inputs.problem {
        Some(_) => format!("No cluster is selected: see condition {MISCONFIGURED}"),
        None => {
            "No cluster of the sets meets the predicates and has only tolerated taints, or spec.numberOfClusters is 0"
                .into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Status and reason of PlacementSatisfied.
    fn satisfied_of(change: impl FnOnce(&mut StatusInputs<'_>)) -> String {
        let eligible = Eligible { any_bound: true, sets: vec!["s".into()], problem: None };
        let mut inputs = StatusInputs { eligible, has_candidates: true, selected: 2, ..StatusInputs::default() };
        change(&mut inputs);
        let [_, satisfied] = conditions_of(&inputs);
        format!("{} {}", satisfied.status, satisfied.reason)
    }

    #[test]
    fn the_first_reason_that_applies_is_reported() {
        assert_eq!(satisfied_of(|_| {}), "True AllDecisionsScheduled");
        assert_eq!(satisfied_of(|inputs| inputs.missing = 1), "False NotAllDecisionsScheduled");
        assert_eq!(satisfied_of(|inputs| inputs.selected = 0), "False NoManagedClusterMatched");
        assert_eq!(satisfied_of(|inputs| inputs.has_candidates = false), "False AllManagedClusterSetsEmpty");
        let broken = |inputs: &mut StatusInputs<'_>| inputs.eligible.problem = Some("x".into());
        assert_eq!(satisfied_of(broken), "False NotAllDecisionsScheduled");
        assert_eq!(satisfied_of(|inputs| inputs.eligible.sets.clear()), "False NoIntersection");
        assert_eq!(satisfied_of(|inputs| inputs.eligible = Eligible::default()), "False NoManagedClusterSetBindings");
    }

    #[test]
    fn a_problem_is_reported_word_for_word() {
        let [fine, _] = conditions_of(&StatusInputs::default());
        assert_eq!((fine.status, fine.reason), ("False", "Succeedconfigured"));
        let [wrong, _] =
            conditions_of(&StatusInputs { problem: Some("spec.x is wrong".into()), ..StatusInputs::default() });
        assert_eq!((wrong.status, wrong.reason, &*wrong.message), ("True", "Misconfigured", "spec.x is wrong"));
    }
}
