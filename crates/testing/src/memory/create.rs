//! Creating objects.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::answer::Answer;
use super::call::Call;
use super::failure::Failure;
use super::kinds::Kind;
use super::store::State;
use super::{meta, namespaces};

/// Fields that only the server writes.
const SERVER_ONLY: [&str; 6] =
    ["deletionTimestamp", "deletionGracePeriodSeconds", "generation", "managedFields", "selfLink", "uid"];

pub(super) fn create(kinds: &[Kind], state: &mut State, call: &Call, body: &[u8]) -> Result<Answer, Failure> {
    let kind = &call.kind;
    if kind.namespaced && call.namespace.is_empty() {
        return Err(Failure::method_not_allowed());
    }
    let mut object = meta::parse(kind, body)?;
    meta::set_namespace(&mut object, &call.namespace)?;
    if !meta::text(&object, "resourceVersion").is_empty() {
        return Err(Failure::bad_request("resourceVersion should not be set on objects to be created"));
    }
    let name = name_of(&object);
    namespaces::check_accepts(kinds, state, call, &name)?;
    meta::check_name(kind, &name)?;
    let key = call.key(&name);
    if state.get(&key).is_some() {
        return Err(Failure::exists(kind, &name));
    }
    meta::set(&mut object, "name", json!(name));
    complete(kind, &mut object);
    let stored = match call.is_dry_run() {
        true => object.into(),
        false => state.put(key, object),
    };
    Ok(Answer::Json(201, call.shape.of(&stored)))
}

fn name_of(object: &Value) -> String {
    match (meta::text(object, "name"), meta::text(object, "generateName")) {
        ("", "") => String::new(),
        ("", prefix) => meta::generated_name(prefix),
        (name, _) => name.to_owned(),
    }
}

/// Adds what the server adds to a new object.
pub(super) fn complete(kind: &Kind, object: &mut Value) {
    meta::clear(object, &SERVER_ONLY);
    meta::set(object, "uid", meta::uid());
    meta::set(object, "creationTimestamp", meta::now());
    if kind.generation {
        meta::set(object, "generation", json!(1));
    }
    // A kubelet creates its node with its status.
    if kind.status
        && *kind != Kind::NODE
        && let Some(fields) = object.as_object_mut()
    {
        fields.remove("status");
    }
    complete_spec(kind, object);
    meta::tidy(object);
}

/// The defaults of the kinds that have any here.
pub(super) fn complete_spec(kind: &Kind, object: &mut Value) {
    if *kind == Kind::NAMESPACE {
        namespaces::complete(object);
    } else if *kind == Kind::SECRET {
        complete_secret(object);
    }
}

fn complete_secret(object: &mut Value) {
    if object["type"].as_str().unwrap_or_default().is_empty() {
        object["type"] = json!("Opaque");
    }
    let plain = object.as_object_mut().and_then(|object| object.remove("stringData"));
    for (key, value) in plain.as_ref().and_then(Value::as_object).into_iter().flatten() {
        object["data"][key] = json!(STANDARD.encode(value.as_str().unwrap_or_default()));
    }
}
