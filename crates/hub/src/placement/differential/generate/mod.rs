//! Snapshots that are likely to show a difference: few labels, taints and scores, so that they meet; ties; what is missing; and
//! rarely what is invalid, but no more than the API server lets pass.

mod cel;
mod clusters;
mod placement;
mod selectors;
mod values;

use jiff::Timestamp;
use ocm_api::labels::{DECISION_GROUP_INDEX, DECISION_GROUP_NAME, PLACEMENT as PLACEMENT_LABEL};
use proptest::{option, prelude::*};
use serde_json::{Value, json};

use self::{
    clusters::CLUSTERS,
    values::{Json, has, just, list, may_have, named, object, one_of},
};
use super::Snapshot;

/// The time of every snapshot, in seconds since 1970.
const NOW: i64 = 1_800_000_000;
const NAMESPACE: &str = "fleet";
const PLACEMENT: &str = "p";
/// Names of AddOnPlacementScores, and of scores in them.
const RESOURCES: [&str; 2] = ["r1", "r2"];
const SCORES: [&str; 2] = ["s1", "s2"];

/// That many seconds after the snapshot.
pub(super) fn at(seconds: i64) -> Value {
    Timestamp::from_second(NOW + seconds).unwrap().to_string().into()
}

fn now() -> Timestamp {
    Timestamp::from_second(NOW).unwrap()
}

/// A placement with this spec, which may select all of these clusters.
pub(super) fn of(spec: &Value, clusters: Vec<Value>) -> Snapshot {
    let everything = json!({"clusterSelector": {"selectorType": "LabelSelector", "labelSelector": {}}});
    Snapshot {
        now: now(),
        placement: named(json!({"spec": spec}), NAMESPACE, PLACEMENT),
        clusters,
        sets: vec![named(json!({"spec": everything}), "", "global")],
        bindings: vec![named(json!({"spec": {"clusterSet": "global"}}), NAMESPACE, "global")],
        decisions: Vec::new(),
        scores: Vec::new(),
    }
}

/// A placement and all that its decision depends on.
pub(super) fn snapshot() -> impl Strategy<Value = Snapshot> {
    let parts =
        (placement::placement(), clusters::clusters(), clusters::sets(), clusters::bindings(), decisions(), scores());
    parts.prop_map(|(placement, clusters, sets, bindings, decisions, scores)| Snapshot {
        now: now(),
        placement,
        clusters,
        sets,
        bindings,
        decisions,
        scores,
    })
}

/// Decisions of the placement, of others, and of none. Each has another name.
fn decisions() -> impl Strategy<Value = Vec<Value>> {
    let names = ["p-decision-1", "p-decision-2", "p-decision-3", "odd", "q-decision-1"];
    let keys = names.iter().flat_map(|name| [(NAMESPACE, *name), ("other", name)]);
    let one = |(namespace, name): (&'static str, &'static str)| {
        let likely = if namespace == NAMESPACE { 0.4 } else { 0.2 };
        option::weighted(likely, decision()).prop_map(move |decision| Some(named(decision?, namespace, name)))
    };
    let all: Vec<_> = keys.map(one).collect();
    all.prop_map(|decisions| decisions.into_iter().flatten().collect())
}

fn decision() -> Json {
    let placement = option::weighted(0.95, one_of([PLACEMENT, PLACEMENT, PLACEMENT, "q"])).boxed();
    let labels = object([
        (PLACEMENT_LABEL, placement),
        may_have(DECISION_GROUP_NAME, one_of(["", "canary"])),
        may_have(DECISION_GROUP_INDEX, one_of(["0", "1", "2"])),
    ]);
    let names = (0..CLUSTERS).map(|index| format!("c{index}")).chain(["gone".into()]);
    let entry = object([has("clusterName", one_of(names)), has("reason", just(""))]);
    let status = object([has("decisions", list(entry, 4))]);
    object([has("metadata", object([has("labels", labels)])), ("status", option::weighted(0.9, status).boxed())])
}

fn scores() -> impl Strategy<Value = Vec<Value>> {
    let keys = (0..CLUSTERS).flat_map(|index| RESOURCES.map(|name| (format!("c{index}"), name)));
    let one = |(namespace, name): (String, &'static str)| {
        option::weighted(0.5, score()).prop_map(move |score| Some(named(score?, &namespace, name)))
    };
    let all: Vec<_> = keys.map(one).collect();
    all.prop_map(|scores| scores.into_iter().flatten().collect())
}

fn score() -> Json {
    let item = SCORES.map(|name| {
        let value = one_of([0, 20, -100, 100, 7, -1]);
        option::weighted(0.8, object([has("name", just(name)), has("value", value)]))
    });
    let items = item.to_vec().prop_map(|items| Value::Array(items.into_iter().flatten().collect())).boxed();
    let expiry = option::weighted(0.3, one_of([1, 0, -1, 3600, -3600].map(at))).boxed();
    let status = object([has("scores", items), ("validUntil", expiry)]);
    object([("status", option::weighted(0.9, status).boxed())])
}
