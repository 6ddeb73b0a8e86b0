//! What cel-go answers to thousands of expressions, in the environment that OCM's agent has.
//!
//! `data/cel-go.jsonl` holds an object, then a list for each expression: the expression, `value` and the value, or what
//! is wrong with it: `syntax`, `type` (found by its type checker) or `failed` (in the evaluation).

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use ocm_apimachinery::quantity::Quantity;
use ocm_cel::{
    Budget, Environment, Key, Meter, Problem, Value,
    functions::{Function, Outcome},
};
use serde_json::{Value as Json, json};

/// cel-go 0.26.0, with the libraries of k8s.io/apiserver 0.35.0.
const CEL_GO: &str = include_str!("data/cel-go.jsonl");

/// What differs on purpose, and parts of the expressions concerned. `docs/differences.md` names those that users are
/// likely to meet.
const DIFFERENT: &[(&str, &[&str])] = &[
    ("timestamps end on 9999-12-30", &["timestamp('9999-12-31T23:59:59", "timestamp(253402300799)"]),
    (
        "timestamps are in UTC",
        &[
            "string(timestamp('2024-12-31T23:59:59+05:30'))",
            "string(timestamp('2024-01-01T00:00:00+24:00'))",
            "string(timestamp('2024-01-01T00:00:00+01:00'))",
        ],
    ),
    ("the agent's own time zone does not matter", &["'Local'"]),
    (
        "values of Kubernetes' types do not equal others, which is an error in cel-go",
        &[
            "dyn(cidr('10.0.0.0/8')) == dyn('%d%%')",
            "dyn(quantity('500m')) == dyn(1e100)",
            "dyn(url('ftp://h:21/')) == dyn('",
            "dyn(quantity('0.1m')) == dyn({",
        ],
    ),
    ("texts of doubles have no underscores and are decimal", &["double('1_0", "double('0x1p", "double('0x_1p"]),
    (
        "whole numbers are formatted as doubles, where cel-go prints an error into the text",
        &[
            "'%.2f'.format([1])",
            "'%e'.format([2])",
            "'%.1e'.format([3])",
            "'%f'.format([-3])",
            "'%e'.format([0u])",
            "'%.0e'.format([dyn(10)])",
            "'%e'.format([dyn(1u)])",
            "'%.0e'.format([dyn(-9223372036854775808)])",
            "'%e'.format([dyn(1)])",
        ],
    ),
    (
        "elements that cannot be compared are an error",
        &["[1, 'a'].isSorted", "[1, 'a'].m", "[1, 'a', 2].isSorted", "['a', 1].max", "[double('NaN'), 1.0]"],
    ),
    (
        "whether a quantity is an integer depends on its amount only, which ends at 2^63 - 1; a point alone is none",
        &["uantity('.')", "100Ei", "0.5Ki", "quantity('9223372036854775807').", "1e100').asApproximateFloat"],
    ),
    (
        "keys of maps are texts, booleans or whole numbers of one type, and visited in their order",
        &["{1u: 2}.map(", "map(k, object.metadata.labels[k])", "1.0: ", "{null: 1}", "{[]: 1}"],
    ),
    ("there are no messages", &["google.protobuf.Duration{", "google.protobuf.Struct{", "google.protobuf.Int64Value{"]),
    (
        "the parser of regular expressions is that of Rust",
        &["'[a--]'", "(?P<a>a)(?P<a>b)", "p{Alphabetic}", "[[:foo:]]"],
    ),
];

/// The agent has it, and not the library.
const FUNCTIONS: &[Function] = &[Function::global("hasConditions", 1..=1, has_conditions)];

#[allow(clippy::unnecessary_wraps, reason = "as functions are")]
fn has_conditions(_: &mut Meter, args: &[Value]) -> Outcome {
    let conditions = args.first().and_then(|status| status.get("conditions"));
    Ok(Value::Bool(matches!(conditions, Some(Value::List(list)) if !list.is_empty())))
}

fn answer(environment: &Environment, source: &str, object: &Value) -> (&'static str, Json) {
    let program = match environment.compile(source) {
        Ok(program) => program,
        Err(error) => return ("syntax", error.to_string().into()),
    };
    match program.evaluate([object.clone()], &mut Budget::new(1_000_000, 1_000_000)) {
        Ok(value) => ("value", encode(&value)),
        Err(error) => {
            assert!(matches!(error.problem, Problem::Failed(_)), "{source}: {error}");
            ("failed", error.to_string().into())
        }
    }
}

