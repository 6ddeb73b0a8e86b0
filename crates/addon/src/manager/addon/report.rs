//! The status of an add-on on a cluster.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt as _;
use ocm_api::{
    addon::v1alpha1::{HealthCheckMode, ManagedClusterAddOn, ManagedClusterAddOnStatus},
    conditions::{addon::MANIFEST_APPLIED, status},
    reasons::addon::{
        MANIFEST_APPLIED as MANIFEST_APPLIED_REASON, MANIFEST_APPLIED_FAILED, MANIFEST_WORK_APPLY_FAILED,
    },
    work::v1::ManifestWork,
};
use ocm_runtime::conditions::{self, NewCondition};

use super::{
    apply::{Applied, Deployed},
    observe::Observed,
};
use crate::{HealthProber, manager::works::applied};

/// The add-on with the outcome of a plan in its status.
pub(super) fn with_status(observed: &Observed, applied: Applied, now: Timestamp) -> ManagedClusterAddOn {
    let mut new = ManagedClusterAddOn::clone(&observed.addon);
    let mut status = new.status.take().unwrap_or_default();
    let is_served = applied.registration.is_some();
    if let Some(condition) = applied.registration {
        set_condition(&mut status.conditions, condition, now);
    }
    if is_served {
        // No kind of configuration is understood yet.
        status.supported_configs.clear();
    }
    if let Some(registrations) = applied.registrations {
        status.registrations = registrations;
        status.namespace = Some(observed.namespace.clone());
    }
    set_manifest_applied(&mut status, applied.deployed, observed, now);
    // An empty status is none: that alone is not worth a write.
    new.status = Some(status).filter(|status| observed.addon.status.is_some() || *status != Default::default());
    new
}

fn set_manifest_applied(
    status: &mut ManagedClusterAddOnStatus,
    deployed: Deployed,
    observed: &Observed,
    now: Timestamp,
) {
    let condition = match deployed {
        Deployed::Nothing => return,
        Deployed::Failed(reason) | Deployed::Waiting(reason) => {
            Some(NewCondition::is_false(MANIFEST_APPLIED, MANIFEST_WORK_APPLY_FAILED, reason))
        }
        Deployed::Works(works) => manifest_applied(&works),
    };
    status.health_check.mode = Some(match observed.served.options.health {
        HealthProber::Lease => HealthCheckMode::Lease,
        HealthProber::None => HealthCheckMode::Customized,
    });
    match condition {
        Some(condition) => set_condition(&mut status.conditions, condition, now),
        // A condition that was False is outdated.
        None => status
            .conditions
            .retain(|condition| condition.type_ != MANIFEST_APPLIED || condition.status != status::FALSE),
    }
}

/// The condition that the works lead to; `None` until the cluster's agent has reported on all of them.
fn manifest_applied(works: &[ManifestWork]) -> Option<NewCondition> {
    if works.iter().any(|work| applied(work).is_none()) {
        return None;
    }
    let failed = works.iter().find(|work| applied(work).is_some_and(|applied| applied.status != status::TRUE));
    Some(match failed {
        _ if works.is_empty() => NewCondition::is_true(
            MANIFEST_APPLIED,
            MANIFEST_APPLIED_REASON,
            "The add-on has no objects for this cluster.",
        ),
        None => NewCondition::is_true(
            MANIFEST_APPLIED,
            MANIFEST_APPLIED_REASON,
            "The add-on's objects are applied on the managed cluster.",
        ),
        Some(work) => NewCondition::is_false(MANIFEST_APPLIED, MANIFEST_APPLIED_FAILED, failure(work)),
    })
}

fn failure(work: &ManifestWork) -> String {
    let cause = applied(work).map(|applied| applied.message.as_str()).unwrap_or_default();
    format!("ManifestWork {} could not be applied on the managed cluster: {cause}", work.name_any())
}

/// Sets a condition, unless it has that status and reason already. While it is True, another message alone is not worth a
/// write: a manager that takes over from one of OCM's would write every add-on.
fn set_condition(conditions: &mut Vec<Condition>, new: NewCondition, now: Timestamp) {
    let is_same = |known: &Condition| known.status == new.status && known.reason == new.reason;
    let is_set = conditions::find(conditions, new.type_).is_some_and(is_same) && new.status == status::TRUE;
    if !is_set {
        conditions::set(conditions, new, None, now);
    }
}

#[cfg(test)]
mod tests;
