//! Strategies for JSON, which shrink towards less of it.

use proptest::{collection::vec, option, prelude::*, sample, strategy::Union};
use serde_json::{Map, Value, json};

/// A strategy whose type does not matter.
pub(super) type Json = BoxedStrategy<Value>;
/// A field of an object, which may be absent.
pub(super) type Field = (&'static str, BoxedStrategy<Option<Value>>);

/// One of these values; the first is the simplest.
pub(super) fn one_of<T: Into<Value>>(values: impl IntoIterator<Item = T>) -> Json {
    sample::select(values.into_iter().map(Into::into).collect::<Vec<Value>>()).boxed()
}

/// Always this value.
pub(super) fn just(value: impl Into<Value>) -> Json {
    Just(value.into()).boxed()
}

/// Mostly the first, and rarely the other.
pub(super) fn mostly(first: Json, rarely: Json) -> Json {
    Union::new_weighted(vec![(60, first), (1, rarely)]).boxed()
}

/// One of these, each with its weight.
pub(super) fn weighted(strategies: impl IntoIterator<Item = (u32, Json)>) -> Json {
    Union::new_weighted(strategies.into_iter().collect()).boxed()
}

/// A list with at most this many items.
pub(super) fn list(item: Json, most: usize) -> Json {
    vec(item, 0..=most).prop_map(Value::Array).boxed()
}

/// A field that is always there.
pub(super) fn has(key: &'static str, value: Json) -> Field {
    (key, value.prop_map(Some).boxed())
}

/// A field that is there half the time.
pub(super) fn may_have(key: &'static str, value: Json) -> Field {
    (key, option::of(value).boxed())
}

/// An object with these fields.
pub(super) fn object(fields: impl IntoIterator<Item = Field>) -> Json {
    let (keys, values): (Vec<_>, Vec<_>) = fields.into_iter().unzip();
    let of = move |values: Vec<Option<Value>>| {
        let present = keys.iter().zip(values).filter_map(|(key, value)| Some(((*key).to_owned(), value?)));
        Value::Object(present.collect::<Map<_, _>>())
    };
    values.prop_map(of).boxed()
}

/// The object with this name, and the namespace unless it is empty. Kubernetes adds more, and what has no UID does not exist.
pub(super) fn named(mut object: Value, namespace: &str, name: &str) -> Value {
    let uid = format!("{namespace}.{name}");
    let metadata =
        object.as_object_mut().and_then(|object| object.entry("metadata").or_insert_with(|| json!({})).as_object_mut());
    let Some(metadata) = metadata else { return object };
    metadata.extend([("name".into(), name.into()), ("uid".into(), uid.into())]);
    metadata.insert("creationTimestamp".into(), super::at(-1_000_000));
    if !namespace.is_empty() {
        metadata.insert("namespace".into(), namespace.into());
    }
    object
}
