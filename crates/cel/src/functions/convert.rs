//! Conversions between types.

use jiff::Timestamp;

use super::{Function, Outcome, excerpt, mismatch, time};
use crate::{Meter, Problem, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::global("bool", 1..=1, bool),
    Function::global("int", 1..=1, int),
    Function::global("uint", 1..=1, uint),
    Function::global("double", 1..=1, double),
    Function::global("bytes", 1..=1, bytes),
    Function::both("string", 1..=1, string),
    Function::global("duration", 1..=1, duration),
    Function::global("timestamp", 1..=1, timestamp),
];

/// The most bytes of a timestamp that is read.
const LONGEST_TIMESTAMP: usize = 100;

fn bool(_: &mut Meter, args: &[Value]) -> Outcome {
    match args {
        [Value::Bool(value)] => Ok(Value::Bool(*value)),
        [Value::String(text)] => match text.as_ref() {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Value::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Value::Bool(false)),
            _ => Err(unreadable(text, "bool")),
        },
        _ => mismatch("bool", args),
    }
}

#[allow(clippy::cast_possible_truncation, reason = "within the range")]
fn int(meter: &mut Meter, args: &[Value]) -> Outcome {
    match args {
        [Value::Int(value)] => Ok(Value::Int(*value)),
        [Value::Uint(value)] => i64::try_from(*value).map(Value::Int).map_err(|_| out_of_range("int")),
        [Value::Double(value)] if value.abs() < 9_223_372_036_854_775_808.0 => Ok(Value::Int(*value as i64)),
        [Value::Double(_)] => Err(out_of_range("int")),
        [Value::String(text)] => {
            meter.charge_bytes(text.len())?;
            text.parse().map(Value::Int).map_err(|_| unreadable(text, "int"))
        }
        [Value::Timestamp(time)] => Ok(Value::Int(time.as_nanosecond().div_euclid(1_000_000_000) as i64)),
        [Value::Duration(duration)] => Ok(Value::Int(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX))),
        _ => mismatch("int", args),
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within the range")]
fn uint(meter: &mut Meter, args: &[Value]) -> Outcome {
    match args {
        [Value::Uint(value)] => Ok(Value::Uint(*value)),
        [Value::Int(value)] => u64::try_from(*value).map(Value::Uint).map_err(|_| out_of_range("uint")),
        [Value::Double(value)] if (0.0..18_446_744_073_709_551_616.0).contains(value) => Ok(Value::Uint(*value as u64)),
        [Value::Double(_)] => Err(out_of_range("uint")),
        [Value::String(text)] => {
            meter.charge_bytes(text.len())?;
            let number = text.parse().ok().filter(|_| !text.starts_with('+'));
            number.map(Value::Uint).ok_or_else(|| unreadable(text, "uint"))
        }
        _ => mismatch("uint", args),
    }
}

#[allow(clippy::cast_precision_loss, reason = "that is the conversion")]
fn double(meter: &mut Meter, args: &[Value]) -> Outcome {
    match args {
        [Value::Double(value)] => Ok(Value::Double(*value)),
        [Value::Int(value)] => Ok(Value::Double(*value as f64)),
        [Value::Uint(value)] => Ok(Value::Double(*value as f64)),
        [Value::String(text)] => {
            meter.charge_bytes(text.len())?;
            // What is too large is infinite to our parser, and an error to Go's.
            let fits = |number: &f64| !number.is_infinite() || !text.contains(|c: char| c.is_ascii_digit());
            text.parse().ok().filter(fits).map(Value::Double).ok_or_else(|| unreadable(text, "double"))
        }
        _ => mismatch("double", args),
    }
}

fn bytes(meter: &mut Meter, args: &[Value]) -> Outcome {
    match args {
        [Value::Bytes(bytes)] => Ok(Value::Bytes(bytes.clone())),
        [Value::String(text)] => {
            meter.charge_bytes(text.len())?;
            Ok(Value::Bytes(text.as_bytes().into()))
        }
        _ => mismatch("bytes", args),
    }
}

fn string(meter: &mut Meter, args: &[Value]) -> Outcome {
    let text = match args {
        [Value::String(text)] => return Ok(Value::String(text.clone())),
        [Value::Bytes(bytes)] => {
            meter.charge_bytes(bytes.len())?;
            std::str::from_utf8(bytes).map_err(|_| "string() needs bytes that are valid UTF-8")?.to_owned()
        }
        [value] => match scalar(value).filter(|_| !matches!(value, Value::Type(_))) {
            Some(text) => text,
            None => return mismatch("string", args),
        },
        _ => return mismatch("string", args),
    };
    Ok(Value::string(text))
}

/// A value without elements as text.
pub(super) fn scalar(value: &Value) -> Option<String> {
    Some(match value {
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Double(value) => shortest(*value),
        Value::Duration(value) => time::seconds(*value),
        Value::Timestamp(value) => value.to_string(),
        Value::Type(name) => (*name).to_owned(),
        Value::Ip(address) => address.to_string(),
        Value::Cidr(range) => range.to_string(),
        _ => return None,
    })
}

/// A number as Go prints it: the fewest digits that lead to the same number, with an exponent where it is below -4 or
/// above 5.
fn shortest(number: f64) -> String {
    if !number.is_finite() {
        return match number.is_nan() {
            true => "NaN".to_owned(),
            false => (if number > 0.0 { "+Inf" } else { "-Inf" }).to_owned(),
        };
    }
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..=5).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
        }
        _ => number.to_string(),
    }
}

fn duration(_: &mut Meter, args: &[Value]) -> Outcome {
    match args {
        [Value::Duration(value)] => Ok(Value::Duration(*value)),
        [Value::String(text)] => time::parse(text).map(Value::Duration).ok_or_else(|| unreadable(text, "duration")),
        _ => mismatch("duration", args),
    }
}

fn timestamp(_: &mut Meter, args: &[Value]) -> Outcome {
    match args {
        [Value::Timestamp(value)] => Ok(Value::Timestamp(*value)),
        [Value::Int(seconds)] => {
            time::timestamp(Timestamp::from_second(*seconds).ok()).ok_or_else(|| out_of_range("timestamp"))
        }
        [Value::String(text)] => {
            let time =
                Some(text).filter(|text| text.len() <= LONGEST_TIMESTAMP).and_then(|text| time::parse_timestamp(text));
            time::timestamp(time).ok_or_else(|| unreadable(text, "timestamp"))
        }
        _ => mismatch("timestamp", args),
    }
}

fn unreadable(text: &str, type_: &str) -> Problem {
    format!("{} is no {type_}", excerpt(text)).into()
}

fn out_of_range(type_: &str) -> Problem {
    format!("the value is out of the range of {type_}").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_printed_as_in_go() {
        let cases = [
            (1.0, "1"),
            (0.1, "0.1"),
            (100_000.0, "100000"),
            (1_000_000.0, "1e+06"),
            (1_234_567.0, "1.234567e+06"),
            (0.0001, "0.0001"),
            (0.000_01, "1e-05"),
            (-1.5e300, "-1.5e+300"),
            (f64::NEG_INFINITY, "-Inf"),
        ];
        for (number, expected) in cases {
            assert_eq!(shortest(number), expected);
        }
    }
}
