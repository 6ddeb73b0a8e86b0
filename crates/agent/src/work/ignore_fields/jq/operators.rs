//! Numbers, comparisons and arithmetic.

use std::ops::Range;

use jaq_core::ops::{Cmp, Math};
use serde_json::{Number, Value};

use super::{compare::compare, evaluate::Stop, value::type_name};

/// The position of an element, which may be counted from the end; `None` if that is before the first.
pub(super) fn position(list: &Value, number: &Number) -> Option<usize> {
    let index = whole(number.as_f64()?);
    let len = list.as_array().map_or(0, Vec::len);
    let from_end = || index.checked_add(i64::try_from(len).ok()?);
    usize::try_from(if index < 0 { from_end()? } else { index }).ok()
}

pub(super) fn range(len: usize, from: Option<i64>, to: Option<i64>) -> Range<usize> {
    let clamp = |bound: i64| {
        let from_end = || len.saturating_sub(usize::try_from(bound.unsigned_abs()).unwrap_or(usize::MAX));
        usize::try_from(bound).map_or_else(|_| from_end(), |bound| bound.min(len))
    };
    let (start, end) = (from.map_or(0, clamp), to.map_or(len, clamp));
    start..end.max(start)
}

pub(super) fn whole(number: f64) -> i64 {
    // Saturates.
    #[allow(clippy::cast_possible_truncation)]
    let whole = number.floor() as i64;
    whole
}

pub(super) fn number(text: &str) -> Result<Value, Stop> {
    let read = || text.parse::<f64>().ok().map(number_of);
    let whole = text.parse::<i64>().ok().map(Value::from);
    whole.or_else(read).ok_or_else(|| Stop::Error(format!("{text} is no number")))
}

pub(super) fn number_of(number: f64) -> Value {
    #[allow(clippy::cast_precision_loss)]
    let is_whole = number.fract() == 0.0 && number.abs() < i64::MAX as f64;
    if is_whole { Value::from(whole(number)) } else { Number::from_f64(number).map_or(Value::Null, Value::Number) }
}

pub(super) fn holds(cmp: Cmp, a: &Value, b: &Value) -> bool {
    let order = compare(a, b);
    match cmp {
        Cmp::Lt => order.is_lt(),
        Cmp::Le => order.is_le(),
        Cmp::Gt => order.is_gt(),
        Cmp::Ge => order.is_ge(),
        Cmp::Eq => order.is_eq(),
        Cmp::Ne => order.is_ne(),
    }
}

pub(super) fn arithmetic(math: Math, a: &Value, b: &Value) -> Result<Value, Stop> {
    match (math, a, b) {
        (Math::Add, Value::Null, other) | (Math::Add, other, Value::Null) => Ok(other.clone()),
        (Math::Add, Value::String(a), Value::String(b)) => Ok(Value::String(format!("{a}{b}"))),
        (_, Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64().unwrap_or_default(), b.as_f64().unwrap_or_default());
            if b == 0.0 && matches!(math, Math::Div | Math::Rem) {
                return Err(Stop::Error("a division by zero".to_owned()));
            }
            Ok(number_of(math.run(a, b)))
        }
        _ => Err(Stop::Error(format!("{} {} {} has no result", type_name(a), math.as_str(), type_name(b)))),
    }
}
