//! Converts a schema that `schemars` derives to the form that Kubernetes accepts and its own generator writes.

use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

/// Marks a default that belongs in the schema. Serde's own defaults, which `schemars` writes as `default`, do not: they
/// are for lenient parsing, and the API server would store them.
const DEFAULT_MARK: &str = "x-ocm-default";

/// The schema of a kind, with `apiVersion` and `kind`.
pub(super) fn kubernetes_schema<K: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<K>();
    ToKubernetes.transform(&mut schema);
    let mut schema = schema.to_value();
    add_type_meta(&mut schema);
    bare_metadata(&mut schema);
    schema
}

/// The API server accepts nothing but the type of `metadata`, not even a description.
fn bare_metadata(schema: &mut Value) {
    if let Some(metadata) = schema.pointer_mut("/properties/metadata").and_then(Value::as_object_mut) {
        metadata.remove("description");
    }
}

/// One pass over the schema, the inner parts first.
struct ToKubernetes;

impl Transform for ToKubernetes {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        let Some(object) = schema.as_object_mut() else { return };
        drop_null(object);
        drop_keywords(object);
        keep_marked_default(object);
        unwrap_description(object);
    }
}

/// An `Option` is a field that may be absent, not one that may be null.
fn drop_null(object: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            object.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(values)) = object.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    let Some(Value::Array(choices)) = object.get("anyOf") else { return };
    let [Value::Object(some), null] = choices.as_slice() else { return };
    if null.get("type") != Some(&json!("null")) {
        return;
    }
    let some = some.clone();
    object.remove("anyOf");
    for (key, value) in some {
        object.entry(key).or_insert(value);
    }
}

/// `title` is the Rust name; `default` is serde's; an empty `required` has no effect.
fn drop_keywords(object: &mut Map<String, Value>) {
    if object.get("title").is_some_and(Value::is_string) {
        object.remove("title");
    }
    if object.get("required").and_then(Value::as_array).is_some_and(Vec::is_empty) {
        object.remove("required");
    }
    object.remove("default");
}

fn keep_marked_default(object: &mut Map<String, Value>) {
    if let Some(default) = object.remove(DEFAULT_MARK) {
        object.insert("default".to_owned(), default);
    }
}

/// Doc comments wrap lines; in a description a line break is a space and an empty line ends a paragraph.
fn unwrap_description(object: &mut Map<String, Value>) {
    if let Some(Value::String(text)) = object.get_mut("description") {
        let paragraphs: Vec<String> =
            text.split("\n\n").map(|paragraph| plain(&paragraph.replace('\n', " "))).collect();
        *text = paragraphs.join("\n\n");
    }
}

/// Links in doc comments to items of this crate are useless in a schema: `[name](target)` becomes `name`,
/// ``[`Name`]`` becomes `` `Name` ``.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, link)) = rest.split_once("[`") {
        let Some((name, after)) = link.split_once("`]") else { break };
        out.push_str(before);
        out.push_str(name);
        rest = match after.strip_prefix('(').and_then(|target| target.split_once(')')) {
            Some((_, after_target)) => after_target,
            None => after,
        };
    }
    out.push_str(rest);
    out
}

fn add_type_meta(schema: &mut Value) {
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else { return };
    for (name, description) in [
        ("apiVersion", "Version of the schema this object is written in."),
        ("kind", "Kind of this object, in CamelCase."),
    ] {
        properties.insert(name.to_owned(), json!({ "description": description, "type": "string" }));
    }
}
