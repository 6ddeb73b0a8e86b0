//! Fields of JSON objects, where what is null counts as absent and what is of another type is named.

use serde_json::Value;

use super::{ConvertError, Object};

/// The object under `key`, if there is one.
pub(super) fn object<'a>(
    parent: &'a mut Object,
    key: &str,
    path: &str,
) -> Result<Option<&'a mut Object>, ConvertError> {
    match parent.get_mut(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(object)) => Ok(Some(object)),
        Some(_) => Err(malformed(path, key, "an object")),
    }
}

/// The object under `key`, made where there is none.
pub(super) fn object_or_new<'a>(parent: &'a mut Object, key: &str, path: &str) -> Result<&'a mut Object, ConvertError> {
    let value = parent.entry(key).or_insert(Value::Null);
    if value.is_null() {
        *value = Value::Object(Object::new());
    }
    value.as_object_mut().ok_or_else(|| malformed(path, key, "an object"))
}

/// Takes the object under `key` out.
pub(super) fn take_object(parent: &mut Object, key: &str, path: &str) -> Result<Option<Object>, ConvertError> {
    match parent.remove(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(object)) => Ok(Some(object)),
        Some(_) => Err(malformed(path, key, "an object")),
    }
}

/// Takes the text under `key` out; empty text counts as absent.
pub(super) fn take_text(parent: &mut Object, key: &str, path: &str) -> Result<Option<String>, ConvertError> {
    match parent.remove(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text).filter(|text| !text.is_empty())),
        Some(_) => Err(malformed(path, key, "a string")),
    }
}

/// Replaces every object in the list under `key`; the function is given its path too.
pub(super) fn map_list(
    parent: &mut Object,
    key: &str,
    path: &str,
    mut map: impl FnMut(Object, &str) -> Result<Object, ConvertError>,
) -> Result<(), ConvertError> {
    let items = match parent.get_mut(key) {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::Array(items)) => items,
        Some(_) => return Err(malformed(path, key, "a list")),
    };
    for (index, item) in items.iter_mut().enumerate() {
        let at = format!("{path}.{key}[{index}]");
        let Value::Object(object) = item.take() else {
            return Err(ConvertError::Malformed { path: at, expected: "an object" });
        };
        *item = Value::Object(map(object, &at)?);
    }
    Ok(())
}

/// Gives a field another name.
pub(super) fn rename(parent: &mut Object, from: &str, to: &str) {
    if let Some(value) = parent.remove(from) {
        parent.insert(to.to_owned(), value);
    }
}

/// Removes an empty object.
pub(super) fn remove_if_empty(parent: &mut Object, key: &str) {
    if matches!(parent.get(key), Some(Value::Object(object)) if object.is_empty()) {
        parent.remove(key);
    }
}

/// Sets an annotation.
pub(super) fn annotate(object: &mut Object, key: &str, value: String) -> Result<(), ConvertError> {
    let metadata = object_or_new(object, "metadata", "")?;
    object_or_new(metadata, "annotations", "metadata")?.insert(key.to_owned(), value.into());
    Ok(())
}

/// Takes an annotation out, if it is one that `read` understands.
pub(super) fn take_annotation<T>(
    object: &mut Object,
    key: &str,
    read: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>, ConvertError> {
    let Some(metadata) = self::object(object, "metadata", "")? else { return Ok(None) };
    let Some(annotations) = self::object(metadata, "annotations", "metadata")? else { return Ok(None) };
    let Some(value) = annotations.get(key).and_then(Value::as_str).and_then(read) else { return Ok(None) };
    annotations.remove(key);
    remove_if_empty(metadata, "annotations");
    Ok(Some(value))
}

fn malformed(path: &str, key: &str, expected: &'static str) -> ConvertError {
    let path = if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    ConvertError::Malformed { path, expected }
}
