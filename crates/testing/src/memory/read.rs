//! Gets and lists objects.

use serde_json::{Value, json};

use super::answer::{Answer, Shape};
use super::call::Call;
use super::failure::Failure;
use super::select::Selection;
use super::store::State;

pub(super) fn get(state: &State, call: &Call, name: &str) -> Result<Answer, Failure> {
    let object = state.get(&call.key(name)).ok_or_else(|| Failure::not_found(&call.kind, name))?;
    Ok(Answer::Json(200, call.shape.of(&object)))
}

pub(super) fn list(state: &State, call: &Call) -> Result<Answer, Failure> {
    let selection = Selection::read(&call.query)?;
    let objects = state.list(call.id, &call.namespace).map(|(_, object)| object);
    let items = objects.filter(|object| selection.matches(object)).map(|object| call.shape.of(object));
    Ok(Answer::Json(200, list_of(call, state.version(), items.collect())))
}

/// A list of the call's kind.
pub(super) fn list_of(call: &Call, version: u64, mut items: Vec<Value>) -> Value {
    let (kind, api_version) = match call.shape {
        Shape::Whole => (format!("{}List", call.kind.kind), call.kind.api_version()),
        Shape::Metadata => ("PartialObjectMetadataList".into(), "meta.k8s.io/v1".into()),
    };
    // Items of built-in kinds have no kind and API version: the list has them.
    if call.shape == Shape::Whole && !call.kind.custom {
        items.iter_mut().filter_map(Value::as_object_mut).for_each(|item| {
            item.remove("kind");
            item.remove("apiVersion");
        });
    }
    json!({
        "kind": kind, "apiVersion": api_version, "metadata": {"resourceVersion": version.to_string()}, "items": items,
    })
}
