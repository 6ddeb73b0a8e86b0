//! Condition `Deleting`, and the requeue.

use std::sync::Arc;

use jiff::Timestamp;
use ocm_api::{cluster::v1::ManagedCluster, conditions::cluster::DELETING, limits, reasons::cluster as reasons};
use ocm_runtime::{
    Requeue,
    conditions::NewCondition,
    error::{all, chain},
};

use super::{
    apply::{Applied, Outcome},
    observe::RemainingResources,
};
use crate::{
    error::{Error, Result},
    registration::status::set_condition,
};

/// How many errors a condition names.
const MOST_CAUSES: usize = 5;

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
        Outcome::Failed(errors) if errors.iter().all(|error| error.is_conflict()) => None,
        Outcome::Remaining(remaining) => {
            Some(NewCondition::is_false(DELETING, reasons::RESOURCE_REMAINING, message(remaining)))
        }
        Outcome::Failed(errors) => Some(NewCondition::is_false(DELETING, reasons::DELETING_ERROR, failed(errors))),
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

/// Names some of the causes; a condition's message is limited.
fn failed(errors: &[Arc<Error>]) -> String {
    let causes: Vec<_> =
        errors.iter().filter(|error| !error.is_conflict()).map(|error| chain(error.as_ref())).collect();
    let named = causes.iter().take(MOST_CAUSES).map(String::as_str).collect::<Vec<_>>().join("; ");
    let more = match causes.len().saturating_sub(MOST_CAUSES) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    format!("The cluster's resources could not be deleted: {named}{more}. The hub keeps trying.")
}

/// The requeue. An error that the condition reports is still an error.
pub(super) fn next(applied: Applied) -> Result<Requeue> {
    match applied.outcome {
        Outcome::Remaining(_) => Ok(Requeue::After(limits::CLUSTER_DELETION_RECHECK)),
        Outcome::Failed(errors) => {
            all(errors.into_iter().map(|error| Err(Error::from(error)))).map(|()| Requeue::OnChange)
        }
        Outcome::Nothing | Outcome::Done => Ok(Requeue::OnChange),
    }
}
