//! Replaces and patches objects.

use std::sync::Arc;

use http::header::CONTENT_TYPE;
use http::request::Parts;
use ocm_apimachinery::merge;
use serde_json::{Value, json};

use super::answer::Answer;
use super::call::Call;
use super::failure::Failure;
use super::kinds::Kind;
use super::store::State;
use super::{create, meta, namespaces};

const MERGE_PATCH: &str = "application/merge-patch+json";
/// Fields that no writer can change.
const FIXED: [&str; 8] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generateName",
    "generation",
    "namespace",
    "resourceVersion",
    "uid",
];

pub(super) fn replace(
    kinds: &[Kind],
    state: &mut State,
    call: &Call,
    name: &str,
    body: &[u8],
) -> Result<Answer, Failure> {
    let mut object = meta::parse(&call.kind, body)?;
    check_same_name(&object, name)?;
    meta::set_namespace(&mut object, &call.namespace)?;
    let old = state.get(&call.key(name)).ok_or_else(|| Failure::not_found(&call.kind, name))?;
    if call.kind.custom && meta::text(&object, "resourceVersion").is_empty() {
        let cause = "Invalid value: 0: must be specified for an update";
        let failure = Failure::invalid(&call.kind, name, "FieldValueInvalid", "metadata.resourceVersion", cause);
        return Err(failure.calling_it(call.kind.plural));
    }
    let uid = meta::text(&object, "uid");
    if !uid.is_empty() && uid != meta::text(&old, "uid") {
        return Err(Failure::conflict(&call.kind, name, &other_uid(uid, &old)));
    }
    write(kinds, state, call, name, &old, object)
}

pub(super) fn patch(
    kinds: &[Kind],
    state: &mut State,
    call: &Call,
    name: &str,
    head: &Parts,
    body: &[u8],
) -> Result<Answer, Failure> {
    let media = head.headers.get(CONTENT_TYPE).and_then(|media| media.to_str().ok()).unwrap_or_default();
    if media != MERGE_PATCH {
        return Err(Failure::media_type(media));
    }
    let patch: Value = serde_json::from_slice(body).map_err(|error| Failure::bad_request(error.to_string()))?;
    let old = state.get(&call.key(name)).ok_or_else(|| Failure::not_found(&call.kind, name))?;
    let mut object = Value::clone(&old);
    merge::apply(&mut object, &patch);
    let object = meta::parse(&call.kind, object.to_string().as_bytes())?;
    check_same_name(&object, name)?;
    write(kinds, state, call, name, &old, object)
}

fn check_same_name(object: &Value, name: &str) -> Result<(), Failure> {
    let given = meta::text(object, "name");
    match given == name {
        true => Ok(()),
        false => Err(Failure::bad_request(format!(
            "the name of the object ({given}) does not match the name on the URL ({name})"
        ))),
    }
}

/// The error if the object is another one than the writer's.
pub(super) fn other_uid(expected: &str, present: &Value) -> String {
    let present = meta::text(present, "uid");
    format!("Precondition failed: UID in precondition: {expected}, UID in object meta: {present}")
}

fn write(
    kinds: &[Kind],
    state: &mut State,
    call: &Call,
    name: &str,
    old: &Arc<Value>,
    mut new: Value,
) -> Result<Answer, Failure> {
    let version = meta::text(&new, "resourceVersion");
    if !version.is_empty() && version != meta::text(old, "resourceVersion") {
        return Err(Failure::stale(&call.kind, name));
    }
    let uid = meta::text(&new, "uid");
    if !uid.is_empty() && uid != meta::text(old, "uid") {
        let cause = format!("Invalid value: {uid:?}: field is immutable");
        return Err(Failure::invalid(&call.kind, name, "FieldValueInvalid", "metadata.uid", &cause));
    }
    separate(call, old, &mut new);
    check_allowed(&call.kind, name, old, &new)?;
    if new == **old {
        return Ok(Answer::Json(200, call.shape.of(old)));
    }
    if call.kind.generation && !call.status && has_other_spec(&call.kind, old, &new) {
        count_generation(&mut new);
    }
    let stored = match call.is_dry_run() {
        true => new.into(),
        false => store(kinds, state, call, name, new),
    };
    Ok(Answer::Json(200, call.shape.of(&stored)))
}

/// An object that is being deleted is removed with its last finalizer.
fn store(kinds: &[Kind], state: &mut State, call: &Call, name: &str, new: Value) -> Arc<Value> {
    let key = call.key(name);
    if call.kind != Kind::NAMESPACE && meta::is_deleting(&new) && meta::finalizers(&new).is_empty() {
        state.remove(&key);
        namespaces::finish(kinds, state, &call.namespace);
        return new.into();
    }
    let stored = state.put(key, new);
    if call.kind == Kind::NAMESPACE {
        namespaces::finish(kinds, state, name);
    }
    stored
}

/// The status is written by its own path only, and that writes nothing else.
fn separate(call: &Call, old: &Value, new: &mut Value) {
    let is_kept = |field: &str| match call.status {
        // The status path of built-in kinds takes metadata, too.
        true => field != "status" && (field != "metadata" || call.kind.custom),
        false => field == "status" && call.kind.status,
    };
    if let (Some(old), Some(new)) = (old.as_object(), new.as_object_mut()) {
        new.retain(|field, _| !is_kept(field));
        let kept = old.iter().filter(|(field, _)| is_kept(field));
        new.extend(kept.map(|(field, value)| (field.clone(), value.clone())));
    }
    meta::keep(new, old, &FIXED);
    meta::clear(new, &["managedFields", "selfLink"]);
    if !call.status {
        complete(&call.kind, old, new);
    }
    meta::tidy(new);
}

fn complete(kind: &Kind, old: &Value, new: &mut Value) {
    if *kind == Kind::NAMESPACE {
        new["spec"] = old["spec"].clone();
    } else {
        create::complete_spec(kind, new);
    }
}

fn check_allowed(kind: &Kind, name: &str, old: &Value, new: &Value) -> Result<(), Failure> {
    let before = meta::finalizers(old);
    let added: Vec<_> = meta::finalizers(new).into_iter().filter(|finalizer| !before.contains(finalizer)).collect();
    if meta::is_deleting(old) && !added.is_empty() {
        let cause = format!(
            "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers {added:?}"
        );
        return Err(Failure::invalid(kind, name, "FieldValueForbidden", "metadata.finalizers", &cause));
    }
    if *kind == Kind::SECRET && old["type"] != new["type"] {
        let cause = format!("Invalid value: {}: field is immutable", new["type"]);
        return Err(Failure::invalid(kind, name, "FieldValueInvalid", "type", &cause));
    }
    if old["immutable"] == json!(true) && has_other_content(old, new) {
        let cause = "Forbidden: field is immutable when `immutable` is set";
        return Err(Failure::invalid(kind, name, "FieldValueForbidden", "data", cause));
    }
    Ok(())
}

fn has_other_content(old: &Value, new: &Value) -> bool {
    ["immutable", "data", "binaryData"].into_iter().any(|field| old[field] != new[field])
}

fn has_other_spec(kind: &Kind, old: &Value, new: &Value) -> bool {
    let spec = |object: &Value| {
        let mut object = object.clone();
        if let Some(fields) = object.as_object_mut() {
            fields.retain(|field, _| field != "metadata" && (field != "status" || !kind.status));
        }
        object
    };
    spec(old) != spec(new)
}

pub(super) fn count_generation(object: &mut Value) {
    if let Some(generation) = object["metadata"]["generation"].as_u64() {
        meta::set(object, "generation", json!(generation + 1));
    }
}
