//! From what a path selects to a value of the status.

use ocm_api::{limits, work::v1::FieldValue};
use serde_json::Value;

use super::{FeedbackSettings, json_raw};

/// The value to report; `None` if the path leads nowhere or to null. Without JSON the first result counts.
pub(super) fn of(selected: &[&Value], settings: FeedbackSettings) -> Result<Option<FieldValue>, String> {
    match selected {
        [] | [Value::Null] => Ok(None),
        [value] => of_one(value, settings).map(Some),
        several if settings.json_raw => {
            let list = several.iter().map(|value| (*value).clone()).collect();
            json(&Value::Array(list), settings.max_json_raw).map(Some)
        }
        [first, ..] => of(&[first], settings),
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

fn json(value: &Value, most: usize) -> Result<FieldValue, String> {
    let text = json_raw::text(value);
    // The agent counts bytes, and the API server characters.
    let fits_api = text.chars().count() <= limits::MAX_RAW_FEEDBACK_BYTES;
    let most = if text.len() > most { Some(most) } else { (!fits_api).then_some(limits::MAX_RAW_FEEDBACK_BYTES) };
    match most {
        None => Ok(FieldValue::json_raw(text)),
        Some(most) => {
            let length = text.len();
            Err(format!(
                "the value as JSON has {length} bytes, and at most {most} are reported; use a path to a part of it"
            ))
        }
    }
}
