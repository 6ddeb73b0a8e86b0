//! What it may cost to evaluate expressions of users.
//!
//! Every step costs a unit, and so do ten bytes or one element that are read or written. It is charged before the work is
//! done, so that the units that an expression may cost also bound the memory that it uses: about twenty bytes for each.

use std::fmt;

/// Bytes that cost a unit.
const BYTES_PER_UNIT: usize = 10;

/// What several expressions may cost together, and each of them.
#[derive(Debug)]
pub struct Budget {
    left: u64,
    total: u64,
    per_expression: u64,
}

/// What one expression may still cost.
#[derive(Debug)]
pub struct Units {
    left: u64,
    allowed: u64,
    /// What all expressions may cost together, if that leaves less than an expression may cost.
    total: Option<u64>,
}

/// An expression costs more than it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exceeded {
    allowed: u64,
    total: Option<u64>,
}

impl Budget {
    /// A budget of `total` units, with at most `per_expression` for each expression.
    #[must_use]
    pub fn new(total: u64, per_expression: u64) -> Self {
        Self { left: total, total, per_expression }
    }

    /// What is left for all expressions.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Does a part of the work, whose expressions together may cost at most `total` of what is left, and each of them
    /// `per_expression`.
    pub fn within<T>(&mut self, total: u64, per_expression: u64, part: impl FnOnce(&mut Self) -> T) -> T {
        // The limit that a message names is the one that is reached first.
        let named = if total < self.left { total } else { self.total };
        let allowed = self.left.min(total);
        let mut budget = Self { left: allowed, total: named, per_expression };
        let done = part(&mut budget);
        self.left -= allowed - budget.left;
        done
    }

    /// Charges for reading the text of an expression, whose own limit that does not affect.
    ///
    /// # Errors
    /// [`Exceeded`] if less is left.
    pub fn charge_source(&mut self, source: &str) -> Result<(), Exceeded> {
        let mut units = Units { left: self.left, allowed: self.left, total: Some(self.total) };
        // Parsing a byte takes as long as some steps of an evaluation.
        let charged = units.charge(source.len());
        self.left = units.left;
        charged
    }

    /// Evaluates one expression.
    pub fn expression<T>(&mut self, evaluate: impl FnOnce(&mut Units) -> T) -> T {
        let mut units = self.units();
        let value = evaluate(&mut units);
        self.spend(&units);
        value
    }

    /// What the next expression may cost. To be given back with [`spend`](Self::spend).
    #[must_use]
    pub fn units(&self) -> Units {
        let allowed = self.left.min(self.per_expression);
        let total = (self.left < self.per_expression).then_some(self.total);
        Units { left: allowed, allowed, total }
    }

    /// Charges for an expression.
    pub fn spend(&mut self, units: &Units) {
        self.left = self.left.saturating_sub(units.allowed - units.left);
    }
}

impl Units {
    /// Charges for some steps.
    ///
    /// # Errors
    /// [`Exceeded`] if less is left.
    pub fn charge(&mut self, units: usize) -> Result<(), Exceeded> {
        let left = u64::try_from(units).ok().and_then(|units| self.left.checked_sub(units));
        // Nothing is left after the first failure.
        self.left = left.unwrap_or_default();
        left.map(|_| ()).ok_or(Exceeded { allowed: self.allowed, total: self.total })
    }

    /// Charges for reading or writing a text.
    ///
    /// # Errors
    /// [`Exceeded`] if less is left.
    pub fn charge_bytes(&mut self, bytes: usize) -> Result<(), Exceeded> {
        self.charge(bytes.div_ceil(BYTES_PER_UNIT))
    }
}

impl std::error::Error for Exceeded {}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { allowed, total } = self;
        match total {
            None => write!(
                f,
                "evaluating the expression costs more than the {allowed} units that an expression may cost: make it \
                 simpler, or let it read less of the object"
            ),
            Some(total) => write!(
                f,
                "evaluating the expression costs more than the {allowed} units that are left of the {total} for all \
                 expressions about an object: use fewer or simpler ones, or let them read less of the object"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_gets_its_own_limit_or_what_is_left_of_all() {
        let mut budget = Budget::new(15, 10);
        let exceeded = budget.expression(|units| {
            units.charge(10).unwrap();
            units.charge(1).unwrap_err()
        });
        assert!(exceeded.to_string().contains("more than the 10 units that an expression may cost"), "{exceeded}");
        assert_eq!(budget.left(), 5);
        let exceeded = budget.expression(|units| units.charge_bytes(51).unwrap_err());
        assert!(exceeded.to_string().contains("more than the 5 units that are left of the 15 for all"), "{exceeded}");
        assert_eq!(budget.left(), 0, "nothing is left after a failure");
    }

    #[test]
    fn a_part_costs_at_most_its_own_limit_and_what_is_left_of_the_whole() {
        let mut budget = Budget::new(100, 50);
        let spend = |budget: &mut Budget| budget.expression(|units| units.charge(30)).map_err(|error| error.total);
        assert_eq!(budget.within(40, 50, |part| [spend(part), spend(part)]), [Ok(()), Err(Some(40))]);
        assert_eq!(budget.left(), 60);
        assert_eq!(
            budget.within(200, 50, |part| [spend(part), spend(part), spend(part)]),
            [Ok(()), Ok(()), Err(Some(100))]
        );
        assert_eq!(budget.left(), 0);
    }

    #[test]
    fn the_text_of_an_expression_is_paid_for_by_all() {
        let mut budget = Budget::new(10, 5);
        assert_eq!(budget.charge_source("12345678"), Ok(()));
        assert_eq!(budget.left(), 2);
        assert!(budget.charge_source("123").is_err());
    }
}
