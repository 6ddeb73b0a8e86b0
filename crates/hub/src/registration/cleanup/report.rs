//! What condition `Deleting` says, and when to look again.

use std::sync::Arc;

use jiff::Timestamp;
use ocm_api::{cluster::v1::ManagedCluster, conditions::cluster::DELETING, limits, reasons::cluster as reasons};
use ocm_runtime::{Requeue, conditions::NewCondition, error::chain};

use super::{
    apply::{Applied, Outcome},
    observe::RemainingResources,
};
use crate::{
    error::{Error, Result},
    registration::status::set_condition,
};

const DONE: &str = "Nothing that belongs to the cluster is left in its namespace.";

/// The cluster before and after, when its status must change.
pub(super) fn status(applied: &Applied, now: Timestamp) -> Option<(Arc<ManagedCluster>, ManagedCluster)> {
    let old = applied.cluster.clone()?;
    let new = set_condition(&old, condition(&applied.outcome)?, now);
    Some((old, new))
}

fn condition(outcome: &Outcome) -> Option<NewCondition> {
    match outcome {
        Outcome::Nothing => None,
        Outcome::Failed(error) if error.is_conflict() => None,
        Outcome::Remaining(remaining) => {
            Some(NewCondition::is_false(DELETING, reasons::RESOURCE_REMAINING, message(remaining)))
        }
        Outcome::Failed(error) => Some(NewCondition::is_false(DELETING, reasons::DELETING_ERROR, failed(error))),
        Outcome::Done => Some(NewCondition::is_true(DELETING, reasons::NO_RESOURCE, DONE)),
    }
}

fn message(remaining: &RemainingResources) -> String {
    let held = remaining.items.iter().filter(|item| item.has_finalizer).count();
    format!(
        "Waiting for {} {} in the cluster's namespace to go; {held} of them {} by finalizers.",
        remaining.items.len(),
        remaining.resource.resource,
        if held == 1 { "is held" } else { "are held" }
    )
}

fn failed(error: &Error) -> String {
    format!("The cluster's resources could not be deleted: {}. The hub keeps trying.", chain(error))
}

/// When to look again. An error that the condition reports is still an error.
pub(super) fn next(applied: Applied) -> Result<Requeue> {
    match applied.outcome {
        Outcome::Remaining(_) => Ok(Requeue::After(limits::CLUSTER_DELETION_RECHECK)),
        Outcome::Failed(error) => Err(error.into()),
        Outcome::Nothing | Outcome::Done => Ok(Requeue::OnChange),
    }
}
