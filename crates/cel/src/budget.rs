//! What evaluations may cost.
//!
//! Every step costs a unit, and so do ten bytes or one element that are read or written. It is charged before the work is
//! done, so that the units that an expression may cost also bound the memory that it uses: about twenty bytes for each.

use crate::{Value, error::Problem, functions::Regexes};

/// Bytes that cost a unit.
const BYTES_PER_UNIT: usize = 10;
/// What a list costs in addition to its elements, since it is an allocation of its own.
pub(crate) const LIST: usize = 10;
/// What a map costs in addition to its entries.
pub(crate) const MAP: usize = 30;

/// What several expressions may cost together, and each of them.
#[derive(Debug)]
pub struct Budget {
    left: u64,
    per_expression: u64,
}

impl Budget {
    /// A budget of `total` units, with at most `per_expression` for each expression.
    #[must_use]
    pub fn new(total: u64, per_expression: u64) -> Self {
        Self { left: total, per_expression }
    }

    /// What is left for all expressions.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.left
    }

    pub(crate) fn meter(&self) -> Meter {
        let allowed = self.left.min(self.per_expression);
        Meter { left: allowed, allowed, regexes: Regexes::default() }
    }

    pub(crate) fn spend(&mut self, meter: &Meter) {
        self.left = self.left.saturating_sub(meter.allowed - meter.left);
    }
}

/// What one evaluation may still cost.
#[derive(Debug)]
pub struct Meter {
    left: u64,
    allowed: u64,
    pub(crate) regexes: Regexes,
}

impl Meter {
    /// Pays for some steps.
    ///
    /// # Errors
    /// [`Problem::TooExpensive`] if less is left.
    pub fn charge(&mut self, units: usize) -> Result<(), Problem> {
        let left = u64::try_from(units).ok().and_then(|units| self.left.checked_sub(units));
        // Nothing is left after the first failure.
        self.left = left.unwrap_or_default();
        left.map(|_| ()).ok_or(Problem::TooExpensive { allowed: self.allowed })
    }

    /// Pays for reading or writing a text.
    ///
    /// # Errors
    /// [`Problem::TooExpensive`] if less is left.
    pub fn charge_bytes(&mut self, bytes: usize) -> Result<(), Problem> {
        self.charge(bytes.div_ceil(BYTES_PER_UNIT))
    }

    /// Pays for reading a value with all that is in it. A value may contain the same one many times, so this stops when
    /// nothing is left.
    ///
    /// # Errors
    /// [`Problem::TooExpensive`] if less is left.
    pub fn charge_value(&mut self, value: &Value) -> Result<(), Problem> {
        self.charge(1)?;
        match value {
            Value::String(text) => self.charge_bytes(text.len()),
            Value::Bytes(bytes) => self.charge_bytes(bytes.len()),
            Value::List(items) => items.iter().try_for_each(|item| self.charge_value(item)),
            Value::Map(map) => map.iter().try_for_each(|(key, value)| {
                self.charge_value(&key.into())?;
                self.charge_value(value)
            }),
            Value::Optional(Some(value)) => self.charge_value(value),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_gets_its_own_limit_or_what_is_left_of_all() {
        let mut budget = Budget::new(15, 10);
        let mut meter = budget.meter();
        assert!(meter.charge(10).is_ok() && meter.charge(1).is_err());
        budget.spend(&meter);
        assert_eq!((budget.left(), budget.meter().allowed), (5, 5));
    }

    #[test]
    fn a_value_that_contains_itself_many_times_costs_no_more_than_there_is() {
        let mut value = Value::Int(1);
        for _ in 0..100 {
            value = Value::List([value.clone(), value].into());
        }
        let mut meter = Budget::new(1_000, 1_000).meter();
        assert!(meter.charge_value(&value).is_err());
    }
}
