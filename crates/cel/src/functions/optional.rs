//! Optional values.

use super::{Function, Outcome, mismatch};
use crate::{Meter, Value, budget::LIST};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::global("optional.none", 0..=0, |_, _| Ok(Value::Optional(None))),
    Function::global("optional.of", 1..=1, of),
    Function::global("optional.ofNonZeroValue", 1..=1, of_non_zero_value),
    Function::method("hasValue", 1..=1, has_value),
    Function::method("value", 1..=1, value),
    Function::method("or", 2..=2, or),
    Function::method("orValue", 2..=2, or_value),
    Function::method("first", 1..=1, |_, args| element("first", args, <[Value]>::first)),
    Function::method("last", 1..=1, |_, args| element("last", args, <[Value]>::last)),
    Function::global("optional.unwrap", 1..=1, |meter, args| unwrap("optional.unwrap", meter, args)),
    Function::method("unwrapOpt", 1..=1, |meter, args| unwrap("unwrapOpt", meter, args)),
];

/// An element of a list, if it has one.
fn element(name: &str, args: &[Value], find: fn(&[Value]) -> Option<&Value>) -> Outcome {
    match args {
        [Value::List(items)] => Ok(Value::Optional(find(items).cloned().map(Into::into))),
        _ => mismatch(name, args),
    }
}

/// The values of a list of optionals.
fn unwrap(name: &str, meter: &mut Meter, args: &[Value]) -> Outcome {
    let [Value::List(items)] = args else { return mismatch(name, args) };
    meter.charge(LIST + items.len())?;
    let value = |item: &Value| match item {
        Value::Optional(value) => Ok(value.as_ref().map(|value| value.as_ref().clone())),
        other => Err(format!("{name}() needs a list of optionals, and found {}", other.type_name())),
    };
    let values = items.iter().filter_map(|item| value(item).transpose());
    Ok(Value::List(values.collect::<Result<Vec<_>, _>>()?.into()))
}

fn of(_: &mut Meter, args: &[Value]) -> Outcome {
    match args {
        [value] => Ok(Value::some(value.clone())),
        _ => mismatch("optional.of", args),
    }
}

fn of_non_zero_value(_: &mut Meter, args: &[Value]) -> Outcome {
    match args {
        [value] if is_zero(value) => Ok(Value::Optional(None)),
        [value] => Ok(Value::some(value.clone())),
        _ => mismatch("optional.ofNonZeroValue", args),
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) | Value::Int(0) | Value::Uint(0) | Value::Optional(None) => true,
        Value::Double(number) => *number == 0.0,
        Value::String(text) => text.is_empty(),
        Value::Bytes(bytes) => bytes.is_empty(),
        Value::List(items) => items.is_empty(),
        Value::Map(map) => map.is_empty(),
        Value::Duration(duration) => duration.is_zero(),
        _ => false,
    }
}

fn has_value(_: &mut Meter, args: &[Value]) -> Outcome {
    match args {
        [Value::Optional(value)] => Ok(Value::Bool(value.is_some())),
        _ => mismatch("hasValue", args),
    }
}

fn value(_: &mut Meter, args: &[Value]) -> Outcome {
    match args {
        [Value::Optional(Some(value))] => Ok(value.as_ref().clone()),
        [Value::Optional(None)] => Err("the optional has no value; use orValue() or hasValue()".into()),
        _ => mismatch("value", args),
    }
}

fn or(_: &mut Meter, args: &[Value]) -> Outcome {
    match args {
        [first @ Value::Optional(Some(_)), Value::Optional(_)] => Ok(first.clone()),
        [Value::Optional(None), other @ Value::Optional(_)] => Ok(other.clone()),
        _ => mismatch("or", args),
    }
}

fn or_value(_: &mut Meter, args: &[Value]) -> Outcome {
    match args {
        [Value::Optional(Some(value)), _] => Ok(value.as_ref().clone()),
        [Value::Optional(None), other] => Ok(other.clone()),
        _ => mismatch("orValue", args),
    }
}
