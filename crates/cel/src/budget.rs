//! What evaluations may cost. See [`ocm_apimachinery::budget`].

use ocm_apimachinery::budget::{Budget, Units};

use crate::{Key, Value, error::Problem, functions::Regexes};

/// What a list costs in addition to its elements, since it is an allocation of its own.
pub(crate) const LIST: usize = 10;
/// What a map costs in addition to its entries.
pub(crate) const MAP: usize = 30;

/// The most bytes of a double without an exponent.
const LONGEST_DOUBLE: usize = 330;

/// What one evaluation may still cost.
#[derive(Debug)]
pub struct Meter {
    units: Units,
    pub(crate) regexes: Regexes,
    context: Value,
}

impl Meter {
    pub(crate) fn of(budget: &Budget, context: Value) -> Self {
        Self { units: budget.units(), regexes: Regexes::default(), context }
    }

    /// What the caller of the program lets functions read, and expressions do not see.
    #[must_use]
    pub fn context(&self) -> &Value {
        &self.context
    }

    pub(crate) fn units(&self) -> &Units {
        &self.units
    }

    /// Charges for some steps.
    ///
    /// # Errors
    /// [`Problem::TooExpensive`] if less is left.
    pub fn charge(&mut self, units: usize) -> Result<(), Problem> {
        Ok(self.units.charge(units)?)
    }

    /// Charges for reading or writing a text.
    ///
    /// # Errors
    /// [`Problem::TooExpensive`] if less is left.
    pub fn charge_bytes(&mut self, bytes: usize) -> Result<(), Problem> {
        Ok(self.units.charge_bytes(bytes)?)
    }

    /// Charges for reading a value with all that is in it. A value may contain the same one many times, so this stops
    /// when nothing is left.
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
                self.charge_key(key)?;
                self.charge_value(value)
            }),
            Value::Optional(Some(value)) => self.charge_value(value),
            Value::Url(url) => self.charge_bytes(url.len()),
            Value::Double(_) => self.charge_bytes(LONGEST_DOUBLE),
            _ => Ok(()),
        }
    }

    /// Charges for finding or comparing the key of a map.
    ///
    /// # Errors
    /// [`Problem::TooExpensive`] if less is left.
    pub fn charge_key(&mut self, key: &Key) -> Result<(), Problem> {
        match key {
            Key::String(text) => self.charge_bytes(1 + text.len()),
            Key::Bool(_) | Key::Number(_) => self.charge(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_contains_itself_many_times_costs_no_more_than_there_is() {
        let mut value = Value::Int(1);
        for _ in 0..100 {
            value = Value::List([value.clone(), value].into());
        }
        let mut meter = Meter::of(&Budget::new(1_000, 1_000), Value::Null);
        assert!(meter.charge_value(&value).is_err());
    }
}
