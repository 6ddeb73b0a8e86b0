//! JSON documents for property tests.

use proptest::prelude::*;
use serde_json::Value;

/// Booleans, small numbers and short texts.
pub(crate) fn scalars() -> impl Strategy<Value = Value> + Clone {
    prop_oneof![
        any::<bool>().prop_map(Value::from),
        (-3i64..3).prop_map(Value::from),
        "[a-c]{0,2}".prop_map(Value::from),
    ]
}

/// Documents with these leaves, and with keys that match a regular expression.
pub(crate) fn documents(
    leaves: impl Strategy<Value = Value> + 'static,
    keys: &'static str,
) -> impl Strategy<Value = Value> {
    leaves.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(keys, inner, 0..4).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}
