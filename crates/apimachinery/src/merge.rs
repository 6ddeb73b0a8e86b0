//! JSON merge patches (RFC 7396).

use serde_json::{Map, Value};

/// The merge patch that turns `old` into `new`; `None` when they are equal.
///
/// Objects are compared key by key, a key that is gone becomes `null`, and everything else, lists too, is replaced whole.
/// A merge patch cannot set a key to `null`, so inside `new` a null counts as an absent key.
pub fn diff(old: &Value, new: &Value) -> Option<Value> {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => diff_objects(old, new).map(Value::Object),
        _ => (old != new).then(|| new.clone()),
    }
}

fn diff_objects(old: &Map<String, Value>, new: &Map<String, Value>) -> Option<Map<String, Value>> {
    let mut patch = Map::new();
    for key in old.keys().filter(|key| is_absent(new, key) && !is_absent(old, key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, value) in new.iter().filter(|(_, value)| !value.is_null()) {
        let change = match old.get(key) {
            Some(before) => diff(before, value),
            None => Some(value.clone()),
        };
        patch.extend(change.map(|change| (key.clone(), change)));
    }
    (!patch.is_empty()).then_some(patch)
}

fn is_absent(object: &Map<String, Value>, key: &str) -> bool {
    object.get(key).is_none_or(Value::is_null)
}

/// Applies a merge patch as an API server does.
pub fn apply(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(target) = target else { return };
    for (key, change) in patch {
        if change.is_null() {
            target.remove(key);
        } else {
            apply(target.entry(key.clone()).or_insert(Value::Null), change);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::testing::{documents, scalars};

    fn value() -> impl Strategy<Value = Value> {
        documents(scalars(), "[a-d]")
    }

    proptest! {
        #[test]
        fn applying_the_difference_to_the_old_value_gives_the_new_one(old in value(), new in value()) {
            let mut patched = old.clone();
            if let Some(patch) = diff(&old, &new) {
                apply(&mut patched, &patch);
            }
            prop_assert_eq!(patched, new);
        }

        #[test]
        fn equal_values_have_no_difference(value in value()) {
            prop_assert_eq!(diff(&value, &value), None);
        }
    }

    #[test]
    fn only_what_changed_is_in_the_patch() {
        let old = json!({ "keep": 1, "gone": 2, "deep": { "same": [1], "list": [1, 2] }, "nulled": null });
        let new = json!({ "keep": 1, "deep": { "same": [1], "list": [2] }, "added": { "a": null, "b": 1 } });
        let patch = json!({ "gone": null, "deep": { "list": [2] }, "added": { "a": null, "b": 1 } });
        assert_eq!(diff(&old, &new), Some(patch));
    }

    #[test]
    fn null_and_absent_are_the_same() {
        assert_eq!(diff(&json!({ "a": null }), &json!({})), None);
        assert_eq!(diff(&json!({}), &json!({ "a": null })), None);
    }
}
