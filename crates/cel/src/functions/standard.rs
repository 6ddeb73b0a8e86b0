//! Functions of CEL itself.

use super::{Function, Outcome, mismatch};
use crate::{Meter, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::both("size", 1..=1, size),
    Function::method("contains", 2..=2, contains),
    Function::method("startsWith", 2..=2, starts_with),
    Function::method("endsWith", 2..=2, ends_with),
    Function::global("type", 1..=1, type_of),
    Function::global("dyn", 1..=1, dynamic),
];

fn size(meter: &mut Meter, args: &[Value]) -> Outcome {
    let size = match args {
        [Value::String(text)] => {
            meter.charge_bytes(text.len())?;
            text.chars().count()
        }
        [Value::Bytes(bytes)] => bytes.len(),
        [Value::List(items)] => items.len(),
        [Value::Map(map)] => map.len(),
        _ => return mismatch("size", args),
    };
    Ok(Value::Int(i64::try_from(size).unwrap_or(i64::MAX)))
}

fn contains(meter: &mut Meter, args: &[Value]) -> Outcome {
    let [Value::String(text), Value::String(part)] = args else { return mismatch("contains", args) };
    meter.charge_bytes(text.len() + part.len())?;
    Ok(Value::Bool(text.contains(part.as_ref())))
}

fn starts_with(meter: &mut Meter, args: &[Value]) -> Outcome {
    let [Value::String(text), Value::String(part)] = args else { return mismatch("startsWith", args) };
    meter.charge_bytes(part.len())?;
    Ok(Value::Bool(text.starts_with(part.as_ref())))
}

fn ends_with(meter: &mut Meter, args: &[Value]) -> Outcome {
    let [Value::String(text), Value::String(part)] = args else { return mismatch("endsWith", args) };
    meter.charge_bytes(part.len())?;
    Ok(Value::Bool(text.ends_with(part.as_ref())))
}

fn type_of(_: &mut Meter, args: &[Value]) -> Outcome {
    match args {
        [value] => Ok(Value::Type(value.type_name())),
        _ => mismatch("type", args),
    }
}

fn dynamic(_: &mut Meter, args: &[Value]) -> Outcome {
    match args {
        [value] => Ok(value.clone()),
        _ => mismatch("dyn", args),
    }
}
