//! What the status of a placement says.

use jiff::Timestamp;
use ocm_api::{
    cluster::v1beta1::{DecisionGroupStatus, Placement, PlacementStatus},
    conditions::placement::{MISCONFIGURED, SATISFIED},
    reasons::placement as reasons,
};
use ocm_runtime::conditions::{self, NewCondition};

use super::{eligible::Eligible, group, rules::Problem};

/// What a placement came to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Standing<'a> {
    /// The sets it may choose from.
    pub(crate) eligible: Eligible,
    /// The sets it asks for.
    pub(crate) asked: &'a [String],
    /// Whether those sets have any cluster.
    pub(crate) has_candidates: bool,
    /// How many clusters are chosen.
    pub(crate) selected: usize,
    /// How many more are wanted.
    pub(crate) missing: usize,
    /// What is wrong with it.
    pub(crate) problem: Option<Problem>,
    /// Whether its decisions stay as they are because of that.
    pub(crate) is_held: bool,
}

/// The new status of a placement.
pub(crate) fn status(
    placement: &Placement,
    standing: &Standing<'_>,
    groups: Vec<DecisionGroupStatus>,
    now: Timestamp,
) -> PlacementStatus {
    let mut status = placement.status.clone().unwrap_or_default();
    status.number_of_selected_clusters = group::count(standing.selected);
    status.decision_groups = groups;
    for finding in findings(standing) {
        conditions::set(&mut status.conditions, finding, None, now);
    }
    status
}

/// The conditions, in the order in which they are to stand.
fn findings(standing: &Standing<'_>) -> [NewCondition; 2] {
    [misconfigured(standing), satisfied(standing)]
}

fn misconfigured(standing: &Standing<'_>) -> NewCondition {
    match &standing.problem {
        Some(problem) => NewCondition::is_true(MISCONFIGURED, reasons::MISCONFIGURED, problem.clone()),
        None => NewCondition::is_false(MISCONFIGURED, reasons::SUCCEED_CONFIGURED, "The spec is valid"),
    }
}

fn satisfied(standing: &Standing<'_>) -> NewCondition {
    let not = |reason, message: String| NewCondition::is_false(SATISFIED, reason, message);
    let Standing { eligible, selected, missing, .. } = standing;
    if !eligible.any_bound {
        let message = "No ManagedClusterSet is bound to this namespace: create a ManagedClusterSetBinding with the name of \
                       an existing set";
        return not(reasons::NO_MANAGED_CLUSTER_SET_BINDINGS, message.into());
    }
    if eligible.sets.is_empty() {
        let asked = standing.asked.join(", ");
        let message = format!("None of the ManagedClusterSets in spec.clusterSets is bound to this namespace: {asked}");
        return not(reasons::NO_INTERSECTION, message);
    }
    if let Some(problem) = &eligible.problem {
        let message = format!("The decisions stay as they are until the set is put right: {problem}");
        return not(reasons::NOT_ALL_DECISIONS_SCHEDULED, message);
    }
    if !standing.has_candidates {
        let sets = eligible.sets.join(", ");
        return not(
            reasons::ALL_MANAGED_CLUSTER_SETS_EMPTY,
            format!("These ManagedClusterSets have no cluster: {sets}"),
        );
    }
    match (selected, missing, standing.is_held) {
        (0, _, _) => not(reasons::NO_MANAGED_CLUSTER_MATCHED, unmatched(standing)),
        (_, _, true) => {
            let message = format!("The {selected} decided clusters stay as they are: see condition {MISCONFIGURED}");
            not(reasons::NOT_ALL_DECISIONS_SCHEDULED, message)
        }
        (_, 0, false) => {
            let message = format!("{selected} clusters are chosen, as many as are wanted");
            NewCondition::is_true(SATISFIED, reasons::ALL_DECISIONS_SCHEDULED, message)
        }
        (_, missing, false) => {
            let message = format!("{selected} clusters are chosen, {missing} more are wanted: no other cluster fits");
            not(reasons::NOT_ALL_DECISIONS_SCHEDULED, message)
        }
    }
}

fn unmatched(standing: &Standing<'_>) -> String {
    match &standing.problem {
        Some(_) => format!("No cluster is chosen: see condition {MISCONFIGURED}"),
        None => "No cluster of the sets meets the predicates and has only taints that are tolerated, or none is wanted"
            .into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Status and reason of PlacementSatisfied.
    fn said(change: impl FnOnce(&mut Standing<'_>)) -> String {
        let eligible = Eligible { any_bound: true, sets: vec!["s".into()], problem: None };
        let mut standing = Standing { eligible, has_candidates: true, selected: 2, ..Standing::default() };
        change(&mut standing);
        let [_, satisfied] = findings(&standing);
        format!("{} {}", satisfied.status, satisfied.reason)
    }

    #[test]
    fn the_first_reason_that_applies_is_told() {
        assert_eq!(said(|_| {}), "True AllDecisionsScheduled");
        assert_eq!(said(|standing| standing.missing = 1), "False NotAllDecisionsScheduled");
        assert_eq!(said(|standing| standing.selected = 0), "False NoManagedClusterMatched");
        assert_eq!(said(|standing| standing.is_held = true), "False NotAllDecisionsScheduled");
        assert_eq!(said(|standing| standing.has_candidates = false), "False AllManagedClusterSetsEmpty");
        let broken = |standing: &mut Standing<'_>| standing.eligible.problem = Some("x".into());
        assert_eq!(said(broken), "False NotAllDecisionsScheduled");
        assert_eq!(said(|standing| standing.eligible.sets.clear()), "False NoIntersection");
        assert_eq!(said(|standing| standing.eligible = Eligible::default()), "False NoManagedClusterSetBindings");
    }

    #[test]
    fn a_problem_is_told_word_for_word() {
        let [fine, _] = findings(&Standing::default());
        assert_eq!((fine.status, fine.reason), ("False", "Succeedconfigured"));
        let [wrong, _] = findings(&Standing { problem: Some("spec.x is wrong".into()), ..Standing::default() });
        assert_eq!((wrong.status, wrong.reason, &*wrong.message), ("True", "Misconfigured", "spec.x is wrong"));
    }
}
