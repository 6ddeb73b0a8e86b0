use proptest::prelude::*;
use serde_json::json;

use super::*;

fn gvk(group: &str, kind: &str) -> GroupVersionKind {
    GroupVersionKind::gvk(group, "v1", kind)
}

const RAW: FeedbackSettings = FeedbackSettings { json_raw: true, max_json_raw: 1024 };

fn read_with(object: &Value, rules: &Value, settings: FeedbackSettings) -> Feedback {
    let rules: Vec<FeedbackRule> = serde_json::from_value(rules.clone()).unwrap();
    read(object, &gvk("apps", "Deployment"), &rules, 3, settings, &mut budget())
}

fn budget() -> Budget {
    Budget::new(u64::MAX, u64::MAX)
}

fn paths(paths: &[(&str, &str)]) -> Value {
    let paths: Vec<_> = paths.iter().map(|(name, path)| json!({"name": name, "path": path})).collect();
    json!([{"type": "JSONPaths", "jsonPaths": paths}])
}

fn values(feedback: &Feedback) -> Value {
    let value = |one: &FeedbackValue| {
        let value = &one.field_value;
        let text = value.string.clone().or(value.json_raw.clone()).map(Value::from);
        let plain = value.integer.map(Value::from).or(value.boolean.map(Value::from));
        json!([one.name, value.type_.to_string(), text.or(plain)])
    };
    feedback.values.iter().map(value).collect()
}

fn outcome(feedback: &Feedback) -> (&str, &str, &str) {
    (feedback.condition.status, feedback.condition.reason, &feedback.condition.message)
}

#[test]
fn without_rules_there_is_no_feedback() {
    let feedback = read_with(&json!({}), &json!([]), RAW);
    assert_eq!(outcome(&feedback), ("True", "NoStatusFeedbackSynced", ""));
}

#[test]
fn rules_that_yield_nothing_are_synced() {
    let object = json!({"status": {"nothing": null, "list": []}});
    let rules = json!([{"type": "WellKnownStatus"},
        {"type": "JSONPaths", "jsonPaths": [{"name": "a", "path": ".status.nothing"}, {"name": "b", "path": ".status.list[*]"}]}]);
    let feedback = read_with(&object, &rules, RAW);
    assert_eq!((outcome(&feedback), values(&feedback)), (("True", "StatusFeedbackSynced", ""), json!([])));
}

#[test]
fn rules_are_evaluated_in_order_and_their_values_follow_each_other() {
    let object = json!({"spec": {"paused": true}, "status": {"readyReplicas": 1, "replicas": 2, "phase": "up"}});
    let rules = json!([
        {"type": "JSONPaths", "jsonPaths": [{"name": "phase", "path": ".status.phase"}, {"name": "paused", "path": "{.spec.paused"}]},
        {"type": "WellKnownStatus"},
        {"type": "JSONPaths", "jsonPaths": [{"name": "paused", "path": ".spec.paused", "version": "v1"}]},
    ]);
    let feedback = read_with(&object, &rules, FeedbackSettings::default());
    assert_eq!(
        values(&feedback),
        json!([
            ["phase", "String", "up"],
            ["ReadyReplicas", "Integer", 1],
            ["Replicas", "Integer", 2],
            ["paused", "Boolean", true]
        ])
    );
    let message = "spec.manifestConfigs[3].feedbackRules[0].jsonPaths[1] (paused): the path is invalid: the path is written \
                   without braces, at character 1";
    assert_eq!(
        outcome(&feedback),
        ("False", "StatusFeedbackSyncFailed", message),
        "what worked is reported all the same"
    );
}

