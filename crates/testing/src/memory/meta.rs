//! The metadata that the server sets.

use std::time::SystemTime;

use rand::Rng as _;
use serde_json::{Map, Value, json};

use super::failure::Failure;
use super::kinds::Kind;

/// The characters of random names in Kubernetes: no vowels, so no words.
const CHARACTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX_LENGTH: usize = 5;
const LONGEST_NAME: usize = 253;

/// A text field of the metadata, empty if it is missing.
pub(super) fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

pub(super) fn set(object: &mut Value, field: &str, value: Value) {
    object["metadata"][field] = value;
}

pub(super) fn clear(object: &mut Value, fields: &[&str]) {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|key, _| !fields.contains(&key.as_str()));
    }
}

/// Copies the fields that a writer cannot change from `old` to `new`.
pub(super) fn keep(new: &mut Value, old: &Value, fields: &[&str]) {
    for field in fields {
        match old["metadata"].get(field) {
            Some(value) => set(new, field, value.clone()),
            None => clear(new, &[field]),
        }
    }
}

pub(super) fn finalizers(object: &Value) -> Vec<&str> {
    object["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

pub(super) fn is_deleting(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// Now, in the format of Kubernetes.
pub(super) fn now() -> Value {
    let now = jiff::Timestamp::try_from(SystemTime::now()).unwrap_or_default();
    json!(now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

/// A random UUID, version 4.
pub(super) fn uid() -> Value {
    let bits: u128 = rand::random();
    let hex = format!("{:032x}", bits & !(0xf << 76) & !(0x3 << 62) | 0x4 << 76 | 0x2 << 62);
    json!(format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]))
}

/// An unused name with this prefix.
pub(super) fn generated_name(prefix: &str) -> String {
    let mut random = rand::rng();
    let suffix = (0..SUFFIX_LENGTH).map(|_| CHARACTERS[random.random_range(0..CHARACTERS.len())]);
    format!("{prefix}{}", suffix.map(char::from).collect::<String>())
}

/// Reads an object of the kind, and sets its kind and API version.
pub(super) fn parse(kind: &Kind, body: &[u8]) -> Result<Value, Failure> {
    let mut object: Value = serde_json::from_slice(body).map_err(|error| Failure::bad_request(error.to_string()))?;
    if !object.is_object() {
        return Err(Failure::bad_request("the body of the request is not an object"));
    }
    for (field, expected) in [("apiVersion", kind.api_version()), ("kind", kind.kind.into())] {
        match object[field].as_str().unwrap_or_default() {
            "" if kind.custom => return Err(Failure::bad_request(format!("{field} must be set in the object"))),
            "" => object[field] = json!(expected),
            given if given == expected => {}
            given => {
                let message = format!("{field} of the object ({given}) does not match that of the URL ({expected})");
                return Err(Failure::bad_request(message));
            }
        }
    }
    if !object["metadata"].is_object() {
        object["metadata"] = Value::Object(Map::new());
    }
    Ok(object)
}

/// Gives the object the namespace of the URL.
pub(super) fn set_namespace(object: &mut Value, namespace: &str) -> Result<(), Failure> {
    let given = text(object, "namespace");
    if !given.is_empty() && given != namespace {
        let message = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Failure::bad_request(message));
    }
    match namespace {
        "" => clear(object, &["namespace"]),
        namespace => set(object, "namespace", json!(namespace)),
    }
    Ok(())
}

/// Removes empty lists and maps from the metadata: a server does not return them.
pub(super) fn tidy(object: &mut Value) {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    };
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|_, value| !is_empty(value));
    }
}

pub(super) fn check_name(kind: &Kind, name: &str) -> Result<(), Failure> {
    let invalid = |reason, field, cause: &str| Err(Failure::invalid(kind, name, reason, field, cause));
    if name.is_empty() {
        return invalid("FieldValueRequired", "metadata.name", "Required value: name or generateName is required");
    }
    let is_label = |label: &str| {
        let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        !label.is_empty() && label.bytes().all(inner) && !label.starts_with('-') && !label.ends_with('-')
    };
    match name.len() <= LONGEST_NAME && name.split('.').all(is_label) {
        true => Ok(()),
        false => invalid(
            "FieldValueInvalid",
            "metadata.name",
            &format!(
                "Invalid value: {name:?}: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
                      characters, '-' or '.', and must start and end with an alphanumeric character"
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uid_is_a_random_uuid() {
        let uid = uid();
        let parts: Vec<_> = uid.as_str().unwrap().split('-').map(str::len).collect();
        assert_eq!(parts, [8, 4, 4, 4, 12]);
        assert_eq!(&uid.as_str().unwrap()[14..15], "4");
        assert!("89ab".contains(&uid.as_str().unwrap()[19..20]));
    }
}
