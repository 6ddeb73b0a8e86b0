//! What is said about one installation: whether it is configured, and how it comes along.

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
    let findings = [configured(refusal.as_deref()), progressing::finding(addon, refusal.as_deref(), &observed.works)];
    for finding in findings {
        if is_news(&status.conditions, &finding) {
            conditions::set(&mut status.conditions, finding, None, now);
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

/// Another wording alone, where all is well, is not worth a write: a hub that takes over from another one would rewrite
/// every add-on.
fn is_news(conditions: &[Condition], finding: &NewCondition) -> bool {
    let is_well = [CONFIGURATIONS_CONFIGURED, COMPLETED].contains(&finding.reason);
    conditions::find(conditions, finding.type_).is_none_or(|known| {
        let says_the_same = known.status == finding.status && known.reason == finding.reason;
        !says_the_same || (known.message != finding.message && !is_well)
    })
}
