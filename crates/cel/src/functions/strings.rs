//! Functions of strings. Places in a text are counted in characters.

use super::{Function, Outcome, lists, mismatch};
use crate::{Meter, Problem, Value, budget::LIST};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::method("charAt", 2..=2, char_at),
    Function::method("indexOf", 2..=3, index_of),
    Function::method("lastIndexOf", 2..=3, last_index_of),
    Function::method("join", 1..=2, join),
    Function::method("lowerAscii", 1..=1, |meter, args| mapped("lowerAscii", meter, args, str::to_ascii_lowercase)),
    Function::method("upperAscii", 1..=1, |meter, args| mapped("upperAscii", meter, args, str::to_ascii_uppercase)),
    Function::method("trim", 1..=1, |meter, args| mapped("trim", meter, args, |text| text.trim().to_owned())),
    Function::method("reverse", 1..=1, |meter, args| {
        mapped("reverse", meter, args, |text| text.chars().rev().collect())
    }),
    Function::global("strings.quote", 1..=1, |meter, args| mapped("strings.quote", meter, args, quote)),
    Function::method("replace", 3..=4, replace),
    Function::method("split", 2..=3, split),
    Function::method("substring", 2..=3, substring),
];

/// A text that is made from another one, and is at most six times as long.
fn mapped(name: &str, meter: &mut Meter, args: &[Value], map: impl Fn(&str) -> String) -> Outcome {
    let [Value::String(text)] = args else { return mismatch(name, args) };
    meter.charge_bytes(text.len().saturating_mul(6))?;
    Ok(Value::string(map(text)))
}

fn quote(text: &str) -> String {
    let escape = |character: char| match character {
        '\x07' => r"\a".to_owned(),
        '\x08' => r"\b".to_owned(),
        '\x0c' => r"\f".to_owned(),
        '\x0b' => r"\v".to_owned(),
        '\n' => r"\n".to_owned(),
        '\r' => r"\r".to_owned(),
        '\t' => r"\t".to_owned(),
        '\\' | '"' => format!("\\{character}"),
        other => other.to_string(),
    };
    format!("\"{}\"", text.chars().map(escape).collect::<String>())
}

fn char_at(meter: &mut Meter, args: &[Value]) -> Outcome {
    let [Value::String(text), Value::Int(place)] = args else { return mismatch("charAt", args) };
    meter.charge_bytes(text.len())?;
    let start = offset(text, *place)?;
    Ok(Value::string(text[start..].chars().next().map(String::from).unwrap_or_default()))
}

/// Where in a text its n-th character begins; the end is a place, too.
fn offset(text: &str, place: i64) -> Result<usize, Problem> {
    let mut ends = text.char_indices().map(|(start, _)| start).chain([text.len()]);
    let found = usize::try_from(place).ok().and_then(|place| ends.nth(place));
    found.ok_or_else(|| format!("the text has no place {place}").into())
}

/// Where in a text its n-th character begins; `None` behind the last one.
fn start(text: &str, place: i64) -> Result<Option<usize>, Problem> {
    match usize::try_from(place) {
        Ok(place) => Ok(text.char_indices().map(|(start, _)| start).nth(place)),
        Err(_) => Err(format!("the text has no place {place}").into()),
    }
}

/// At which character of a text a byte is.
fn place(text: &str, start: Option<usize>) -> Value {
    let count = |start| i64::try_from(text[..start].chars().count()).unwrap_or(i64::MAX);
    Value::Int(start.map_or(-1, count))
}

fn index_of(meter: &mut Meter, args: &[Value]) -> Outcome {
    let (text, part, from) = match args {
        [Value::List(items), value] => return lists::position(meter, items.iter().enumerate(), value),
        [Value::String(text), Value::String(part)] => (text, part, 0),
        [Value::String(_), Value::String(part), Value::Int(place)] if part.is_empty() => return Ok(Value::Int(*place)),
        [Value::String(text), Value::String(part), Value::Int(place)] => {
            meter.charge_bytes(text.len())?;
            match start(text, *place)? {
                Some(start) => (text, part, start),
                None => return Ok(Value::Int(-1)),
            }
        }
        _ => return mismatch("indexOf", args),
    };
    meter.charge_bytes(text.len() * 2 + part.len())?;
    Ok(place(text, text[from..].find(part.as_ref()).map(|found| from + found)))
}

