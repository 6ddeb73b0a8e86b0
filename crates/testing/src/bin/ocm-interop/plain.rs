//! The parts of an object that must be equal: no ids, times, random names, secrets, field managers, nor the order of sets.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ocm_apimachinery::yaml;
use serde_json::{Map, Value, json};
use x509_cert::{der::DecodePem as _, request::CertReq};

/// Lists that are sets.
const SETS: [&str; 9] =
    ["finalizers", "rules", "subjects", "verbs", "apiGroups", "resources", "resourceNames", "groups", "clusterClaims"];
const OF_SERVER: [&str; 6] =
    ["uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "deletionTimestamp"];
/// What comes before the random part of a name that agents choose.
const BEFORE_AGENT: [&str; 2] = [":addon:helloworld:agent:", "system:open-cluster-management:cluster1:"];
/// The volume with a pod's token, whose name is random.
const TOKEN_VOLUME: &str = "kube-api-access-";
const SECRET: &str = "<secret>";

pub(crate) fn plain(mut object: Value) -> Value {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        without_randomness(metadata);
    }
    match object["kind"].as_str() {
        Some("Secret") => object["data"] = said_by_secret(&object["data"]),
        Some("CertificateSigningRequest") => {
            object["spec"]["request"] = said_by_request(&object["spec"]["request"]);
            object["status"].as_object_mut().and_then(|status| status.remove("certificate"));
        }
        _ => {}
    }
    simplified("", object)
}

fn without_randomness(metadata: &mut Map<String, Value>) {
    for key in OF_SERVER {
        metadata.remove(key);
    }
    if let Some(prefix) = metadata.get("generateName").and_then(Value::as_str).map(|prefix| format!("{prefix}<random>"))
    {
        metadata.insert("name".into(), prefix.into());
    }
    let annotations = metadata.get_mut("annotations").and_then(Value::as_object_mut);
    annotations.and_then(|annotations| annotations.remove("kubectl.kubernetes.io/last-applied-configuration"));
}

fn said_by_secret(data: &Value) -> Value {
    let plain = |(key, value): (&String, &Value)| {
        let text = decoded(value);
        let text = match key.as_str() {
            "tls.crt" | "tls.key" | "token" | "ca.crt" | "service-ca.crt" => json!(SECRET),
            "agent-name" => json!("<agent>"),
            "kubeconfig" => yaml::from_str(&text).unwrap_or(json!(text)),
            _ => json!(text),
        };
        (key.clone(), text)
    };
    Value::Object(data.as_object().into_iter().flatten().map(plain).collect())
}

fn said_by_request(request: &Value) -> Value {
    match CertReq::from_pem(decoded(request)) {
        Ok(request) => json!({
            "subject": request.info.subject.to_string(),
            "key": request.info.public_key.algorithm.oid.to_string(),
            "signature": request.algorithm.oid.to_string(),
        }),
        Err(error) => json!(error.to_string()),
    }
}

fn decoded(value: &Value) -> String {
    let bytes = STANDARD.decode(value.as_str().unwrap_or_default()).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn simplified(key: &str, value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(key, value)| (text(&key), simplified(&key, value)));
            // An empty map means the same as none.
            Value::Object(fields.filter(|(_, value)| *value != json!({}) && !value.is_null()).collect())
        }
        Value::Array(items) => {
            let mut items: Vec<_> = items.into_iter().map(|item| simplified("", item)).collect();
            if SETS.contains(&key) {
                items.sort_by_key(Value::to_string);
            }
            Value::Array(items)
        }
        Value::String(_) if key == "agentID" => json!("<agent>"),
        Value::String(_) if key.ends_with("-data") => json!(SECRET),
        Value::String(string) => Value::String(text(&string)),
        other => other,
    }
}

fn text(text: &str) -> String {
    if text.parse::<jiff::Timestamp>().is_ok() {
        return "<time>".into();
    }
    if text.starts_with("https://127.0.0.1:") {
        return "<address>".into();
    }
    let words = text.split(' ').map(word).collect::<Vec<_>>();
    words.join(" ")
}

/// A word of a text, without its random parts.
fn word(word: &str) -> String {
    if let Some((start, _)) = word.split_once("X509SHA256=").or_else(|| word.split_once("JTI=")) {
        return format!("{start}<id>");
    }
    if let Some((prefix, rest)) = BEFORE_AGENT.iter().find_map(|prefix| Some((prefix, word.split_once(prefix)?))) {
        let (start, agent) = rest;
        let end = agent.find(|char: char| !char.is_ascii_alphanumeric() && char != '-').unwrap_or(agent.len());
        return format!("{start}{prefix}<agent>{}", &agent[end..]);
    }
    if word.starts_with(TOKEN_VOLUME) {
        return format!("{TOKEN_VOLUME}<random>");
    }
    let is_hex = |part: &str| part.chars().all(|char| char.is_ascii_hexdigit());
    if word.len() == 36 && word.split('-').all(is_hex) {
        return "<uid>".into();
    }
    match word.split_at_checked(64) {
        Some((hash, rest)) if is_hex(hash) => format!("<hash>{rest}"),
        _ => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_each_time_does_not_count() {
        let hash = "0".repeat(64);
        for (given, expected) in [
            ("2026-11-21T16:09:43Z", "<time>"),
            ("1ef9a7fa-21f2-488b-9a58-b568ef610d82", "<uid>"),
            ("X509SHA256=68e9", "<id>"),
            ("https://127.0.0.1:16440", "<address>"),
            ("kube-api-access-fd4ln", "kube-api-access-<random>"),
            (&format!("{hash}-mw-01"), "<hash>-mw-01"),
            ("system:open-cluster-management:cluster1:9hdnf", "system:open-cluster-management:cluster1:<agent>"),
            (
                "CN=system:open-cluster-management:cluster:cluster1:addon:helloworld:agent:rz,O=x",
                "CN=system:open-cluster-management:cluster:cluster1:addon:helloworld:agent:<agent>,O=x",
            ),
            ("Applied to 2 clusters", "Applied to 2 clusters"),
        ] {
            assert_eq!(text(given), expected);
        }
    }

    #[test]
    fn sets_are_compared_without_their_order_and_lists_with_it() {
        let object = json!({"metadata": {"finalizers": ["b", "a"]}, "spec": {"args": ["b", "a"]}});
        let expected = json!({"metadata": {"finalizers": ["a", "b"]}, "spec": {"args": ["b", "a"]}});
        assert_eq!(plain(object), expected);
    }

    #[test]
    fn credentials_are_never_shown() {
        let key = STANDARD.encode("private");
        let object =
            json!({"kind": "Secret", "metadata": {}, "data": {"tls.key": key, "cluster-name": STANDARD.encode("c")}});
        assert_eq!(plain(object)["data"], json!({"tls.key": SECRET, "cluster-name": "c"}));
    }
}
