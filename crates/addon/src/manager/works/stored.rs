//! Whether an object of a work is as the API server would store another one.
//!
//! A member that is null is dropped when a work is patched, and numbers are kept as Go's JSON keeps them: `1.0` comes back
//! as `1`. Compared to the letter, such an object would be written again at every reconcile.

use ocm_api::work::v1::Manifest;
use serde_json::{Map, Number, Value};

/// Whether these manifests would be stored as those.
pub(super) fn are_same(stored: &[Manifest], desired: &[Manifest]) -> bool {
    let is_same =
        |(stored, desired): (&Manifest, &Manifest)| stored == desired || same(&stored.value(), &desired.value());
    stored.len() == desired.len() && stored.iter().zip(desired).all(is_same)
}

fn same(stored: &Value, desired: &Value) -> bool {
    match (stored, desired) {
        (Value::Object(stored), Value::Object(desired)) => has_all(stored, desired) && has_all(desired, stored),
        (Value::Array(stored), Value::Array(desired)) => {
            stored.len() == desired.len() && stored.iter().zip(desired).all(|(stored, desired)| same(stored, desired))
        }
        (Value::Number(stored), Value::Number(desired)) => same_number(stored, desired),
        _ => stored == desired,
    }
}

/// Whether every member of one object that is not null is in the other.
fn has_all(one: &Map<String, Value>, other: &Map<String, Value>) -> bool {
    let null = Value::Null;
    one.iter().all(|(key, value)| same(value, other.get(key).unwrap_or(&null)))
}

fn same_number(one: &Number, other: &Number) -> bool {
    match (one.as_i64(), other.as_i64()) {
        (Some(one), Some(other)) => one == other,
        _ => one.as_f64() == other.as_f64(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn is_same(stored: Value, desired: Value) -> bool {
        are_same(&[stored.into()], &[desired.into()])
    }

    #[test]
    fn a_member_that_is_null_is_one_that_is_absent_at_every_depth() {
        let stored = json!({"spec": {"template": {}, "list": [{"a": 1}]}});
        let desired = json!({"spec": {"template": {"affinity": null}, "list": [{"a": 1, "b": null}], "x": null}});
        assert!(is_same(stored.clone(), desired.clone()) && is_same(desired, stored.clone()));
        for other in [json!({"spec": {"template": {}, "list": [{"a": null}]}}), json!({"spec": {"list": [null]}})] {
            assert!(!is_same(stored.clone(), other));
        }
    }

    #[test]
    fn numbers_are_compared_as_the_api_server_keeps_them() {
        assert!(is_same(json!({"a": 1}), json!({"a": 1.0})));
        assert!(is_same(json!({"a": 1.844_674_407_370_955_2e19}), json!({"a": u64::MAX})));
        for (one, other) in [(json!(1), json!(1.5)), (json!(i64::MAX), json!(i64::MAX - 1)), (json!(1), json!("1"))] {
            assert!(!is_same(json!({"a": one}), json!({"a": other})), "{one} {other}");
        }
    }
}
