//! Operators with one or two operands.

use std::{cmp::Ordering, sync::Arc};

use crate::{Key, Value, ast::Mode, budget::Meter, error::Problem, functions::time, value::Map};

/// An operator with two operands. The logical ones are not among them, since they need not read both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
}

type Result<T = Value> = std::result::Result<T, Problem>;

impl Operator {
    fn symbol(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::In => "in",
        }
    }

    pub(crate) fn apply(self, meter: &mut Meter, left: &Value, right: &Value) -> Result {
        match self {
            Self::Equal => equal(meter, left, right).map(Value::Bool),
            Self::NotEqual => equal(meter, left, right).map(|equal| Value::Bool(!equal)),
            Self::In => contains(meter, right, left).map(Value::Bool),
            Self::Less => self.order(meter, left, right, Ordering::is_lt),
            Self::LessOrEqual => self.order(meter, left, right, Ordering::is_le),
            Self::Greater => self.order(meter, left, right, Ordering::is_gt),
            Self::GreaterOrEqual => self.order(meter, left, right, Ordering::is_ge),
            Self::Add => add(meter, left, right),
            Self::Subtract | Self::Multiply | Self::Divide | Self::Remainder => self.arithmetic(left, right),
        }
    }

    fn order(self, meter: &mut Meter, left: &Value, right: &Value, fits: fn(Ordering) -> bool) -> Result {
        match compare(meter, left, right)? {
            Some(order) => Ok(Value::Bool(fits(order))),
            None => Err(self.mismatch(left, right)),
        }
    }

    fn arithmetic(self, left: &Value, right: &Value) -> Result {
        match (left, right) {
            (Value::Int(a), Value::Int(b)) => self.ints(*a, *b).map(Value::Int).ok_or_else(|| self.overflow("int")),
            (Value::Uint(a), Value::Uint(b)) => {
                self.uints(*a, *b).map(Value::Uint).ok_or_else(|| self.overflow("uint"))
            }
            (Value::Double(a), Value::Double(b)) => {
                self.doubles(*a, *b).map(Value::Double).ok_or_else(|| self.mismatch(left, right))
            }
            (Value::Timestamp(a), Value::Timestamp(b)) if self == Self::Subtract => {
                time::duration(Some(a.duration_since(*b))).ok_or_else(|| self.overflow("duration"))
            }
            (Value::Timestamp(a), Value::Duration(b)) if self == Self::Subtract => {
                time::timestamp(a.checked_sub(*b).ok()).ok_or_else(|| self.overflow("timestamp"))
            }
            (Value::Duration(a), Value::Duration(b)) if self == Self::Subtract => {
                time::duration(a.checked_sub(*b)).ok_or_else(|| self.overflow("duration"))
            }
            _ => Err(self.mismatch(left, right)),
        }
    }

    fn ints(self, a: i64, b: i64) -> Option<i64> {
        match self {
            Self::Subtract => a.checked_sub(b),
            Self::Multiply => a.checked_mul(b),
            Self::Divide => a.checked_div(b),
            Self::Remainder => a.checked_rem(b),
            _ => None,
        }
    }

    fn uints(self, a: u64, b: u64) -> Option<u64> {
        match self {
            Self::Subtract => a.checked_sub(b),
            Self::Multiply => a.checked_mul(b),
            Self::Divide => a.checked_div(b),
            Self::Remainder => a.checked_rem(b),
            _ => None,
        }
    }

    fn doubles(self, a: f64, b: f64) -> Option<f64> {
        match self {
            Self::Subtract => Some(a - b),
            Self::Multiply => Some(a * b),
            Self::Divide => Some(a / b),
            _ => None,
        }
    }

    fn overflow(self, type_: &str) -> Problem {
        format!("the result of {} is no {type_}: division by zero, or out of range", self.symbol()).into()
    }

    fn mismatch(self, left: &Value, right: &Value) -> Problem {
        let (symbol, left, right) = (self.symbol(), left.type_name(), right.type_name());
        format!("{symbol} is not defined for {left} and {right}").into()
    }
}

