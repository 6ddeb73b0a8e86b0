//! Text to quantity.

use super::{Format, MAX_BINARY, NANOS_PER_UNIT, Quantity};

/// Digits after the point that can change a billionth of the result; later ones only round it up.
const FRACTION_DIGITS: usize = 18;

/// Factor of a suffix: a power of two or of ten.
pub(super) enum Factor {
    Two(u32),
    Ten(i64),
}

pub(super) fn parse(text: &str) -> Option<Quantity> {
    let (negative, rest) = sign(text);
    let (number, suffix) = split(rest);
    let (factor, format) = suffix_factor(suffix)?;
    let nanos = scale(&mantissa(number)?, &factor);
    let (nanos, format) = match format {
        // A part of a unit has no binary form.
        Format::BinarySi if nanos > 0 && nanos < NANOS_PER_UNIT => (nanos, Format::DecimalSi),
        Format::BinarySi => (nanos.min(MAX_BINARY), format),
        Format::DecimalSi | Format::DecimalExponent => (nanos, format),
    };
    Some(Quantity { nanos: if negative { -nanos } else { nanos }, format })
}

/// The number and the suffix of a text without sign.
pub(super) fn split(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len()))
}

pub(super) fn sign(text: &str) -> (bool, &str) {
    match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    }
}

/// A decimal number as `value / 10^digits`.
struct Mantissa {
    value: i128,
    digits: u32,
}

/// Reads digits with at most one point and at least one digit. A number too long for the result is saturated.
fn mantissa(number: &str) -> Option<Mantissa> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let fraction = fraction.trim_end_matches('0');
    let (kept, dropped) = fraction.split_at(fraction.len().min(FRACTION_DIGITS));
    let value = whole
        .bytes()
        .chain(kept.bytes())
        .fold(0i128, |value, digit| value.saturating_mul(10).saturating_add(i128::from(digit - b'0')));
    let round_up = i128::from(!dropped.is_empty());
    Some(Mantissa { value: value.saturating_add(round_up), digits: u32::try_from(kept.len()).ok()? })
}

pub(super) fn suffix_factor(suffix: &str) -> Option<(Factor, Format)> {
    let decimal = |exponent| Some((Factor::Ten(exponent), Format::DecimalSi));
    let binary = |exponent| Some((Factor::Two(exponent), Format::BinarySi));
    match suffix {
        "n" => decimal(-9),
        "u" => decimal(-6),
        "m" => decimal(-3),
        "" => decimal(0),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "Ki" => binary(10),
        "Mi" => binary(20),
        "Gi" => binary(30),
        "Ti" => binary(40),
        "Pi" => binary(50),
        "Ei" => binary(60),
        _ => Some((Factor::Ten(exponent(suffix)?), Format::DecimalExponent)),
    }
}

/// Reads `e3`, `E+3` or `e-3`.
fn exponent(suffix: &str) -> Option<i64> {
    let digits = suffix.strip_prefix(['e', 'E'])?;
    let unsigned = digits.strip_prefix(['+', '-']).unwrap_or(digits);
    if unsigned.is_empty() || !unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse::<i32>().ok().map(i64::from)
}

/// The number in billionths, a rest rounded up, too large a result saturated.
fn scale(mantissa: &Mantissa, factor: &Factor) -> i128 {
    let digits = i64::from(mantissa.digits);
    match *factor {
        Factor::Ten(exponent) => shift(mantissa.value, exponent + 9 - digits),
        Factor::Two(exponent) => {
            // Twos of the factor cancel twos of the denominator, which keeps the product small.
            let down = mantissa.digits.saturating_sub(9);
            let twos = 1i128 << exponent.saturating_sub(down);
            let product = mantissa.value.saturating_mul(twos);
            let fives = 5i128.saturating_pow(down);
            let left_twos = 1i128 << down.saturating_sub(exponent);
            let quotient = divide_up(product, fives.saturating_mul(left_twos));
            shift(quotient, (9 - digits).max(0))
        }
    }
}

/// `value * 10^places`.
fn shift(value: i128, places: i64) -> i128 {
    let power = |places: u64| u32::try_from(places).ok().and_then(|places| 10i128.checked_pow(places));
    match (value, power(places.unsigned_abs())) {
        (0, _) => 0,
        (_, Some(power)) if places >= 0 => value.saturating_mul(power),
        (_, Some(power)) => divide_up(value, power),
        (_, None) if places >= 0 => i128::MAX,
        (_, None) => 1,
    }
}

fn divide_up(value: i128, by: i128) -> i128 {
    value / by + i128::from(value % by != 0)
}