#[test]
fn well_known_statuses_are_those_of_four_kinds_in_exactly_one_version() {
    let conditions =
        |type_: &str| json!({"conditions": [{"type": "X", "status": "1"}, {"type": type_, "status": "True"}]});
    let mut job = conditions("Complete");
    job["succeeded"] = json!(3);
    let mut pod = conditions("Ready");
    pod["phase"] = json!("Running");
    let rules: Vec<FeedbackRule> = serde_json::from_value(json!([{"type": "WellKnownStatus"}])).unwrap();
    for (gvk, status, expected) in [
        (
            gvk("apps", "Deployment"),
            json!({"readyReplicas": 1, "replicas": 2, "availableReplicas": 3}),
            json!([["ReadyReplicas", "Integer", 1], ["Replicas", "Integer", 2], ["AvailableReplicas", "Integer", 3]]),
        ),
        (
            gvk("apps", "DaemonSet"),
            json!({"numberReady": 1, "desiredNumberScheduled": 2, "numberAvailable": 3}),
            json!([
                ["NumberReady", "Integer", 1],
                ["DesiredNumberScheduled", "Integer", 2],
                ["NumberAvailable", "Integer", 3]
            ]),
        ),
        (gvk("batch", "Job"), job, json!([["JobComplete", "String", "True"], ["JobSucceeded", "Integer", 3]])),
        (gvk("", "Pod"), pod, json!([["PodReady", "String", "True"], ["PodPhase", "String", "Running"]])),
    ] {
        let feedback = read(&json!({"status": status}), &gvk, &rules, 0, FeedbackSettings::default(), &mut budget());
        assert_eq!((values(&feedback), feedback.condition.status), (expected, "True"), "{gvk:?}");
    }
    for unknown in [gvk("apps", "StatefulSet"), GroupVersionKind::gvk("apps", "v1beta1", "Deployment"), gvk("x", "Pod")]
    {
        let feedback = read(&json!({}), &unknown, &rules, 0, FeedbackSettings::default(), &mut budget());
        assert_eq!(feedback.condition.status, "False");
        let message = &feedback.condition.message;
        assert!(message.contains(&unknown.kind) && message.contains("use JSONPaths"), "{message}");
    }
}

#[test]
fn a_path_for_another_version_is_an_error() {
    let rules = json!([{"type": "JSONPaths", "jsonPaths": [
        {"name": "a", "path": ".a", "version": "v1beta1"}, {"name": "b", "path": ".a", "version": ""}]}]);
    let feedback = read_with(&json!({"a": 1}), &rules, RAW);
    assert_eq!(values(&feedback), json!([["b", "Integer", 1]]));
    let (status, _, message) = outcome(&feedback);
    assert!(
        status == "False" && message.contains("version v1beta1, and the object was applied in version v1"),
        "{message}"
    );
}

#[test]
fn without_the_gate_the_first_of_several_results_is_reported_and_nothing_but_scalars() {
    let object = json!({"list": [1, 2], "object": {"a": 1}, "float": 1.5, "large": 18_446_744_073_709_551_615u64, "first": [null, 1]});
    let all = [
        ("first", ".list[*]"),
        ("null", ".first[*]"),
        ("list", ".list"),
        ("object", ".object"),
        ("float", ".float"),
        ("large", ".large"),
    ];
    let feedback = read_with(&object, &paths(&all), FeedbackSettings::default());
    assert_eq!(values(&feedback), json!([["first", "Integer", 1]]));
    let message = &feedback.condition.message;
    assert!(message.contains("jsonPaths[2] (list): the value is a list"), "{message}");
    assert!(message.contains("jsonPaths[5] (large): the value is no integer of 64 bits"), "{message}");
    assert!(message.contains("RawFeedbackJsonString=true"), "{message}");
}

#[test]
fn with_the_gate_everything_else_is_reported_as_json() {
    let object =
        json!({"list": [1, {"b": 1, "a": "<é>"}], "float": 1.0, "large": 18_446_744_073_709_551_615u64, "one": ["x"]});
    let all = [("several", ".list[*]"), ("float", ".float"), ("large", ".large"), ("one", ".one[*]"), ("list", ".one")];
    let feedback = read_with(&object, &paths(&all), RAW);
    assert_eq!(
        values(&feedback),
        json!([
            ["several", "JsonRaw", "[1,{\"a\":\"\\u003cé\\u003e\",\"b\":1}]"],
            ["float", "JsonRaw", "1"],
            ["large", "JsonRaw", "18446744073709552000"],
            ["one", "String", "x"],
            ["list", "JsonRaw", "[\"x\"]"]
        ])
    );
}

