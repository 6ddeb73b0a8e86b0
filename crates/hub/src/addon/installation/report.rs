//! The status of one installation: whether it is configured, and how far it has come.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use ocm_api::{
    addon::v1alpha1::ManagedClusterAddOn,
    conditions::addon::CONFIGURED,
    reasons::addon::{COMPLETED, CONFIGURATIONS_CONFIGURED, CONFIGURATIONS_NOT_CONFIGURED},
};
use ocm_runtime::conditions::{self, NewCondition};

use super::{observe::Observed, progressing};
use crate::addon::refusal;

/// The add-on with both conditions.
pub(super) fn reported(addon: &ManagedClusterAddOn, observed: &Observed, now: Timestamp) -> ManagedClusterAddOn {
    let refusal = refusal::of_addon(addon).or_else(|| observed.desired.refusal.as_deref().map(str::to_owned));
    let mut new = addon.clone();
    let status = new.status.get_or_insert_default();
    if refusal.is_none() {
        status.config_references.clear();
    }
    let current = [configured(refusal.as_deref()), progressing::condition(addon, refusal.as_deref(), &observed.works)];
    for condition in current {
        if is_relevant(&status.conditions, &condition) {
            conditions::set(&mut status.conditions, condition, None, now);
        }
    }
    new
}

fn configured(refusal: Option<&str>) -> NewCondition {
    match refusal {
        None => NewCondition::is_true(CONFIGURED, CONFIGURATIONS_CONFIGURED, "The add-on is configured"),
        Some(refusal) => NewCondition::is_false(CONFIGURED, CONFIGURATIONS_NOT_CONFIGURED, refusal),
    }
}

/// Whether the condition is to be written. A different message alone, where all is well, is not: a hub that replaces another
/// one would rewrite every add-on.
fn is_relevant(conditions: &[Condition], condition: &NewCondition) -> bool {
    let is_well = [CONFIGURATIONS_CONFIGURED, COMPLETED].contains(&condition.reason);
    conditions::find(conditions, condition.type_).is_none_or(|known| {
        let is_same = known.status == condition.status && known.reason == condition.reason;
        !is_same || (known.message != condition.message && !is_well)
    })
}