/// How two values compare, which is paid for.
pub(crate) fn compare(meter: &mut Meter, left: &Value, right: &Value) -> Result<Option<Ordering>> {
    match (left, right) {
        (Value::String(a), Value::String(b)) => meter.charge_bytes(a.len().min(b.len()))?,
        (Value::Bytes(a), Value::Bytes(b)) => meter.charge_bytes(a.len().min(b.len()))?,
        _ => {}
    }
    Ok(left.compare(right))
}

fn add(meter: &mut Meter, left: &Value, right: &Value) -> Result {
    let overflow = |type_| move || Operator::Add.overflow(type_);
    match (left, right) {
        (Value::Int(a), Value::Int(b)) => a.checked_add(*b).map(Value::Int).ok_or_else(overflow("int")),
        (Value::Uint(a), Value::Uint(b)) => a.checked_add(*b).map(Value::Uint).ok_or_else(overflow("uint")),
        (Value::Double(a), Value::Double(b)) => Ok(Value::Double(a + b)),
        (Value::String(a), Value::String(b)) => {
            meter.charge_bytes(a.len() + b.len())?;
            Ok(Value::string([a.as_ref(), b.as_ref()].concat()))
        }
        (Value::Bytes(a), Value::Bytes(b)) => {
            meter.charge_bytes(a.len() + b.len())?;
            Ok(Value::Bytes([a.as_ref(), b.as_ref()].concat().into()))
        }
        (Value::List(a), Value::List(b)) => {
            meter.charge(a.len() + b.len())?;
            Ok(Value::List([a.as_ref(), b.as_ref()].concat().into()))
        }
        (Value::Duration(a), Value::Duration(b)) => time::duration(a.checked_add(*b)).ok_or_else(overflow("duration")),
        (Value::Timestamp(time), Value::Duration(duration)) | (Value::Duration(duration), Value::Timestamp(time)) => {
            time::timestamp(time.checked_add(*duration).ok()).ok_or_else(overflow("timestamp"))
        }
        _ => Err(Operator::Add.mismatch(left, right)),
    }
}

/// Whether two values are equal. Those of different types are not, but for numbers.
pub(crate) fn equal(meter: &mut Meter, left: &Value, right: &Value) -> Result<bool> {
    meter.charge(1)?;
    Ok(match (left, right) {
        (Value::Null, Value::Null) => true,
        (Value::List(a), Value::List(b)) => a.len() == b.len() && all(meter, a.iter().zip(b.iter()))?,
        (Value::Map(a), Value::Map(b)) => {
            a.len() == b.len() && same_keys(meter, a, b)? && all(meter, a.values().zip(b.values()))?
        }
        (Value::Optional(a), Value::Optional(b)) => match (a, b) {
            (Some(a), Some(b)) => equal(meter, a, b)?,
            (a, b) => a.is_none() && b.is_none(),
        },
        (Value::Type(a), Value::Type(b)) => a == b,
        (Value::Quantity(a), Value::Quantity(b)) => a == b,
        (Value::Ip(a), Value::Ip(b)) => a == b,
        (Value::Cidr(a), Value::Cidr(b)) => a == b,
        (Value::Url(a), Value::Url(b)) => {
            meter.charge_bytes(a.len().min(b.len()))?;
            a == b
        }
        (Value::Semver(a), Value::Semver(b)) => a.cmp(b).is_eq(),
        (Value::Format(a), Value::Format(b)) => a == b,
        _ => compare(meter, left, right)?.is_some_and(Ordering::is_eq),
    })
}

fn same_keys(meter: &mut Meter, a: &Map, b: &Map) -> Result<bool> {
    a.keys().zip(b.keys()).try_fold(true, |so_far, (a, b)| {
        meter.charge_key(a)?;
        Ok(so_far && a == b)
    })
}

