//! From what a path selects to a value of the status.

use ocm_api::{limits, work::v1::FieldValue};
use ocm_apimachinery::budget::Units;
use serde::Serialize;
use serde_json::Value;

use super::{FeedbackSettings, json_raw};

/// The value to report; `None` if the path leads nowhere or to null. Without JSON the first result counts. What is copied is
/// paid for.
pub(super) fn of(
    selected: &[&Value],
    settings: FeedbackSettings,
    units: &mut Units,
) -> Result<Option<FieldValue>, String> {
    let length = selected.first().and_then(|value| value.as_str()).map_or(0, str::len);
    units.charge_bytes(length).map_err(|exceeded| exceeded.to_string())?;
    match selected {
        [] | [Value::Null] => Ok(None),
        [value] => of_one(value, settings).map(Some),
        several if settings.json_raw => json(&several, settings.max_json_raw).map(Some),
        [first, ..] => of(&[first], settings, units),
    }
}

fn of_one(value: &Value, settings: FeedbackSettings) -> Result<FieldValue, String> {
    match value {
        Value::Bool(boolean) => Ok(FieldValue::boolean(*boolean)),
        Value::String(text) => Ok(FieldValue::string(text)),
        Value::Number(number) if number.is_i64() => Ok(FieldValue::integer(number.as_i64().unwrap_or_default())),
        other if settings.json_raw => json(other, settings.max_json_raw),
        other => Err(not_reported(other)),
    }
}

fn not_reported(value: &Value) -> String {
    let (type_, instead) = match value {
        Value::Array(_) => ("a list", "one of its elements"),
        Value::Object(_) => ("an object", "one of its fields"),
        _ => ("no integer of 64 bits", "another field"),
    };
    format!(
        "the value is {type_}, and only integers, strings and booleans are reported; use a path to {instead}, or have the \
         agent started with --feature-gates=RawFeedbackJsonString=true"
    )
}

/// The agent counts bytes, and the API server characters, which have at most four bytes.
fn json(value: &impl Serialize, most: usize) -> Result<FieldValue, String> {
    let most_characters = limits::MAX_RAW_FEEDBACK_BYTES;
    let text = json_raw::text(value, most.min(4 * most_characters));
    text.filter(|text| text.chars().count() <= most_characters).map(FieldValue::json_raw).ok_or_else(|| {
        let most = most.min(most_characters);
        format!("the value as JSON has more than {most} bytes, which are the most that is reported; use a path to a part of it")
    })
}
