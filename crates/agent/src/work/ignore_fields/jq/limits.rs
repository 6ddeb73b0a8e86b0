//! What an evaluation may take.

use std::{
    cell::Cell,
    time::{Duration, Instant},
};

use serde_json::Value;

use super::evaluate::Stop;

/// How long an evaluation may take, as in OCM.
pub(super) const TIME: Duration = Duration::from_secs(1);
/// How many values an evaluation may produce: several for each value of the largest manifest.
pub(super) const STEPS: usize = 250_000;
/// How many bytes of a text, and how many checks of the time, count as one step.
const BYTES: usize = 64;

/// What is left of time and steps.
#[derive(Debug)]
pub(super) struct Limits {
    end: Instant,
    steps: Cell<usize>,
}

impl Limits {
    pub(super) fn new() -> Self {
        Self { end: Instant::now() + TIME, steps: Cell::new(STEPS) }
    }

    /// Takes steps; an error if there are not enough left, or no time.
    pub(super) fn spend(&self, steps: usize) -> Result<(), Stop> {
        let left = self.steps.get().checked_sub(steps).ok_or(Stop::Limit)?;
        self.steps.set(left);
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
