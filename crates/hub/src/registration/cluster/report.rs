//! Condition `HubAcceptedManagedCluster`, condition `Deleting` of a cluster that the hub cannot clean up, and the requeue.

use std::sync::Arc;

use jiff::Timestamp;
use ocm_api::{
    cluster::v1::ManagedCluster,
    conditions::cluster::{DELETING, HUB_ACCEPTED},
    limits,
    reasons::cluster as reasons,
};
use ocm_runtime::{Class, Classified as _, Requeue, conditions::NewCondition, error::chain};

use super::{apply::Applied, observe::Phase, plan::WaitReason};
use crate::{
    error::{Error, Result},
    registration::status::{is_reported, set_condition},
};

const ACCEPTED: &str = "The hub accepts this cluster; its namespace and rights are in place.";
const DENIED: &str = "An administrator of the hub has denied this cluster, and its agent has lost its rights. To let it \
                      in again, set spec.hubAcceptsClient to true.";

const NAMESPACE_IS_DELETING: &str = "The cluster is accepted, but its namespace is being deleted. The hub creates a new one, \
                                    with the cluster's rights, once the old one is gone.";

/// The cluster before and after, when its status must change.
pub(super) fn status(applied: &Applied, now: Timestamp) -> Option<(Arc<ManagedCluster>, ManagedCluster)> {
    let old = applied.cluster.clone()?;
    let condition = condition(applied)?;
    // Errors are reported in full each time. Otherwise, a different message alone is not written.
    if condition.reason != reasons::ERROR && is_reported(&old, &condition) {
        return None;
    }
    let new = set_condition(&old, condition, now);
    Some((old, new))
}

/// `None` when it is too early to say.
fn condition(applied: &Applied) -> Option<NewCondition> {
    match applied.phase {
        Phase::Accepted if applied.refusal.is_some() => applied.refusal.map(|why| error(refusal(why))),
        Phase::Accepted if applied.waits_for == WaitReason::SharedRoles => None,
        Phase::Accepted if applied.waits_for == WaitReason::Namespace => Some(error(NAMESPACE_IS_DELETING.into())),
        Phase::Accepted if !applied.errors.is_empty() => Some(error(cause(&applied.errors))),
        Phase::Accepted => Some(NewCondition::is_true(HUB_ACCEPTED, reasons::HUB_CLUSTER_ADMIN_ACCEPTED, ACCEPTED)),
        Phase::Denied if applied.waits_for == WaitReason::Works => None,
        Phase::Denied => Some(NewCondition::is_false(HUB_ACCEPTED, reasons::HUB_CLUSTER_ADMIN_DENIED, DENIED)),
        Phase::Deleting if applied.waits_for == WaitReason::Works => applied.refusal.map(held),
        Phase::Gone | Phase::Deleting | Phase::Pending => None,
    }
}

fn error(message: String) -> NewCondition {
    NewCondition::is_false(HUB_ACCEPTED, reasons::ERROR, message)
}

fn cause(errors: &[Error]) -> String {
    let causes: Vec<_> = errors.iter().map(|error| chain(error)).collect();
    let next = match errors.iter().map(Error::class).max() {
        Some(Class::Refused) => {
            "The API server refuses this: change the policy, webhook or quota that does. The hub retries every few minutes."
        }
        _ => "The hub retries.",
    };
    format!("The cluster is accepted, but the hub could not give it everything it needs: {}. {next}", causes.join("; "))
}

fn refusal(why: &str) -> String {
    format!("The cluster is accepted, but the hub gives it no rights: {why}. Register the cluster under another name.")
}

/// The clean-up deletes nothing in a namespace that is not the cluster's own, so somebody else has to.
fn held(why: &str) -> NewCondition {
    let message = format!(
        "The cluster's namespace still has ManifestWorks, and the hub does not delete them: {why}. Delete the ManifestWorks \
         of this cluster; the hub then removes the cluster's last rights and its finalizer."
    );
    NewCondition::is_false(DELETING, reasons::RESOURCE_REMAINING, message)
}

/// The requeue. An error that the condition reports is still an error.
pub(super) fn next(applied: Applied) -> Result<Requeue> {
    if let Some(error) = applied.errors.into_iter().max_by_key(Error::class) {
        return Err(error);
    }
    Ok(match applied.waits_for {
        WaitReason::None => Requeue::OnChange,
        WaitReason::SharedRoles => Requeue::BackOff,
        WaitReason::Works | WaitReason::Namespace => Requeue::After(limits::CLUSTER_DELETION_RECHECK),
    })
}
