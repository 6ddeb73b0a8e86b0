//! A script of requests, and the responses, without what differs between two clusters.

use anyhow::{Context as _, Result};
use http::{Method, Request};
use kube::Client;
use kube::client::Body;
use serde_json::{Map, Value};

const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
/// Fields that a server generates, and messages.
const OWN: [&str; 5] = ["uid", "creationTimestamp", "deletionTimestamp", "resourceVersion", "time"];

/// One request. `{uid:3}` and `{version:3}` in path and body are those of step 3's answer.
pub(crate) struct Step {
    method: Method,
    path: String,
    body: String,
    accept: &'static str,
    media: &'static str,
}

pub(crate) fn step(method: Method, path: &str, body: &Value) -> Step {
    let media = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    let body = if body.is_null() { String::new() } else { body.to_string() };
    Step { method, path: path.into(), body, accept: "application/json", media }
}

impl Step {
    pub(crate) fn metadata(self) -> Self {
        Self { accept: METADATA, ..self }
    }

    pub(crate) fn metadata_list(self) -> Self {
        Self { accept: METADATA_LIST, ..self }
    }

    pub(crate) fn media(self, media: &'static str) -> Self {
        Self { media, ..self }
    }

    pub(crate) fn describe(&self) -> String {
        format!("{} {} {}", self.method, self.path, self.body)
    }
}

/// What was answered to each step: its code and, line by line, its objects.
pub(crate) async fn run(client: &Client, steps: &[Step]) -> Result<Vec<(u16, Vec<Value>)>> {
    let mut raw: Vec<(u16, Vec<Value>)> = Vec::new();
    for step in steps {
        let answer = send(client, step, &raw).await.with_context(|| step.describe())?;
        raw.push(answer);
    }
    let comparable = |(code, objects): (u16, Vec<Value>)| {
        let objects = objects.into_iter().filter(|object| object["type"] != "BOOKMARK");
        (code, objects.map(without_own).collect())
    };
    Ok(raw.into_iter().map(comparable).collect())
}

async fn send(client: &Client, step: &Step, earlier: &[(u16, Vec<Value>)]) -> Result<(u16, Vec<Value>)> {
    let request = Request::builder()
        .method(step.method.clone())
        .uri(fill(&step.path, earlier)?)
        .header("accept", step.accept)
        .header("content-type", step.media);
    let answer = client.send(request.body(Body::from(fill(&step.body, earlier)?.into_bytes()))?).await?;
    let code = answer.status().as_u16();
    let bytes = answer.into_body().collect_bytes().await?;
    let text = String::from_utf8(bytes.to_vec())?;
    let objects = serde_json::Deserializer::from_str(&text).into_iter::<Value>().collect::<Result<_, _>>();
    // The response for an unknown path is text.
    Ok((code, objects.unwrap_or_else(|_| vec![Value::String(text)])))
}

fn fill(text: &str, earlier: &[(u16, Vec<Value>)]) -> Result<String> {
    let mut text = text.to_owned();
    for (index, (_, objects)) in earlier.iter().enumerate() {
        let metadata = &objects.first().unwrap_or(&Value::Null)["metadata"];
        for (name, field) in [("uid", "uid"), ("version", "resourceVersion")] {
            let value = metadata[field].as_str().unwrap_or_default();
            text = text.replace(&format!("{{{name}:{index}}}"), value);
        }
    }
    anyhow::ensure!(!text.contains("{uid:") && !text.contains("{version:"), "{text} names a step that does not exist");
    Ok(text)
}

/// The parts to compare: messages may differ.
fn without_own(value: Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(fields.into_iter().filter_map(own_field).collect::<Map<_, _>>()),
        Value::Array(items) => Value::Array(items.into_iter().map(without_own).collect()),
        other => other,
    }
}

fn own_field((key, value): (String, Value)) -> Option<(String, Value)> {
    match key.as_str() {
        "managedFields" | "message" => None,
        // In some lists Go writes null for nothing.
        "continue" if value == "" => None,
        "items" if value.is_null() => Some((key, Value::Array(Vec::new()))),
        // A kube-apiserver validates some fields twice, and reports both.
        "causes" => Some((key, once_each(without_own(value)))),
        // The value differs.
        name if OWN.contains(&name) => Some((key, Value::Bool(!value.is_null()))),
        _ => Some((key, without_own(value))),
    }
}

fn once_each(value: Value) -> Value {
    match value {
        Value::Array(mut items) => {
            items.dedup();
            Value::Array(items)
        }
        other => other,
    }
}
