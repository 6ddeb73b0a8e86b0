//! The floats that Kubernetes calculates with.

use super::parse::{self, Factor, sign, split, suffix_factor};

/// More digits, or smaller units than billionths, are not multiplied by a power of ten.
const MAX_DIGITS: usize = 18;
const MIN_EXPONENT: i64 = -9;
/// The same for powers of two: an estimate of the digits of the product.
const MAX_BINARY_DIGITS: usize = 14;

/// The amount of a quantity as the float that Kubernetes calculates with (`AsApproximateFloat64` in Go): its digits multiplied by a
/// power of ten. That is not always the nearest float, so results that are rounded would differ if it were used. `None` if the
/// text is no quantity.
pub fn approximate(text: &str) -> Option<f64> {
    let quantity = parse::parse(text)?;
    Some(
        digits(text)
            .map_or_else(|| product(quantity.nanos, MIN_EXPONENT), |(value, exponent)| product(value, exponent)),
    )
}

#[expect(clippy::cast_precision_loss, reason = "it is what this is for")]
fn product(value: i128, exponent: i64) -> f64 {
    let power = 10f64.powi(i32::try_from(exponent.abs()).unwrap_or(i32::MAX));
    match exponent {
        0 => value as f64,
        1.. => value as f64 * power,
        _ => value as f64 * (1.0 / power),
    }
}

/// A quantity as digits and the exponent of ten; `None` if it has too many digits.
fn digits(text: &str) -> Option<(i128, i64)> {
    let (is_negative, rest) = sign(text);
    let (number, suffix) = split(rest);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole = match whole.trim_start_matches('0') {
        "" => "0",
        whole => whole,
    };
    let (value, exponent) = match suffix_factor(suffix)?.0 {
        Factor::Ten(exponent) => decimal(whole, fraction, exponent)?,
        Factor::Two(exponent) => (binary(whole, fraction, exponent)?, 0),
    };
    Some((if is_negative { -value } else { value }, exponent))
}

fn decimal(whole: &str, fraction: &str, exponent: i64) -> Option<(i128, i64)> {
    let exponent = exponent - i64::try_from(fraction.len()).ok()?;
    let fits = whole.len() + fraction.len() <= MAX_DIGITS && exponent >= MIN_EXPONENT;
    let value = format!("{whole}{fraction}").parse().ok().filter(|_| fits)?;
    Some((value, exponent))
}

fn binary(whole: &str, fraction: &str, exponent: u32) -> Option<i128> {
    let fits = fraction.is_empty() && whole.len() + (exponent * 3 / 10) as usize <= MAX_BINARY_DIGITS;
    let value: i128 = whole.parse().ok().filter(|_| fits)?;
    value.checked_mul(1 << exponent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digits_are_multiplied_by_a_power_of_ten() {
        for (text, expected) in [
            ("4", 4.0),
            ("350m", 350.0 * 0.001),
            ("0.35", 35.0 * 0.01),
            ("-.7", -7.0 * 0.1),
            ("2k", 2.0 * 1000.0),
            ("1e1", 10.0),
            ("0", 0.0),
            ("000", 0.0),
            ("65886368Ki", 65_886_368.0 * 1024.0),
            ("0.5Gi", 536_870_912e9 * 1e-9),
            ("2Ei", 2f64.powi(61) * 1e9 * 1e-9),
        ] {
            assert_eq!(approximate(text), Some(expected), "{text}");
        }
        assert_ne!(approximate("350m"), Some(0.35));
        assert_eq!(approximate("x"), None);
    }
}