fn all<'a>(meter: &mut Meter, mut pairs: impl Iterator<Item = (&'a Value, &'a Value)>) -> Result<bool> {
    pairs.try_fold(true, |so_far, (a, b)| Ok(so_far && equal(meter, a, b)?))
}

/// Whether a list has an element, or a map a key.
pub(crate) fn contains(meter: &mut Meter, container: &Value, value: &Value) -> Result<bool> {
    match container {
        Value::List(items) => {
            for item in items.iter() {
                if equal(meter, item, value)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        Value::Map(map) => Ok(find(meter, map, value.as_key())?.is_some()),
        _ => Err(format!("in is not defined for {}, but for lists and maps", container.type_name()).into()),
    }
}

pub(crate) fn negate(value: &Value) -> Result {
    match value {
        Value::Int(number) => number.checked_neg().map(Value::Int).ok_or_else(|| Operator::Subtract.overflow("int")),
        Value::Double(number) => Ok(Value::Double(-number)),
        other => Err(format!("- is not defined for {}", other.type_name()).into()),
    }
}

/// The value of a map at a key.
fn find<'a>(meter: &mut Meter, map: &'a Map, key: Option<Key>) -> Result<Option<&'a Value>> {
    let Some(key) = key else { return Ok(None) };
    meter.charge_key(&key)?;
    Ok(map.get(&key))
}

/// The field of a value. Of an optional it is optional.
pub(crate) fn select(meter: &mut Meter, value: &Value, field: &Arc<str>, mode: Mode) -> Result {
    let map = match (value, mode) {
        (Value::Optional(None), Mode::Test) => return Ok(Value::Bool(false)),
        (Value::Optional(Some(inner)), Mode::Test) => return select(meter, inner, field, mode),
        (Value::Optional(None), _) => return Ok(Value::Optional(None)),
        (Value::Optional(Some(inner)), _) => return select(meter, inner, field, Mode::Optional),
        (Value::Map(map), _) => map,
        (Value::List(_), _) | (_, Mode::Value) => {
            // The message names the field.
            meter.charge_bytes(field.len())?;
            return Err(format!("there is no field {field} in {}", article(value)).into());
        }
        (_, Mode::Test) => return Ok(Value::Bool(false)),
        (_, Mode::Optional) => return Ok(Value::Optional(None)),
    };
    let found = find(meter, map, Some(Key::String(field.clone())))?;
    match mode {
        Mode::Test => Ok(Value::Bool(found.is_some())),
        Mode::Optional => Ok(Value::Optional(found.cloned().map(Into::into))),
        Mode::Value => found.cloned().ok_or_else(|| format!("there is no field {field}").into()),
    }
}

/// The element of a list at an index, or the value of a map at a key. Of an optional it is optional.
pub(crate) fn index(meter: &mut Meter, value: &Value, index: &Value, is_optional: bool) -> Result {
    let found = match value {
        Value::Optional(None) => return Ok(Value::Optional(None)),
        Value::Optional(Some(inner)) => return self::index(meter, inner, index, true),
        Value::List(items) => {
            let Some(Key::Number(place)) = index.as_key() else {
                return Err(format!("a list has no index of type {}", index.type_name()).into());
            };
            usize::try_from(place).ok().and_then(|place| items.get(place))
        }
        Value::Map(map) => find(meter, map, index.as_key())?,
        _ if is_optional => None,
        _ => return Err(format!("{} has no elements", article(value)).into()),
    };
    match (found, is_optional) {
        (found, true) => Ok(Value::Optional(found.cloned().map(Into::into))),
        (Some(found), false) => Ok(found.clone()),
        (None, false) => Err(missing(index)),
    }
}

fn missing(index: &Value) -> Problem {
    match index {
        Value::Int(number) => format!("there is no element {number}").into(),
        Value::String(key) => format!("there is no key {:?}", key.chars().take(100).collect::<String>()).into(),
        _ => "there is no such element".into(),
    }
}

fn article(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        other => format!("a value of type {}", other.type_name()),
    }
}
