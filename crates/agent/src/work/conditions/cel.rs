//! Rules with CEL expressions.

use std::sync::LazyLock;

use ocm_api::work::v1::ConditionRule;
use ocm_cel::{
    Budget, Environment, Meter, Value,
    functions::{Function, Outcome, mismatch},
};

use super::rule::{Failure, Verdict};

static EXPRESSIONS: LazyLock<Environment> = LazyLock::new(|| Environment::new(["object"]).with(FUNCTIONS));
static MESSAGES: LazyLock<Environment> = LazyLock::new(|| Environment::new(["object", "result"]).with(FUNCTIONS));

const FUNCTIONS: &[Function] = &[Function::global("hasConditions", 1..=1, has_conditions)];

/// Whether a status has conditions.
fn has_conditions(_: &mut Meter, args: &[Value]) -> Outcome {
    match args {
        [status] => Ok(Value::Bool(matches!(status.get("conditions"), Some(Value::List(list)) if !list.is_empty()))),
        _ => mismatch("hasConditions", args),
    }
}

/// Whether all expressions of a rule are true. The first that is false ends that.
pub(super) fn verdict(rule: &ConditionRule, object: &Value, budget: &mut Budget) -> Verdict {
    if rule.cel_expressions.is_empty() {
        return Err(Failure::Rule("the rule has no celExpressions. Add at least one".to_owned()));
    }
    for (index, expression) in rule.cel_expressions.iter().enumerate() {
        let failure = |cause| Failure::Expression(format!("celExpressions[{index}]: {cause}"));
        if !is_true(expression, object, budget).map_err(failure)? {
            return Ok((false, None));
        }
    }
    Ok((true, None))
}

fn is_true(expression: &str, object: &Value, budget: &mut Budget) -> Result<bool, String> {
    budget.charge_source(expression).map_err(|exceeded| exceeded.to_string())?;
    let program = EXPRESSIONS.compile(expression).map_err(|error| error.to_string())?;
    match program.evaluate([object.clone()], budget).map_err(|error| error.to_string())? {
        Value::Bool(value) => Ok(value),
        other => Err(format!("the value has type {}, and must be a bool", other.type_name())),
    }
}

/// The value of a message expression, or why it has none.
pub(super) fn message(expression: &str, object: &Value, result: bool, budget: &mut Budget) -> Result<String, String> {
    let explain = |error: &dyn std::fmt::Display| format!("messageExpression: {error}");
    budget.charge_source(expression).map_err(|exceeded| explain(&exceeded))?;
    let program = MESSAGES.compile(expression).map_err(|error| explain(&error))?;
    match program.evaluate([object.clone(), Value::Bool(result)], budget).map_err(|error| explain(&error))? {
        Value::String(text) => Ok(text.as_ref().to_owned()),
        other => Err(explain(&format!("the value has type {}, and must be a string", other.type_name()))),
    }
}
