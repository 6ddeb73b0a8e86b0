//! Discovery: the version of the cluster, and its API.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::answer::Answer;
use super::kinds::Kind;

/// The version that it reports.
const VERSION: (&str, &str, &str) = ("1", "36", "v1.36.3");
const OBJECT_VERBS: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// The response, if the request is for discovery.
pub(super) fn answer(kinds: &[Kind], path: &str) -> Option<Answer> {
    let segments: Vec<_> = path.trim_matches('/').split('/').collect();
    let json = |value| Some(Answer::Json(200, value));
    match segments.as_slice() {
        ["livez" | "readyz" | "healthz"] => Some(Answer::Text(200, "ok")),
        ["version"] => json(version()),
        ["api"] => json(json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})),
        ["apis"] => json(groups(kinds)),
        ["apis", group] => group_of(&group_versions(kinds), group).and_then(json),
        ["api", version] => resources(kinds, "", version).and_then(json),
        ["apis", group, version] => resources(kinds, group, version).and_then(json),
        _ => None,
    }
}

fn version() -> Value {
    let (major, minor, version) = VERSION;
    json!({
        "major": major, "minor": minor, "gitVersion": version, "gitCommit": "", "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "none", "compiler": "rustc", "platform": "in memory",
    })
}

/// The named groups, each with its versions.
fn group_versions(kinds: &[Kind]) -> BTreeMap<&str, Vec<&str>> {
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for kind in kinds.iter().filter(|kind| !kind.group.is_empty()) {
        let versions = groups.entry(kind.group).or_default();
        if !versions.contains(&kind.version) {
            versions.push(kind.version);
        }
    }
    groups
}

fn groups(kinds: &[Kind]) -> Value {
    let versions = group_versions(kinds);
    let groups: Vec<_> = versions.keys().filter_map(|group| group_of(&versions, group)).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

fn group_of(groups: &BTreeMap<&str, Vec<&str>>, group: &str) -> Option<Value> {
    let versions = groups.get(group)?.iter();
    let versions: Vec<_> =
        versions.map(|version| json!({"groupVersion": format!("{group}/{version}"), "version": version})).collect();
    let preferred = versions.first()?;
    Some(json!({
        "kind": "APIGroup", "apiVersion": "v1", "name": group, "versions": versions, "preferredVersion": preferred,
    }))
}

fn resources(kinds: &[Kind], group: &str, version: &str) -> Option<Value> {
    let served: Vec<_> = kinds.iter().filter(|kind| kind.group == group && kind.version == version).collect();
    let group_version = served.first()?.api_version();
    let resources: Vec<_> = served.into_iter().flat_map(resources_of).collect();
    Some(json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources,
    }))
}

fn resources_of(kind: &Kind) -> Vec<Value> {
    let resource = |name: String, singular: &str, verbs: &[&str]| {
        json!({
            "name": name, "singularName": singular, "namespaced": kind.namespaced, "kind": kind.kind, "verbs": verbs,
        })
    };
    let mut resources = vec![resource(kind.plural.into(), &kind.kind.to_lowercase(), &OBJECT_VERBS)];
    if kind.status {
        resources.push(resource(format!("{}/status", kind.plural), "", &["get", "patch", "update"]));
    }
    resources
}
