//! Kubernetes' quantities, and how ordered values of Kubernetes' types compare.

use std::cmp::Ordering;

use ocm_apimachinery::quantity::Quantity;

use super::{Function, Outcome, excerpt, mismatch};
use crate::{Meter, Problem, Value};

const NANOS: i128 = 1_000_000_000;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::global("quantity", 1..=1, quantity),
    Function::global("isQuantity", 1..=1, is_quantity),
    Function::method("isInteger", 1..=1, |_, args| {
        of("isInteger", args, |nanos| Ok(Value::Bool(integer(nanos).is_some())))
    }),
    Function::method("asInteger", 1..=1, |_, args| {
        of("asInteger", args, |nanos| {
            integer(nanos).map(Value::Int).ok_or_else(|| "the quantity is no whole number of 64 bits".into())
        })
    }),
    Function::method("asApproximateFloat", 1..=1, |_, args| {
        of("asApproximateFloat", args, |nanos| Ok(Value::Double(approximate(nanos))))
    }),
    Function::method("sign", 1..=1, |_, args| {
        of("sign", args, |nanos| Ok(Value::Int(i64::from(nanos.signum() as i8))))
    }),
    Function::method("add", 2..=2, |_, args| combine("add", args, i128::checked_add)),
    Function::method("sub", 2..=2, |_, args| combine("sub", args, i128::checked_sub)),
    Function::method("isGreaterThan", 2..=2, |_, args| Ok(Value::Bool(compare("isGreaterThan", args)?.is_gt()))),
    Function::method("isLessThan", 2..=2, |_, args| Ok(Value::Bool(compare("isLessThan", args)?.is_lt()))),
    Function::method("compareTo", 2..=2, |_, args| Ok(Value::Int(compare("compareTo", args)? as i64))),
];

fn quantity(meter: &mut Meter, args: &[Value]) -> Outcome {
    let [Value::String(text)] = args else { return mismatch("quantity", args) };
    meter.charge_bytes(text.len())?;
    match text.parse::<Quantity>() {
        Ok(quantity) => Ok(Value::Quantity(quantity.nanos())),
        Err(_) => Err(format!("{} is no quantity", excerpt(text)).into()),
    }
}

fn is_quantity(meter: &mut Meter, args: &[Value]) -> Outcome {
    let [Value::String(text)] = args else { return mismatch("isQuantity", args) };
    meter.charge_bytes(text.len())?;
    Ok(Value::Bool(text.parse::<Quantity>().is_ok()))
}

fn of(name: &str, args: &[Value], value: impl Fn(i128) -> Outcome) -> Outcome {
    match args {
        [Value::Quantity(nanos)] => value(*nanos),
        _ => mismatch(name, args),
    }
}

fn integer(nanos: i128) -> Option<i64> {
    i64::try_from(nanos / NANOS).ok().filter(|_| nanos % NANOS == 0)
}

#[allow(clippy::cast_precision_loss, reason = "it is approximate")]
fn approximate(nanos: i128) -> f64 {
    (nanos / NANOS) as f64 + (nanos % NANOS) as f64 / NANOS as f64
}

/// With another quantity, or an int.
fn combine(name: &str, args: &[Value], combine: fn(i128, i128) -> Option<i128>) -> Outcome {
    let (first, second) = match args {
        [Value::Quantity(first), Value::Quantity(second)] => (*first, *second),
        [Value::Quantity(first), Value::Int(second)] => (*first, i128::from(*second) * NANOS),
        _ => return mismatch(name, args),
    };
    combine(first, second).map(Value::Quantity).ok_or_else(|| "the quantity is too large".into())
}

fn compare(name: &str, args: &[Value]) -> Result<Ordering, Problem> {
    match args {
        [Value::Quantity(a), Value::Quantity(b)] => Ok(a.cmp(b)),
        [Value::Semver(a), Value::Semver(b)] => Ok(a.cmp(b)),
        _ => Err(mismatch(name, args).err().unwrap_or_else(|| name.into())),
    }
}
