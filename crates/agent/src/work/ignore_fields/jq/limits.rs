//! What an evaluation may take.

use std::{
    cell::RefCell,
    time::{Duration, Instant},
};

use ocm_apimachinery::budget::{Budget, Units};
use serde_json::Value;

use super::evaluate::Stop;

/// How long the expressions for an object may take together. In OCM each of them may take that long.
pub(super) const TIME: Duration = Duration::from_secs(1);
/// How many values an evaluation may produce: several for each value of the largest manifest.
pub(super) const STEPS: u64 = 250_000;
/// How many values the expressions for an object may produce together.
pub(super) const ALL_STEPS: u64 = 1_000_000;
/// How many bytes of a text count as one step.
const BYTES: usize = 64;

/// What is left of time and steps for the expressions of an object.
pub(in crate::work::ignore_fields) struct Limits {
    end: Instant,
    steps: Budget,
}

impl Limits {
    pub(in crate::work::ignore_fields) fn new() -> Self {
        Self { end: Instant::now() + TIME, steps: Budget::new(ALL_STEPS, STEPS) }
    }

    /// For the next expression, which pays by [`spend`](Self::spend).
    pub(super) fn expression(&self) -> ExpressionLimits {
        ExpressionLimits { end: self.end, steps: RefCell::new(self.steps.units()) }
    }

    pub(super) fn spend(&mut self, limits: &ExpressionLimits) {
        self.steps.spend(&limits.steps.borrow());
    }
}

/// What is left of time and steps for one expression.
#[derive(Debug)]
pub(super) struct ExpressionLimits {
    end: Instant,
    steps: RefCell<Units>,
}

impl ExpressionLimits {
    /// Takes steps; an error if there are not enough left, or no time.
    pub(super) fn spend(&self, steps: usize) -> Result<(), Stop> {
        self.steps.borrow_mut().charge(steps).map_err(|_| Stop::Limit)?;
        if Instant::now() < self.end { Ok(()) } else { Err(Stop::Limit) }
    }
}

/// The steps for making a value.
pub(super) fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => 1 + text.len() / BYTES,
        Value::Array(list) => 1 + list.iter().map(size).sum::<usize>(),
        Value::Object(map) => 1 + map.iter().map(|(key, value)| 1 + key.len() / BYTES + size(value)).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
    }
}
