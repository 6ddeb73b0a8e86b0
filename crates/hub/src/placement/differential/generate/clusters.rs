//! Clusters, their sets, and the bindings of these.

use ocm_api::labels::CLUSTER_SET;
use proptest::{collection::vec, option, prelude::*, sample};
use serde_json::{Value, json};

use super::{
    NAMESPACE, at,
    selectors::{KEYS, label_selector, labels},
    values::{Json, has, just, list, may_have, mostly, named, object, one_of, weighted},
};

/// How many clusters there are at most, except in the rare large snapshots.
pub(super) const CLUSTERS: usize = 7;
pub(super) const SETS: [&str; 3] = ["global", "red", "blue"];
pub(super) const MISSING_SET: &str = "missing";

/// Clusters `c0`, `c1` and so on. Rarely there are many more, so that a decision is not enough for them.
pub(super) fn clusters() -> impl Strategy<Value = Vec<Value>> {
    let crowd = prop_oneof![60 => Just(0_usize), 1 => sample::select(vec![97, 100, 101, 200, 203])];
    let few = prop_oneof![1 => vec(cluster(), 0..=1), 9 => vec(cluster(), 2..=CLUSTERS)];
    (few, crowd).prop_map(|(clusters, crowd)| {
        let few = clusters.into_iter().enumerate().map(|(index, cluster)| named(cluster, "", &format!("c{index}")));
        let many = (0..crowd).map(|index| named(one_of_many(index), "", &format!("x{index}")));
        few.chain(many).collect()
    })
}

fn one_of_many(index: usize) -> Value {
    let env = if index.is_multiple_of(3) { "prod" } else { "dev" };
    json!({"metadata": {"labels": {"env": env, CLUSTER_SET: "red"}}, "spec": {"hubAcceptsClient": true}})
}

fn cluster() -> Json {
    object([has("metadata", metadata()), has("spec", spec()), ("status", option::weighted(0.8, status()).boxed())])
}

fn metadata() -> Json {
    let deleting = just(json!({"deletionTimestamp": at(-5), "finalizers": ["example.com/f"]}));
    let labelled = object([has("labels", (labels(), option::of(one_of(SETS))).prop_map(with_set).boxed())]);
    weighted([(20, labelled), (1, deleting)])
}

fn with_set((mut labels, set): (Value, Option<Value>)) -> Value {
    if let (Some(labels), Some(set)) = (labels.as_object_mut(), set) {
        labels.insert(CLUSTER_SET.into(), set);
    }
    labels
}

fn spec() -> Json {
    let taints = weighted([(3, just(json!([]))), (2, list(taint(), 2))]);
    object([has("hubAcceptsClient", one_of([true, false])), has("taints", taints)])
}

/// A taint, which was added before or after the time of the snapshot.
fn taint() -> Json {
    let added = one_of([0, -30, -60, -61, -3600, 30].map(at));
    object([
        has("key", one_of(["gpu", "example.com/spot"])),
        may_have("value", one_of(["yes", "no", ""])),
        has("effect", one_of(["NoSelect", "PreferNoSelect", "NoSelectIfNew"])),
        has("timeAdded", added),
    ])
}

fn status() -> Json {
    let conditions = one_of(["True", "False"].map(|status| json!([{"type": "Ready", "status": status, "reason": "Test", "message": "", "lastTransitionTime": at(-9)}])));
    object([
        may_have("clusterClaims", list(claim(), 3)),
        ("capacity", option::weighted(0.8, resources()).boxed()),
        ("allocatable", option::weighted(0.8, resources()).boxed()),
        has("version", object([may_have("kubernetes", one_of(["v1.30.1", "v1.34.0", "1.31", ""]))])),
        may_have("conditions", conditions),
    ])
}

fn claim() -> Json {
    let values = KEYS.iter().flat_map(|(_, values)| values.iter().copied()).chain(["not a label's value!"]);
    object([has("name", one_of(KEYS.map(|(key, _)| key))), has("value", one_of(values))])
}

/// Amounts that are likely to give scores close to a whole number, and every form that the schema of the resource lets pass.
fn resources() -> Json {
    let cpu = weighted([(3, amount(40, 50, "m")), (2, one_of(CPU)), (1, just(2))]);
    let memory = weighted([(2, amount(40, 1_000_000, "Ki")), (2, one_of(MEMORY))]);
    let likely = |resource| option::weighted(0.8, resource).boxed();
    object([("cpu", likely(cpu)), ("memory", likely(memory)), may_have("pods", one_of(["110"]))])
}

#[rustfmt::skip]
const CPU: [&str; 17] = [
    "4", "1", "3", "0.1", "3500m", "4000m", "100m", "0", "0.5", ".7", "+2", "-1", "1e1", "2E0", "7k", "333333333n", "12u",
];

#[rustfmt::skip]
const MEMORY: [&str; 14] = [
    "1Gi", "1073741824", "1e9", "1G", "128974848", "500M", "0.3Gi", "2Ti", "1Ei", "1000m", "1E", "16384Mi", "65886368Ki",
    "9223372036854775807",
];

/// A multiple of an amount.
fn amount(most: u32, step: u32, suffix: &'static str) -> Json {
    (0..most).prop_map(move |times| format!("{}{suffix}", times * step).into()).boxed()
}

/// Each of the sets, or not.
pub(super) fn sets() -> impl Strategy<Value = Vec<Value>> {
    let all = SETS.map(|name| option::weighted(0.9, set()).prop_map(move |set| Some(named(set?, "", name))));
    all.to_vec().prop_map(|sets| sets.into_iter().flatten().collect())
}

fn set() -> Json {
    let everything = just(json!({"selectorType": "LabelSelector", "labelSelector": {}}));
    let exclusive = one_of([json!({"selectorType": "ExclusiveClusterSetLabel"}), json!({})]);
    let kind = mostly(just("LabelSelector"), just("ExclusiveClusterSetLabel"));
    let selected = object([has("selectorType", kind), may_have("labelSelector", label_selector())]);
    object([has("spec", object([has("clusterSelector", weighted([(6, everything), (2, exclusive), (2, selected)]))]))])
}

/// Bindings of the sets and of one that is missing, some in another namespace.
pub(super) fn bindings() -> impl Strategy<Value = Vec<Value>> {
    let names = SETS.into_iter().chain([MISSING_SET]);
    let all = names.map(|name| (name, option::weighted(0.8, mostly(just(NAMESPACE), just("other")))));
    let all =
        all.map(|(name, namespace)| namespace.prop_map(move |namespace| Some(binding(namespace?.as_str()?, name))));
    all.collect::<Vec<_>>().prop_map(|bindings| bindings.into_iter().flatten().collect())
}

fn binding(namespace: &str, set: &str) -> Value {
    named(json!({"spec": {"clusterSet": set}}), namespace, set)
}