fn encode(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(value) => json!(value),
        Value::String(text) => json!(text.as_ref()),
        Value::Int(value) => json!(["i", value.to_string()]),
        Value::Uint(value) => json!(["u", value.to_string()]),
        Value::Double(value) if value.is_nan() => json!(["d", "NaN"]),
        Value::Double(value) => json!(["d", format!("{:x}", value.to_bits())]),
        Value::Bytes(bytes) => json!(["b", bytes.as_ref()]),
        Value::List(items) => json!(["l", items.iter().map(encode).collect::<Vec<_>>()]),
        Value::Map(map) => {
            let entries = map.iter().map(|(key, value)| (encode_key(key).to_string(), encode(value)));
            json!(["m", entries.collect::<std::collections::BTreeMap<_, _>>()])
        }
        Value::Optional(None) => json!(["o"]),
        Value::Optional(Some(value)) => json!(["o", encode(value)]),
        Value::Duration(duration) => json!(["dur", duration.as_nanos().to_string()]),
        Value::Timestamp(time) => {
            let nanos = time.as_nanosecond();
            json!(["ts", nanos.div_euclid(1_000_000_000).to_string(), nanos.rem_euclid(1_000_000_000).to_string()])
        }
        Value::Type(name) => json!(["t", name]),
        Value::Quantity(nanos) => json!(["q", nanos.to_string()]),
        Value::Ip(address) => json!(["ip", address.to_string()]),
        Value::Cidr(range) => json!(["cidr", range.to_string()]),
        Value::Url(_) => json!(["url"]),
        Value::Semver(_) => json!(["semver"]),
        Value::Format(_) => json!(["format"]),
    }
}

/// Whole numbers are keys of one type here.
fn encode_key(key: &Key) -> Json {
    match key {
        Key::Bool(value) => json!(value),
        Key::Number(value) => json!(["n", value.to_string()]),
        Key::String(text) => json!(text.as_ref()),
    }
}

/// A value of cel-go in the form of [`encode`].
fn normal(value: &Json) -> Json {
    let Some(parts) = value.as_array() else { return value.clone() };
    let texts: Vec<_> = parts.iter().map(|part| part.as_str().unwrap_or_default()).collect();
    match (texts.as_slice(), parts.get(1)) {
        (["q", text], _) => json!(["q", text.parse::<Quantity>().expect("a quantity").nanos().to_string()]),
        (["url" | "semver" | "format", _], _) => json!([texts[0]]),
        (["o", _], Some(value)) => json!(["o", normal(value)]),
        (["l", _], Some(Json::Array(items))) => json!(["l", items.iter().map(normal).collect::<Vec<_>>()]),
        (["m", _], Some(entries)) => {
            let key = |key: &Json| match key.as_array().map(Vec::as_slice) {
                Some([_, number]) => json!(["n", number]).to_string(),
                _ => key.to_string(),
            };
            let entries = entries.as_array().into_iter().flatten().map(|entry| (key(&entry[0]), normal(&entry[1])));
            json!(["m", entries.collect::<std::collections::BTreeMap<_, _>>()])
        }
        _ => value.clone(),
    }
}

/// Whether our answer is as good as that of cel-go. Types are checked when a value is used, so what its type checker refuses
/// may fail later, or have a value.
fn agrees(theirs: (&str, &Json), ours: (&str, &Json)) -> bool {
    match theirs.0 {
        "value" => ours.0 == "value" && normal(theirs.1) == *ours.1,
        "failed" => ours.0 != "value",
        "syntax" => ours.0 == "syntax",
        _ => true,
    }
}

#[test]
fn expressions_have_the_values_that_they_have_in_cel_go() {
    let environment = Environment::new(["object"]).with(FUNCTIONS);
    let mut lines = CEL_GO.lines().map(|line| serde_json::from_str::<Json>(line).expect(line));
    let object = Value::from(&lines.next().expect("the object"));
    let on_purpose: Vec<_> = DIFFERENT.iter().flat_map(|(_, parts)| parts.iter().copied()).collect();
    let (mut count, mut wrong, mut differing) = (0, Vec::new(), BTreeSet::new());
    for case in lines {
        let (source, kind) = (case[0].as_str().expect("an expression"), case[1].as_str().expect("a kind"));
        let (our_kind, our_value) = answer(&environment, source, &object);
        count += 1;
        if agrees((kind, &case[2]), (our_kind, &our_value)) {
            continue;
        }
        match on_purpose.iter().find(|part| source.contains(**part)) {
            Some(part) => _ = differing.insert(*part),
            None => wrong.push(format!("{source}\n    cel-go: {kind} {}\n    ours:   {our_kind} {our_value}", case[2])),
        }
    }
    assert!(count > 5_000);
    assert!(wrong.is_empty(), "{} of {count} differ:\n{}", wrong.len(), wrong.join("\n"));
    let gone: Vec<_> = on_purpose.iter().filter(|part| !differing.contains(**part)).collect();
    assert!(gone.is_empty(), "these differ no longer: {gone:?}");
}
