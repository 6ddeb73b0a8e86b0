//! Quantity to text.

use std::fmt;

use super::{Format, NANOS_PER_UNIT, Quantity};

/// Suffixes of powers of 1000 from billionths up.
const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
/// Suffixes of powers of 1024.
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
/// The index of the suffix of whole units in [`DECIMAL`].
const UNITS: usize = 3;

pub(super) fn print(quantity: Quantity, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if quantity.is_zero() {
        return f.write_str("0");
    }
    match printed_format(quantity) {
        Format::BinarySi => {
            let (number, index) = largest_step(quantity.nanos / NANOS_PER_UNIT, 1024, BINARY.len());
            write!(f, "{number}{}", BINARY[index])
        }
        Format::DecimalSi => {
            let (number, index) = largest_step(quantity.nanos, 1000, DECIMAL.len());
            write!(f, "{number}{}", DECIMAL[index])
        }
        Format::DecimalExponent => {
            let (number, index) = largest_step(quantity.nanos, 1000, usize::MAX);
            match index {
                UNITS => write!(f, "{number}"),
                0..UNITS => write!(f, "{number}e-{}", (UNITS - index) * 3),
                _ => write!(f, "{number}e{}", (index - UNITS) * 3),
            }
        }
    }
}

/// Binary suffixes are for whole numbers from 1024 up; anything else is printed decimal.
fn printed_format(quantity: Quantity) -> Format {
    let whole = quantity.nanos % NANOS_PER_UNIT == 0;
    let large = quantity.nanos.unsigned_abs() >= 1024 * NANOS_PER_UNIT.unsigned_abs();
    match quantity.format {
        Format::BinarySi if !(whole && large) => Format::DecimalSi,
        format => format,
    }
}

/// Divides by `base` while nothing is lost, fewer than `steps` times: what is left, and how often.
fn largest_step(mut number: i128, base: i128, steps: usize) -> (i128, usize) {
    let mut index = 0;
    while index + 1 < steps && number % base == 0 {
        number /= base;
        index += 1;
    }
    (number, index)
}
