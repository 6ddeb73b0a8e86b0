//! What the status of an add-on on a cluster says.

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

/// The add-on with what came of a plan in its status.
pub(super) fn with_status(observed: &Observed, applied: Applied, now: Timestamp) -> ManagedClusterAddOn {
    let mut new = ManagedClusterAddOn::clone(&observed.addon);
    let mut status = new.status.take().unwrap_or_default();
    let is_taken_on = applied.registration.is_some();
    if let Some(finding) = applied.registration {
        say(&mut status.conditions, finding, now);
    }
    if is_taken_on {
        // No kind of configuration is understood yet.
        status.supported_configs.clear();
    }
    if let Some(registrations) = applied.registrations {
        status.registrations = registrations;
        status.namespace = Some(observed.namespace.clone());
    }
    say_deployed(&mut status, applied.deployed, observed, now);
    // An empty status is none: that alone is not worth a write.
    new.status = Some(status).filter(|status| observed.addon.status.is_some() || *status != Default::default());
    new
}

fn say_deployed(status: &mut ManagedClusterAddOnStatus, deployed: Deployed, observed: &Observed, now: Timestamp) {
    let verdict = match deployed {
        Deployed::Nothing => return,
        Deployed::Failed(reason) | Deployed::Waiting(reason) => {
            Verdict::Say(NewCondition::is_false(MANIFEST_APPLIED, MANIFEST_WORK_APPLY_FAILED, reason))
        }
        Deployed::Works(works) => verdict(&works),
    };
    status.health_check.mode = Some(match observed.served.options.health {
        HealthProber::Lease => HealthCheckMode::Lease,
        HealthProber::None => HealthCheckMode::Customized,
    });
    match verdict {
        Verdict::Say(finding) => say(&mut status.conditions, finding, now),
        // What was False is no longer known to be so.
        Verdict::Wait => status
            .conditions
            .retain(|condition| condition.type_ != MANIFEST_APPLIED || condition.status != status::FALSE),
    }
}

/// What the works tell of the add-on.
#[derive(Debug, PartialEq)]
enum Verdict {
    /// This.
    Say(NewCondition),
    /// Nothing before the cluster's agent has looked at all of them.
    Wait,
}

fn verdict(works: &[ManifestWork]) -> Verdict {
    if works.iter().any(|work| applied(work).is_none()) {
        return Verdict::Wait;
    }
    let failed = works.iter().find(|work| applied(work).is_some_and(|applied| applied.status != status::TRUE));
    Verdict::Say(match failed {
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

/// Sets a condition, unless it says so already. Where all is well another wording alone is not worth a write: a manager
/// that takes over from one of OCM's would write every add-on.
fn say(conditions: &mut Vec<Condition>, finding: NewCondition, now: Timestamp) {
    let is_same = |known: &Condition| known.status == finding.status && known.reason == finding.reason;
    let is_said = conditions::find(conditions, finding.type_).is_some_and(is_same) && finding.status == status::TRUE;
    if !is_said {
        conditions::set(conditions, finding, None, now);
    }
}

#[cfg(test)]
mod tests;
