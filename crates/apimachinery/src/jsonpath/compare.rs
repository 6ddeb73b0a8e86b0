//! Comparing values as Go's templates do: of one type only.

use std::cmp::Ordering;

use serde_json::Value;

use super::{FindError, eval::type_of, filter::Operator};
use crate::budget::Units;

/// A value that can be compared.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Scalar<'a> {
    Boolean(bool),
    Integer(i64),
    Float(f64),
    Text(&'a str),
}

impl Operator {
    pub(super) fn holds(&self, left: &Value, right: &Value, units: &mut Units) -> Result<bool, FindError> {
        if let Self::Other(operator) = self {
            units.charge_bytes(operator.len())?;
            return Err(FindError::Operator(operator.clone()));
        }
        if let (Value::String(left), Value::String(right)) = (left, right) {
            units.charge_bytes(left.len().min(right.len()))?;
        }
        let incomparable = || FindError::Incomparable(type_of(left), type_of(right));
        let (left, right) = scalar(left).zip(scalar(right)).ok_or_else(incomparable)?;
        let order = order(left, right).ok_or_else(incomparable)?;
        match (self, left) {
            (Self::Equal, _) => Ok(order.is_eq()),
            (Self::NotEqual, _) => Ok(order.is_ne()),
            (_, Scalar::Boolean(_)) => Err(FindError::Unordered("a boolean")),
            (Self::Less, _) => Ok(order.is_lt()),
            (Self::LessOrEqual, _) => Ok(order.is_le()),
            (Self::Greater, _) => Ok(order.is_gt()),
            (Self::GreaterOrEqual | Self::Other(_), _) => Ok(order.is_ge()),
        }
    }
}

fn scalar(value: &Value) -> Option<Scalar<'_>> {
    match value {
        Value::Bool(boolean) => Some(Scalar::Boolean(*boolean)),
        // What is too large for an integer is a float in Kubernetes.
        Value::Number(number) => number.as_i64().map(Scalar::Integer).or_else(|| number.as_f64().map(Scalar::Float)),
        Value::String(text) => Some(Scalar::Text(text)),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn order(left: Scalar<'_>, right: Scalar<'_>) -> Option<Ordering> {
    match (left, right) {
        (Scalar::Boolean(left), Scalar::Boolean(right)) => Some(left.cmp(&right)),
        (Scalar::Integer(left), Scalar::Integer(right)) => Some(left.cmp(&right)),
        (Scalar::Float(left), Scalar::Float(right)) => left.partial_cmp(&right),
        (Scalar::Text(left), Scalar::Text(right)) => Some(left.cmp(right)),
        _ => None,
    }
}