#[test]
fn json_is_at_most_as_long_as_the_flag_and_the_api_allow() {
    let object = json!({"short": "x".repeat(20), "long": "x".repeat(1100), "wide": "ü".repeat(700)});
    let all = [("short", "['short','short']"), ("long", "['long','short']"), ("wide", "['wide','short']")];
    for (most, reported) in [(10, vec![]), (1024, vec!["short"]), (5000, vec!["short", "wide"])] {
        let feedback = read_with(&object, &paths(&all), FeedbackSettings { json_raw: true, max_json_raw: most });
        assert_eq!(feedback.values.iter().map(|value| value.name.as_str()).collect::<Vec<_>>(), reported, "{most}");
        assert!(feedback.condition.message.contains("use a path to a part of it"));
    }
}

#[test]
fn a_name_that_occurs_twice_is_an_error_of_the_second_rule() {
    let mut rules = paths(&[("a", ".a"), ("gone", ".gone")]);
    rules.as_array_mut().unwrap().extend(paths(&[("a", ".b"), ("gone", ".b")]).as_array().unwrap().clone());
    let feedback = read_with(&json!({"a": 1, "b": 2}), &rules, RAW);
    assert_eq!(values(&feedback), json!([["a", "Integer", 1], ["gone", "Integer", 2]]));
    let message = &feedback.condition.message;
    assert!(message.contains("feedbackRules[1].jsonPaths[0] (a): another value has the same name"), "{message}");
}

#[test]
fn the_text_of_all_values_of_an_object_is_limited() {
    let object = json!({"text": "x".repeat(MAX_TEXT / 2 + 1), "n": 1});
    let feedback = read_with(&object, &paths(&[("a", ".text"), ("b", ".text"), ("n", ".n")]), RAW);
    assert_eq!(feedback.values.iter().map(|value| value.name.as_str()).collect::<Vec<_>>(), ["a", "n"]);
    assert!(feedback.condition.message.contains("(b): the value is too long"), "{}", feedback.condition.message);
}

#[test]
fn many_mistakes_are_counted() {
    let names: Vec<_> = (0..9).map(|n| format!("n{n}")).collect();
    let all: Vec<_> = names.iter().map(|name| (name.as_str(), ".a[")).collect();
    let feedback = read_with(&json!({}), &paths(&all), RAW);
    assert!(feedback.condition.message.ends_with("; and 4 more"), "{}", feedback.condition.message);
}

#[test]
fn json_is_written_as_go_writes_it() {
    for (value, text) in [
        (json!({"b": 1, "a": [true, null]}), r#"{"a":[true,null],"b":1}"#),
        (
            json!("a<b>&\u{2028}\u{2029}\"\\\n\u{7f}\u{1}"),
            "\"a\\u003cb\\u003e\\u0026\\u2028\\u2029\\\"\\\\\\n\u{7f}\\u0001\"",
        ),
        (
            json!([0.1, 1e21, 1e20, 1e-7, 1.5e-7, 1e-6, -2.5e30, 100.0]),
            "[0.1,1e+21,100000000000000000000,1e-7,1.5e-7,0.000001,-2.5e+30,100]",
        ),
    ] {
        assert_eq!(json_raw::text(&value, text.len()).unwrap(), text);
        assert_eq!(json_raw::text(&value, text.len() - 1), None);
    }
}

proptest! {
    #[test]
    fn no_rule_makes_a_status_that_the_api_server_refuses(
        names in prop::collection::vec(("[a-c]{1,2}", "(\\.[a-c]|\\[[0-1*]\\]|\\.\\.[a-c]|[{?(@)=]){0,5}"), 0..8),
        object in prop::collection::btree_map("[a-c]", prop::collection::vec("[a-c<ü]{0,900}", 0..3), 0..3),
        most in 0usize..4000,
    ) {
        let paths: Vec<_> = names.iter().map(|(name, path)| json!({"name": name, "path": path})).collect();
        let rules = json!([{"type": "JSONPaths", "jsonPaths": paths}, {"type": "WellKnownStatus"}]);
        let feedback = read_with(&json!(object), &rules, FeedbackSettings { json_raw: true, max_json_raw: most });
        let unique: HashSet<_> = feedback.values.iter().map(|value| &value.name).collect();
        prop_assert_eq!(unique.len(), feedback.values.len());
        for value in &feedback.values {
            prop_assert!(value.field_value.json_raw.as_ref().is_none_or(|raw| raw.chars().count() <= 1024 && raw.len() <= most));
        }
    }
}
