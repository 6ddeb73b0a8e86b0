//! Deletes objects: at once, or when their last finalizer is removed.

use std::sync::Arc;

use serde_json::{Value, json};

use super::answer::{Answer, Shape};
use super::call::Call;
use super::failure::{Failure, details};
use super::kinds::Kind;
use super::read::list_of;
use super::select::Selection;
use super::store::{Key, State};
use super::update::{count_generation, other_uid};
use super::{meta, namespaces};

/// The result of a deletion.
enum Outcome {
    Gone(Arc<Value>),
    Held(Arc<Value>),
}

pub(super) fn delete(
    kinds: &[Kind],
    state: &mut State,
    call: &Call,
    name: &str,
    body: &[u8],
) -> Result<Answer, Failure> {
    let options: Value = match body {
        [] => Value::Null,
        body => serde_json::from_slice(body).map_err(|error| Failure::bad_request(error.to_string()))?,
    };
    let key = call.key(name);
    let object = state.get(&key).ok_or_else(|| Failure::not_found(&call.kind, name))?;
    check_preconditions(&call.kind, name, &options["preconditions"], &object)?;
    if call.is_dry_run() || options["dryRun"].is_array() {
        return Ok(gone(&call.kind, name, &object));
    }
    Ok(match remove(kinds, state, &key, &object) {
        Outcome::Gone(object) if shows_the_deleted(&call.kind) => Answer::Json(200, call.shape.of(&object)),
        Outcome::Gone(object) => gone(&call.kind, name, &object),
        Outcome::Held(object) => Answer::Json(200, call.shape.of(&object)),
    })
}

pub(super) fn delete_all(kinds: &[Kind], state: &mut State, call: &Call) -> Result<Answer, Failure> {
    let selection = Selection::read(&call.query)?;
    let objects = state.list(call.id, &call.namespace).filter(|(_, object)| selection.matches(object));
    let objects: Vec<_> = objects.map(|(key, object)| (key.clone(), object.clone())).collect();
    if !call.is_dry_run() {
        for (key, object) in &objects {
            remove(kinds, state, key, object);
        }
    }
    let items = objects.iter().map(|(_, object)| Shape::Whole.of(object)).collect();
    Ok(Answer::Json(200, list_of(call, state.version(), items)))
}

fn check_preconditions(kind: &Kind, name: &str, wanted: &Value, object: &Value) -> Result<(), Failure> {
    if let Some(uid) = wanted["uid"].as_str()
        && uid != meta::text(object, "uid")
    {
        return Err(Failure::precondition(kind, name, &other_uid(uid, object)));
    }
    let present = meta::text(object, "resourceVersion");
    match wanted["resourceVersion"].as_str() {
        Some(version) if version != present => {
            let cause = format!(
                "Precondition failed: ResourceVersion in precondition: {version}, ResourceVersion in object meta: \
                 {present}"
            );
            Err(Failure::precondition(kind, name, &cause))
        }
        _ => Ok(()),
    }
}

/// Kinds whose deletion may take a while: the response is the object, even if it was deleted at once.
fn shows_the_deleted(kind: &Kind) -> bool {
    kind.group.is_empty() && ["namespaces", "pods", "serviceaccounts", "services"].contains(&kind.plural)
}

fn gone(kind: &Kind, name: &str, object: &Value) -> Answer {
    let mut details = details(kind, name, kind.plural);
    details.insert("uid".into(), object["metadata"]["uid"].clone());
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details,
    });
    Answer::Json(200, status)
}

fn remove(kinds: &[Kind], state: &mut State, key: &Key, object: &Arc<Value>) -> Outcome {
    if kinds.get(key.kind) == Some(&Kind::NAMESPACE) {
        return Outcome::Held(remove_namespace(kinds, state, key, object));
    }
    if meta::finalizers(object).is_empty() {
        let last = state.remove(key).unwrap_or_else(|| object.clone());
        namespaces::finish(kinds, state, &key.namespace);
        return Outcome::Gone(last);
    }
    Outcome::Held(mark(state, key, object))
}

fn mark(state: &mut State, key: &Key, object: &Arc<Value>) -> Arc<Value> {
    if meta::is_deleting(object) {
        return object.clone();
    }
    let mut marked = Value::clone(object);
    meta::set(&mut marked, "deletionTimestamp", meta::now());
    meta::set(&mut marked, "deletionGracePeriodSeconds", json!(0));
    count_generation(&mut marked);
    state.put(key.clone(), marked)
}

/// First all objects in it, then the namespace.
fn remove_namespace(kinds: &[Kind], state: &mut State, key: &Key, object: &Arc<Value>) -> Arc<Value> {
    if meta::is_deleting(object) {
        return object.clone();
    }
    let mut marked = Value::clone(object);
    meta::set(&mut marked, "deletionTimestamp", meta::now());
    marked["status"]["phase"] = json!("Terminating");
    let marked = state.put(key.clone(), marked);
    for inner in state.within(&key.name) {
        if let Some(object) = state.get(&inner) {
            remove(kinds, state, &inner, &object);
        }
    }
    namespaces::finish(kinds, state, &key.name);
    marked
}
