//! Functions of lists.

use std::{cmp::Ordering, sync::Arc};

use super::{Function, Outcome, mismatch};
use crate::{
    Meter, Problem, Value,
    operators::{self, Operator, equal},
};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::method("isSorted", 1..=1, is_sorted),
    Function::method("sum", 1..=1, sum),
    Function::method("min", 1..=1, |meter, args| extreme("min", Ordering::Less, meter, args)),
    Function::method("max", 1..=1, |meter, args| extreme("max", Ordering::Greater, meter, args)),
];

/// The first of some places of a list at which it has a value; -1 if there is none.
pub(super) fn position<'a>(
    meter: &mut Meter,
    items: impl Iterator<Item = (usize, &'a Value)>,
    value: &Value,
) -> Outcome {
    for (place, item) in items {
        if equal(meter, item, value)? {
            return Ok(Value::Int(i64::try_from(place).unwrap_or(i64::MAX)));
        }
    }
    Ok(Value::Int(-1))
}

fn list<'a>(name: &str, args: &'a [Value]) -> Result<&'a Arc<[Value]>, Problem> {
    match args {
        [Value::List(items)] => Ok(items),
        _ => Err(mismatch(name, args).err().unwrap_or_else(|| name.into())),
    }
}

/// How two elements compare, which is paid for.
fn compare(name: &str, meter: &mut Meter, a: &Value, b: &Value) -> Result<Ordering, Problem> {
    meter.charge(1)?;
    operators::compare(meter, a, b)?
        .ok_or_else(|| format!("{name}() cannot compare {} and {}", a.type_name(), b.type_name()).into())
}

/// Whether elements such as the first one have an order.
fn check_first(name: &str, items: &[Value]) -> Result<(), Problem> {
    match items.first() {
        Some(Value::Double(_)) | None => Ok(()),
        Some(first) if first.compare(first).is_some() => Ok(()),
        Some(first) => Err(format!("{name}() is not defined for a list of {}", first.type_name()).into()),
    }
}

fn is_sorted(meter: &mut Meter, args: &[Value]) -> Outcome {
    let items = list("isSorted", args)?;
    check_first("isSorted", items)?;
    for pair in items.windows(2) {
        if let [a, b] = pair
            && compare("isSorted", meter, a, b)?.is_gt()
        {
            return Ok(Value::Bool(false));
        }
    }
    Ok(Value::Bool(true))
}

fn sum(meter: &mut Meter, args: &[Value]) -> Outcome {
    let items = list("sum", args)?;
    let Some((first, rest)) = items.split_first() else { return Ok(Value::Int(0)) };
    if !matches!(first, Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::Duration(_)) {
        return Err(format!("sum() is not defined for a list of {}", first.type_name()).into());
    }
    rest.iter().try_fold(first.clone(), |sum, item| {
        meter.charge(1)?;
        Operator::Add.apply(meter, &sum, item)
    })
}

fn extreme(name: &str, wanted: Ordering, meter: &mut Meter, args: &[Value]) -> Outcome {
    let items = list(name, args)?;
    check_first(name, items)?;
    let Some((first, rest)) = items.split_first() else { return Err(format!("{name}() of an empty list").into()) };
    let found = rest.iter().try_fold(first, |so_far, item| {
        Ok::<_, Problem>(if compare(name, meter, item, so_far)? == wanted { item } else { so_far })
    })?;
    Ok(found.clone())
}
