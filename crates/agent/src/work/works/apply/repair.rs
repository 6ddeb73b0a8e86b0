//! Applying the copy of a work while the hub is away.
//!
//! A copy does not say whether it is the newest version of its work. The record (AppliedManifestWork) does say what the agent
//! has applied and not deleted, so only objects that it lists are applied. What it does not list was taken out of the work and
//! deleted, or was never created: it waits for the hub. So repairing adds no object to those that the record lists, and when
//! the hub is back each of them is applied as it is now in the work, or deleted if it is no longer in the work.

use std::collections::HashSet;

use super::{ApplyPlan, Observed, Outcome, Works, apply_objects};
use crate::work::{identifier, works::resolve::ResolvedManifest};

/// What came of applying a copy.
#[derive(Debug, Default)]
pub(in crate::work) struct Repaired {
    /// What happened to each object that was applied.
    pub outcomes: Vec<Outcome>,
    /// The number of objects that the record does not list.
    pub left_out: usize,
}

/// Applies the objects of a copy that the record lists. Nothing is deleted, recorded or reported.
pub(in crate::work::works) async fn repair(controller: &Works, observed: &Observed, plan: &ApplyPlan) -> Repaired {
    let Some(record) = observed.applied_work.as_deref() else { return Repaired::default() };
    let order = listed(observed, plan);
    let outcomes = apply_objects(controller, observed, record, &order, &plan.recorded).await;
    Repaired { outcomes, left_out: plan.order.len() - order.len() }
}

/// The manifests to apply. Those that cannot be resolved are among them: nothing is written for them, and their outcome says
/// when to retry.
fn listed(observed: &Observed, plan: &ApplyPlan) -> Vec<usize> {
    let recorded: HashSet<_> = plan.recorded.iter().map(identifier::of_recorded).collect();
    let is_listed = |manifest: &ResolvedManifest| manifest.target.is_err() || recorded.contains(&manifest.identifier());
    let of_plan = plan.order.iter().copied();
    of_plan.filter(|index| observed.manifests.get(*index).is_some_and(is_listed)).collect()
}
