use serde_json::{Value, from_value, json, to_value};

use super::*;
use crate::testing::now;

/// The answer for placement `n/p` with this spec, of clusters `a`, `b` and `c` in a bound set: `c` has another label, and `b` a
/// taint.
#[expect(clippy::needless_pass_by_value, reason = "for the tests to be short")]
fn answer(spec: Value) -> Value {
    let cluster = |name: &str, env: &str, taints: Value| {
        let labels = json!({"cluster.open-cluster-management.io/clusterset": "s", "env": env});
        let status = json!({"allocatable": {"cpu": "2"}, "capacity": {"cpu": "2"}});
        let status = if name == "a" { status } else { json!({}) };
        from_value::<ManagedCluster>(json!({"metadata": {"name": name, "labels": labels},
            "spec": {"hubAcceptsClient": true, "taints": taints}, "status": status}))
        .unwrap()
    };
    let taint = json!([{"key": "t", "effect": "NoSelect"}]);
    let clusters = [cluster("a", "prod", json!([])), cluster("b", "prod", taint), cluster("c", "test", json!([]))];
    let set: ManagedClusterSet = from_value(json!({"metadata": {"name": "s"}, "spec": {}})).unwrap();
    let metadata = json!({"name": "s", "namespace": "n"});
    let binding: ManagedClusterSetBinding =
        from_value(json!({"metadata": metadata, "spec": {"clusterSet": "s"}})).unwrap();
    let metadata = json!({"name": "p", "namespace": "n", "uid": "u", "annotations": {"k": "v"}});
    let status = json!({"numberOfSelectedClusters": 7, "decisionGroups": []});
    let placement: Placement = from_value(json!({"metadata": metadata, "spec": spec, "status": status})).unwrap();
    let objects = Objects { clusters: &clusters, sets: &[set], bindings: &[binding], ..Objects::default() };
    let snapshot = Snapshot::of(&placement, &objects, now());
    to_value(Answer::of(&placement, &explain(&snapshot, now()))).unwrap()
}

fn prod(more: &Value) -> Value {
    let selector = json!({"labelSelector": {"matchLabels": {"env": "prod"}}});
    let mut spec = json!({"predicates": [{"requiredClusterSelector": selector}]});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    spec
}

#[test]
fn the_answer_has_the_filters_cumulated_the_scores_and_the_placement_without_its_status() {
    let cpu = json!({"scoreCoordinate": {"type": "BuiltIn", "builtIn": "ResourceAllocatableCPU"}, "weight": 3});
    let policy = json!({"mode": "Exact", "configurations": [cpu]});
    let tolerations = json!([{"key": "t", "operator": "Exists"}]);
    let answer = answer(prod(&json!({"prioritizerPolicy": policy, "tolerations": tolerations})));
    let filtered = json!([
        {"name": "Predicate", "filteredClusters": ["a", "b"]},
        {"name": "Predicate,TaintToleration", "filteredClusters": ["a", "b"]},
    ]);
    assert_eq!(answer["filteredPipelineResults"], filtered);
    let scores = json!([{"name": "ResourceAllocatableCPU", "weight": 3, "scores": {"a": 100}}]);
    assert_eq!(answer["prioritizeResults"], scores, "b reports no CPU");
    let sums = json!([{"clusterName": "a", "score": 300}, {"clusterName": "b", "score": 0}]);
    assert_eq!(answer["aggregatedScores"], sums);
    let metadata = json!({"name": "p", "namespace": "n", "annotations": {"k": "v"}});
    assert_eq!(answer["placement"]["metadata"], metadata);
    assert_eq!((&answer["placement"]["status"], &answer["error"]), (&Value::Null, &Value::Null));
}

#[test]
fn what_a_filter_removes_is_not_in_the_next() {
    let answer = answer(prod(&json!({})));
    let filtered = &answer["filteredPipelineResults"];
    assert_eq!(
        (&filtered[0]["filteredClusters"], &filtered[1]["filteredClusters"]),
        (&json!(["a", "b"]), &json!(["a"]))
    );
}

#[test]
fn of_an_invalid_placement_the_lists_end_with_the_last_valid_step() {
    let answer = answer(prod(&json!({"tolerations": [{"key": "a", "operator": "Exists", "value": "v"}]})));
    assert_eq!(answer["filteredPipelineResults"], json!([{"name": "Predicate", "filteredClusters": ["a", "b"]}]));
    assert_eq!(answer["aggregatedScores"], Value::Null);
}
