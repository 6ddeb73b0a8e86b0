//! The order of values in jq.

use std::cmp::Ordering;

use serde_json::Value;

use super::{evaluate::Stop, limits::ExpressionLimits};

/// null < false < true < numbers < texts < lists < objects; objects by their sorted keys first.
pub(super) fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64().unwrap_or_default(), b.as_f64().unwrap_or_default());
            a.partial_cmp(&b).unwrap_or(Ordering::Equal)
        }
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => in_order(a.iter().zip(b)).then(a.len().cmp(&b.len())),
        (Value::Object(a), Value::Object(b)) => {
            a.keys().cmp(b.keys()).then_with(|| in_order(a.values().zip(b.values())))
        }
        _ => rank(a).cmp(&rank(b)),
    }
}

fn in_order<'v>(mut pairs: impl Iterator<Item = (&'v Value, &'v Value)>) -> Ordering {
    pairs.find_map(|(a, b)| Some(compare(a, b)).filter(|order| order.is_ne())).unwrap_or(Ordering::Equal)
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Null => 0,
        Value::Bool(false) => 1,
        Value::Bool(true) => 2,
        Value::Number(_) => 3,
        Value::String(_) => 4,
        Value::Array(_) => 5,
        Value::Object(_) => 6,
    }
}

pub(super) fn equals(a: &Value, b: &Value) -> bool {
    compare(a, b).is_eq()
}

/// Whether `a` has all that `b` has: a part of a text, some elements, some fields; `None` if they cannot be compared. Each
/// comparison takes a step: there may be many of them.
pub(super) fn contains(limits: &ExpressionLimits, a: &Value, b: &Value) -> Result<Option<bool>, Stop> {
    limits.spend(1)?;
    match (a, b) {
        (Value::String(a), Value::String(b)) => Ok(Some(a.contains(b.as_str()))),
        (Value::Array(a), Value::Array(b)) => {
            for b in b {
                if !any_contains(limits, a, b)? {
                    return Ok(Some(false));
                }
            }
            Ok(Some(true))
        }
        (Value::Object(a), Value::Object(b)) => {
            for (key, b) in b {
                let is_in = a.get(key).map(|a| contains(limits, a, b)).transpose()?.flatten();
                if is_in != Some(true) {
                    return Ok(Some(false));
                }
            }
            Ok(Some(true))
        }
        _ if a.is_boolean() && b.is_boolean() || rank(a) == rank(b) => Ok(Some(equals(a, b))),
        _ => Ok(None),
    }
}

fn any_contains(limits: &ExpressionLimits, list: &[Value], b: &Value) -> Result<bool, Stop> {
    for a in list {
        if contains(limits, a, b)? == Some(true) {
            return Ok(true);
        }
    }
    Ok(false)
}
