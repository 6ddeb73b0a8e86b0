//! Amounts such as `100m`, `2Gi` or `1e3`, exact to a billionth and up to 10^29.

mod float;
mod parse;
mod print;

use std::fmt;
use std::ops::AddAssign;
use std::str::FromStr;

pub use self::float::approximate;

/// Largest amount that can be written with a binary suffix; larger ones are cut to it, as Kubernetes does.
const MAX_BINARY: i128 = i64::MAX as i128 * NANOS_PER_UNIT;
const NANOS_PER_UNIT: i128 = 1_000_000_000;

/// Why a text is not a quantity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("failed to parse quantity {text:?}: want a number with an optional suffix such as m, k, Mi or e3")]
pub struct Error {
    text: String,
}

/// How an amount is printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Format {
    /// Powers of ten with a letter: `n`, `u`, `m`, none, `k`, `M`, `G`, `T`, `P`, `E`.
    #[default]
    DecimalSi,
    /// Powers of 1024 with a letter and `i`: `Ki` to `Ei`.
    BinarySi,
    /// Powers of ten with an exponent, such as `e3`.
    DecimalExponent,
}

/// An amount and how to print it. Two quantities are equal when both are; compare [`nanos`](Self::nanos) for amounts
/// alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Quantity {
    nanos: i128,
    format: Format,
}

impl Quantity {
    /// Nothing. Takes the format of what is first added to it.
    pub const ZERO: Self = Self { nanos: 0, format: Format::DecimalSi };

    /// The amount in billionths.
    pub fn nanos(self) -> i128 {
        self.nanos
    }

    /// How the amount is printed.
    pub fn format(self) -> Format {
        self.format
    }

    /// Whether the amount is zero.
    pub fn is_zero(self) -> bool {
        self.nanos == 0
    }
}

impl FromStr for Quantity {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        parse::parse(text).ok_or_else(|| Error { text: text.to_owned() })
    }
}

impl AddAssign for Quantity {
    /// Adds an amount. The format stays, unless the amount so far is zero.
    fn add_assign(&mut self, other: Self) {
        if self.is_zero() {
            self.format = other.format;
        }
        self.nanos = self.nanos.saturating_add(other.nanos);
    }
}

impl fmt::Display for Quantity {
    /// Prints the shortest exact form, with the largest suffix that needs no fraction, as kubectl does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print::print(*self, f)
    }
}

#[cfg(test)]
mod tests;
