//! Conditions that the rules of a work compute from its objects. Pure.
//!
//! | module | what it does |
//! | --- | --- |
//! | `rule` | the outcome of one rule: by CEL expressions, or by what is known of a kind |
//! | `entry` | the conditions in an object's entry of the status |
//! | `aggregation` | the conditions of the work that follow from them |
//! | `names` | which names rules may give to conditions |

mod aggregation;
mod cel;
mod entry;
mod names;
mod rule;
mod well_known;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use ocm_api::{
    conditions,
    work::v1::{ConditionRule, ManifestCondition, ManifestWork},
};
use ocm_runtime::conditions::is_true;

pub(super) use self::{
    aggregation::{aggregate, is_aggregated},
    entry::store,
    names::misnamed,
    rule::{RuleCondition, evaluate},
};

/// What the reasons of all conditions from rules begin with, of objects and of works.
const REASON_PREFIX: &str = "ConditionRule";

/// Whether a work has done what it was for. Then it is frozen: its spec is no longer applied.
pub(super) fn is_complete(work: &ManifestWork) -> bool {
    work.status.as_ref().is_some_and(|status| is_true(&status.conditions, conditions::work::COMPLETE))
}

/// Whether an object of a work has done what it was for, as its entry of the status and the present rules say. Then it is
/// no longer applied.
pub(super) fn is_object_complete(entry: &ManifestCondition, rules: &[ConditionRule]) -> bool {
    let complete = conditions::manifest::COMPLETE;
    is_true(&entry.conditions, complete) && rules.iter().any(|rule| rule.condition == complete)
}

/// Whether a condition comes from rules.
pub(super) fn is_from_rules(condition: &Condition) -> bool {
    condition.reason.starts_with(REASON_PREFIX)
}
