//! The outcome of rules for an object.

use kube::core::GroupVersionKind;
use ocm_api::{
    conditions::status,
    reasons::manifest,
    work::v1::{ConditionRule, ConditionRuleType},
};
use ocm_cel::Budget;
use serde_json::Value;

use super::{cel, names, well_known};

/// What all condition rules for an object may cost, and each expression: OCM's limits. Messages count, too.
const BUDGET: u64 = 10_000_000;
const PER_EXPRESSION: u64 = 1_000_000;

/// A condition of an object that a rule yields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::work) struct RuleCondition {
    pub type_: String,
    pub status: &'static str,
    pub reason: &'static str,
    pub message: String,
}

/// Whether the condition of a rule is true, with a message if the rule has none; or why that is not known.
pub(super) type Verdict = Result<(bool, Option<String>), Failure>;

/// Why a rule has no outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The rule is invalid.
    Rule(String),
    /// An expression is invalid, has no value for this object, or costs too much.
    Expression(String),
}

/// The conditions that the rules yield for an object, in their order.
pub(in crate::work) fn evaluate(
    rules: &[ConditionRule],
    object: &Value,
    gvk: &GroupVersionKind,
    budget: &mut Budget,
) -> Vec<RuleCondition> {
    budget.within(BUDGET, PER_EXPRESSION, |budget| evaluate_within(budget, rules, object, gvk))
}

fn evaluate_within(
    budget: &mut Budget,
    rules: &[ConditionRule],
    object: &Value,
    gvk: &GroupVersionKind,
) -> Vec<RuleCondition> {
    let input = if rules.iter().any(uses_cel) { object.into() } else { ocm_cel::Value::Null };
    let mut condition = |rule: &ConditionRule| {
        // The status could not be written with it; the object is not applied, and says why.
        if names::problem_of(rule).is_some() {
            return None;
        }
        let verdict = match &rule.type_ {
            ConditionRuleType::Cel => cel::verdict(rule, &input, budget),
            // Of what is not known to be done at some time, there is no such condition.
            ConditionRuleType::WellKnownConditions => Ok(well_known::verdict(&rule.condition, object, gvk)?),
            ConditionRuleType::Other(type_) => {
                Err(Failure::Rule(format!("this agent knows no rules of type {type_}. Use CEL or WellKnownConditions")))
            }
        };
        Some(of_verdict(rule, verdict, &input, budget))
    };
    rules.iter().filter_map(&mut condition).collect()
}

fn uses_cel(rule: &ConditionRule) -> bool {
    rule.type_ == ConditionRuleType::Cel || rule.message_expression.is_some()
}

fn of_verdict(rule: &ConditionRule, verdict: Verdict, input: &ocm_cel::Value, budget: &mut Budget) -> RuleCondition {
    let (status, reason, message) = match verdict {
        Ok((result, known)) => {
            let status = if result { status::TRUE } else { status::FALSE };
            (status, manifest::CONDITION_RULE_EVALUATED, message(rule, result, known, input, budget))
        }
        Err(Failure::Expression(cause)) => (status::FALSE, manifest::CONDITION_RULE_EXPRESSION_ERROR, cause),
        Err(Failure::Rule(cause)) => (status::UNKNOWN, manifest::CONDITION_RULE_INVALID, cause),
    };
    RuleCondition { type_: rule.condition.clone(), status, reason, message }
}

/// The first of these that is not empty: the value of the message expression, what is known, the message of the rule, or
/// the name of the condition. If the message expression fails, the message says why.
fn message(
    rule: &ConditionRule,
    result: bool,
    known: Option<String>,
    input: &ocm_cel::Value,
    budget: &mut Budget,
) -> String {
    let expression = rule.message_expression.as_deref().filter(|expression| !expression.is_empty());
    let computed =
        expression.map(|expression| cel::message(expression, input, result, budget).unwrap_or_else(|cause| cause));
    let not_empty = |text: &String| !text.is_empty();
    let known = if expression.is_some() { None } else { known };
    computed.filter(not_empty).or(known).or_else(|| rule.message.clone().filter(not_empty)).unwrap_or_else(|| {
        let not = if result { "" } else { "not " };
        format!("The object is {not}{}", rule.condition)
    })
}

#[cfg(test)]
mod tests;
