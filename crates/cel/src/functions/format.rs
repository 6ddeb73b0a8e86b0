//! `"%d of %s".format([1, "x"])`

use super::{Function, Outcome, convert, mismatch};
use crate::{Meter, Problem, Value};

pub(super) const FUNCTIONS: &[Function] = &[Function::method("format", 2..=2, format)];

/// The most decimals.
const PRECISE: usize = 100;
/// The most bytes of a number that is formatted.
const LONGEST_NUMBER: usize = 512;

fn format(meter: &mut Meter, args: &[Value]) -> Outcome {
    let [Value::String(pattern), Value::List(values)] = args else { return mismatch("format", args) };
    meter.charge_bytes(pattern.len())?;
    let (mut text, mut rest, mut values) = (String::new(), pattern.as_ref(), values.iter());
    while let Some((literal, clause)) = rest.split_once('%') {
        text.push_str(literal);
        rest = match clause.strip_prefix('%') {
            Some(after) => {
                text.push('%');
                after
            }
            None => {
                let value = values.next().ok_or("format() has fewer values than places for them")?;
                substitute(meter, &mut text, clause, value)?
            }
        };
    }
    if values.next().is_some() {
        return Err("format() has more values than places for them".into());
    }
    text.push_str(rest);
    Ok(Value::string(text))
}

/// Writes a value as the clause at the start of the pattern says; returns what follows it.
fn substitute<'a>(meter: &mut Meter, text: &mut String, clause: &'a str, value: &Value) -> Result<&'a str, Problem> {
    let (precision, clause) = precision(clause)?;
    let verb = clause.chars().next().ok_or("format() needs a letter after %, such as %s")?;
    match verb {
        's' => {
            meter.charge_value(value)?;
            write(text, value)?;
        }
        'f' | 'e' => {
            meter.charge_bytes(LONGEST_NUMBER)?;
            text.push_str(&decimal(verb, precision.unwrap_or(6), value)?);
        }
        'd' | 'b' | 'o' | 'x' | 'X' => {
            meter.charge_bytes(LONGEST_NUMBER)?;
            meter.charge_value(value)?;
            meter.charge_value(value)?;
            text.push_str(&digits(verb, value)?);
        }
        other => return Err(format!("format() knows no %{other}").into()),
    }
    Ok(clause.get(verb.len_utf8()..).unwrap_or_default())
}

fn precision(clause: &str) -> Result<(Option<usize>, &str), Problem> {
    let Some(precision) = clause.strip_prefix('.') else { return Ok((None, clause)) };
    let length = precision.find(|c: char| !c.is_ascii_digit()).unwrap_or(precision.len());
    match precision[..length].parse() {
        Ok(decimals) if decimals <= PRECISE => Ok((Some(decimals), &precision[length..])),
        _ => Err(format!("format() needs at most {PRECISE} decimals").into()),
    }
}

/// Writes any value.
fn write(text: &mut String, value: &Value) -> Result<(), Problem> {
    match value {
        Value::Null => text.push_str("null"),
        Value::String(content) => text.push_str(content),
        Value::Bytes(bytes) => text.push_str(&String::from_utf8_lossy(bytes)),
        Value::List(items) => {
            let writes = items.iter().map(|item| move |text: &mut String| write(text, item));
            enclosed(text, ["[", "]"], writes)?;
        }
        Value::Map(map) => {
            let writes = map.iter().map(|(key, value)| {
                move |text: &mut String| {
                    write(text, &key.into())?;
                    text.push_str(": ");
                    write(text, value)
                }
            });
            enclosed(text, ["{", "}"], writes)?;
        }
        Value::Double(number) => text.push_str(&plain(*number)),
        other => match convert::scalar(other) {
            Some(content) => text.push_str(&content),
            None => return Err(format!("format() cannot write a value of type {}", other.type_name()).into()),
        },
    }
    Ok(())
}

fn enclosed(
    text: &mut String,
    [open, close]: [&str; 2],
    writes: impl Iterator<Item = impl Fn(&mut String) -> Result<(), Problem>>,
) -> Result<(), Problem> {
    text.push_str(open);
    for (index, write) in writes.enumerate() {
        text.push_str(if index > 0 { ", " } else { "" });
        write(text)?;
    }
    text.push_str(close);
    Ok(())
}

#[allow(clippy::cast_precision_loss, reason = "that is what %f of an int means")]
fn decimal(verb: char, precision: usize, value: &Value) -> Result<String, Problem> {
    let number = match value {
        Value::Double(number) => *number,
        Value::Int(number) => *number as f64,
        Value::Uint(number) => *number as f64,
        other => return Err(format!("format() writes numbers with %{verb}, not {}", other.type_name()).into()),
    };
    if !number.is_finite() {
        return Ok(plain(number));
    }
    if verb == 'f' {
        return Ok(format!("{number:.precision$}"));
    }
    let scientific = format!("{number:.precision$e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
    Ok(format!("{mantissa}e{sign}{exponent:0>2}"))
}

/// A number without an exponent.
fn plain(number: f64) -> String {
    match number {
        f64::INFINITY => "Infinity".to_owned(),
        f64::NEG_INFINITY => "-Infinity".to_owned(),
        number => number.to_string(),
    }
}

fn digits(verb: char, value: &Value) -> Result<String, Problem> {
    Ok(match (verb, value) {
        ('d', Value::Int(number)) => number.to_string(),
        ('d', Value::Uint(number)) => number.to_string(),
        ('d', Value::Double(number)) => plain(*number),
        ('b', Value::Bool(value)) => u8::from(*value).to_string(),
        ('x', Value::String(text)) => hex(text.as_bytes()),
        ('X', Value::String(text)) => hex(text.as_bytes()).to_uppercase(),
        ('x', Value::Bytes(bytes)) => hex(bytes),
        ('X', Value::Bytes(bytes)) => hex(bytes).to_uppercase(),
        (_, Value::Int(number)) if verb != 'd' => {
            let sign = if *number < 0 { "-" } else { "" };
            format!("{sign}{}", radix(verb, number.unsigned_abs()))
        }
        (_, Value::Uint(number)) if verb != 'd' => radix(verb, *number),
        _ => return Err(format!("format() cannot write {} with %{verb}", value.type_name()).into()),
    })
}

fn radix(verb: char, number: u64) -> String {
    match verb {
        'b' => format!("{number:b}"),
        'o' => format!("{number:o}"),
        'x' => format!("{number:x}"),
        _ => format!("{number:X}"),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
