//! The placement.

use ocm_api::annotations::PLACEMENT_DISABLE;
use proptest::{option, prelude::*};
use serde_json::{Value, json};

use super::{
    NAMESPACE, PLACEMENT, RESOURCES, SCORES, at,
    cel::expression,
    clusters::{MISSING_SET, SETS},
    selectors::{claim_selector, label_selector},
    values::{Json, has, just, list, may_have, mostly, named, object, one_of, weighted},
};

pub(super) fn placement() -> impl Strategy<Value = Value> {
    object([("metadata", option::weighted(0.02, metadata()).boxed()), has("spec", spec())])
        .prop_map(|placement| named(placement, NAMESPACE, PLACEMENT))
}

/// Annotations that disable scheduling or only look like it, and deletion.
fn metadata() -> Json {
    one_of([
        json!({"annotations": {PLACEMENT_DISABLE: "true"}}),
        json!({"annotations": {PLACEMENT_DISABLE: "True"}}),
        json!({"deletionTimestamp": at(-5), "finalizers": ["example.com/f"]}),
    ])
}

fn spec() -> Json {
    object([
        ("clusterSets", option::weighted(0.2, list(one_of(SETS.into_iter().chain([MISSING_SET])), 2)).boxed()),
        ("numberOfClusters", option::weighted(0.7, one_of([1, 2, 3, 0, 5, 100, 150, 1000])).boxed()),
        ("predicates", option::weighted(0.6, list(predicate(), 2)).boxed()),
        ("prioritizerPolicy", option::weighted(0.7, policy()).boxed()),
        ("tolerations", option::weighted(0.7, list(toleration(), 3)).boxed()),
        ("decisionStrategy", option::weighted(0.4, strategy()).boxed()),
    ])
}

fn predicate() -> Json {
    let cel = object([has("celExpressions", list(expression(), 2))]);
    let selector = object([
        may_have("labelSelector", label_selector()),
        ("claimSelector", option::weighted(0.3, claim_selector()).boxed()),
        ("celSelector", option::weighted(0.3, cel).boxed()),
    ]);
    object([has("requiredClusterSelector", selector)])
}

fn policy() -> Json {
    let mode = mostly(one_of(["Additive", "Exact"]), one_of(["", "Fair"]));
    object([has("mode", mode), has("configurations", list(configuration(), 3))])
}

/// Prioritizers, by weights that the API server has completed.
fn configuration() -> Json {
    let weight = one_of([1, 0, -1, 2, 3, -10, 10]);
    let built_in = mostly(
        one_of(["Steady", "Balance", "ResourceAllocatableCPU", "ResourceAllocatableMemory"]),
        one_of(["Spread", "", "steady"]),
    );
    let built_in = object([has("type", just("BuiltIn")), has("builtIn", built_in)]);
    let names = object([has("resourceName", one_of(RESOURCES)), has("scoreName", one_of(SCORES))]);
    let addon = object([has("type", just("AddOn")), has("addOn", names)]);
    let names = json!({"resourceName": "r1", "scoreName": "s1"});
    let odd = one_of([
        json!({"type": "AddOn"}),
        json!({"type": "BuiltIn"}),
        json!({"type": "AddOn", "builtIn": "Steady"}),
        json!({"type": "BuiltIn", "builtIn": "Steady", "addOn": names}),
        json!({"type": "AddOn", "builtIn": "Steady", "addOn": names}),
    ]);
    object([has("scoreCoordinate", weighted([(30, built_in), (15, addon), (1, odd)])), has("weight", weight)])
}

fn toleration() -> Json {
    let valid = object([
        has("key", one_of(["gpu", "example.com/spot"])),
        has("operator", mostly(one_of(["Equal", "Exists"]), just("Like"))),
        may_have("effect", one_of(["NoSelect", "NoSelectIfNew", "PreferNoSelect"])),
        may_have("tolerationSeconds", mostly(one_of([60, 0, 30, 3600, -5, 61]), just(1_000_000_000))),
    ]);
    let valued = object([
        has("key", one_of(["gpu", "example.com/spot"])),
        has("operator", mostly(just("Equal"), one_of(["Exists", ""]))),
        has("value", one_of(["yes", "no", ""])),
        may_have("tolerationSeconds", one_of([60, 3600])),
    ]);
    let every = object([
        has("operator", mostly(just("Exists"), just("Equal"))),
        may_have("effect", one_of(["NoSelect", "NoSelectIfNew", "PreferNoSelect"])),
        may_have("tolerationSeconds", one_of([3600, 60])),
    ]);
    weighted([(3, valid), (2, valued), (2, every)])
}

fn strategy() -> Json {
    let size = mostly(
        one_of([json!(1), json!(2), json!(3), json!("100%"), json!("1%"), json!("33%"), json!("50%"), json!(150)]),
        one_of([json!("3"), json!(0), json!(-1)]),
    );
    let selector = object([may_have("labelSelector", label_selector()), may_have("claimSelector", claim_selector())]);
    let group = object([has("groupName", one_of(["canary", "rest"])), has("groupClusterSelector", selector)]);
    let groups = object([may_have("clustersPerDecisionGroup", size), has("decisionGroups", list(group, 2))]);
    object([("groupStrategy", option::weighted(0.9, groups).boxed())])
}