fn last_index_of(meter: &mut Meter, args: &[Value]) -> Outcome {
    let (text, part, until) = match args {
        [Value::List(items), value] => return lists::position(meter, items.iter().enumerate().rev(), value),
        [Value::String(text), Value::String(part)] => (text, part, text.len()),
        [Value::String(_), Value::String(part), Value::Int(place)] if part.is_empty() => return Ok(Value::Int(*place)),
        // The part may begin at that place and end behind it.
        [Value::String(text), Value::String(part), Value::Int(place)] => {
            meter.charge_bytes(text.len())?;
            match start(text, *place)? {
                Some(start) => (text, part, text.len().min(start + part.len())),
                None => return Ok(Value::Int(-1)),
            }
        }
        _ => return mismatch("lastIndexOf", args),
    };
    meter.charge_bytes(text.len() * 2 + part.len())?;
    let until = (until..=text.len()).find(|end| text.is_char_boundary(*end)).unwrap_or(text.len());
    Ok(place(text, text[..until].rfind(part.as_ref())))
}

fn join(meter: &mut Meter, args: &[Value]) -> Outcome {
    let (items, separator) = match args {
        [Value::List(items)] => (items, ""),
        [Value::List(items), Value::String(separator)] => (items, separator.as_ref()),
        _ => return mismatch("join", args),
    };
    let mut joined = String::new();
    for (index, item) in items.iter().enumerate() {
        let Value::String(text) = item else { return Err("join() needs a list of strings".into()) };
        meter.charge(1)?;
        meter.charge_bytes(text.len() + separator.len())?;
        joined.push_str(if index > 0 { separator } else { "" });
        joined.push_str(text);
    }
    Ok(Value::string(joined))
}

/// How often to do something, where a negative number means without limit.
fn limit(args: &[Value]) -> Option<usize> {
    match args.get(args.len().saturating_sub(1)) {
        Some(Value::Int(number)) => usize::try_from(*number).ok(),
        _ => None,
    }
}

fn replace(meter: &mut Meter, args: &[Value]) -> Outcome {
    let (text, old, new) = match args {
        [Value::String(text), Value::String(old), Value::String(new)]
        | [Value::String(text), Value::String(old), Value::String(new), Value::Int(_)] => (text, old, new),
        _ => return mismatch("replace", args),
    };
    meter.charge_bytes(text.len())?;
    let limit = limit(args).unwrap_or(usize::MAX);
    let count = text.matches(old.as_ref()).take(limit).count();
    meter.charge_bytes(text.len().saturating_add(count.saturating_mul(new.len())))?;
    Ok(Value::string(text.replacen(old.as_ref(), new, count)))
}

fn split(meter: &mut Meter, args: &[Value]) -> Outcome {
    let (text, separator) = match args {
        [Value::String(text), Value::String(separator)]
        | [Value::String(text), Value::String(separator), Value::Int(_)] => (text, separator.as_ref()),
        _ => return mismatch("split", args),
    };
    meter.charge(LIST)?;
    meter.charge_bytes(text.len())?;
    let limit = limit(args).unwrap_or(usize::MAX);
    let most = if separator.is_empty() { text.len() } else { text.matches(separator).count() + 1 };
    meter.charge(most.min(limit).saturating_mul(3))?;
    let parts: Vec<Value> = match separator {
        _ if limit == 0 => Vec::new(),
        "" => characters(text, limit).into_iter().map(Value::string).collect(),
        _ => text.splitn(limit, separator).map(Value::string).collect(),
    };
    Ok(Value::List(parts.into()))
}

/// Each character, and the rest of the text as the last part.
fn characters(text: &str, limit: usize) -> Vec<&str> {
    let starts: Vec<_> = text.char_indices().map(|(start, _)| start).take(limit).collect();
    let end = |index: usize| starts.get(index + 1).copied().unwrap_or(text.len());
    starts.iter().enumerate().map(|(index, start)| &text[*start..end(index)]).collect()
}

fn substring(meter: &mut Meter, args: &[Value]) -> Outcome {
    let (text, start, end) = match args {
        [Value::String(text), Value::Int(start)] => (text, *start, None),
        [Value::String(text), Value::Int(start), Value::Int(end)] => (text, *start, Some(*end)),
        _ => return mismatch("substring", args),
    };
    meter.charge_bytes(text.len() * 2)?;
    let (from, until) = (offset(text, start)?, end.map_or(Ok(text.len()), |end| offset(text, end))?);
    match text.get(from..until) {
        Some(part) => Ok(Value::string(part)),
        None => Err(format!("substring() ends before it starts, at {start}").into()),
    }
}
