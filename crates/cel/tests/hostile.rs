//! Expressions that would take all memory or time, if they could.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use ocm_cel::{Budget, Environment, Problem, Value};
use proptest::prelude::*;
use serde_json::json;

/// OCM's limit for an expression.
const LIMIT: u64 = 1_000_000;

fn evaluate(source: &str, object: Value) -> Result<Value, ocm_cel::Error> {
    Environment::new(["object"]).compile(source)?.evaluate([object], &mut Budget::new(LIMIT, LIMIT))
}

fn is_too_expensive(source: &str, object: &serde_json::Value) {
    match evaluate(source, Value::from(object)) {
        Err(error) if matches!(error.problem, Problem::TooExpensive { .. }) => {}
        other => panic!("{}: {:.300?}", source.chars().take(200).collect::<String>(), other),
    }
}

/// An expression that binds a name to a value.
fn bind(value: &str, name: &str, body: &str) -> String {
    format!("optional.of({value}).optMap({name}, {body}).value()")
}

/// The value, doubled many times.
fn doubled(value: &str, times: usize, double: &str) -> String {
    (0..times).fold(value.to_owned(), |value, _| bind(&value, "x", double))
}

#[test]
fn a_megabyte_that_is_doubled_again_and_again_is_stopped() {
    let object = json!({"text": "x".repeat(1 << 20), "list": vec![0; 10_000]});
    is_too_expensive(&doubled("object.text", 20, "x + x"), &object);
    is_too_expensive(&doubled("object.list", 20, "x + x"), &object);
    is_too_expensive(&doubled("bytes(object.text)", 20, "x + x"), &object);
    is_too_expensive(&doubled("'ab'", 20, "x.replace('', x)"), &object);
    is_too_expensive(&doubled("'ab'", 20, "x.split('').map(c, x).join(x)"), &object);
    is_too_expensive("object.text.split('').map(c, object.text.split(''))", &object);
    is_too_expensive("object.list.map(x, object.text + 'a')", &object);
}

#[test]
fn lists_of_lists_of_themselves_are_small_and_are_not_read_to_their_end() {
    let tree = doubled("[1, 2]", 30, "[x, x]");
    assert!(matches!(evaluate(&format!("{tree}.size() == 2"), Value::Null), Ok(Value::Bool(true))));
    is_too_expensive(&format!("{tree} == {tree}"), &json!(null));
    is_too_expensive(&format!("'%s'.format([{tree}])"), &json!(null));
    is_too_expensive(&format!("{tree} in [{tree}]"), &json!(null));
}

#[test]
fn nested_macros_over_large_lists_are_stopped() {
    let object = json!({"list": vec![0; 10_000]});
    let list = "object.list";
    is_too_expensive(&format!("{list}.all(a, {list}.all(b, {list}.all(c, a + b + c == 0)))"), &object);
    is_too_expensive(&format!("{list}.map(a, {list}.map(b, {list}.filter(c, true)))"), &object);
    is_too_expensive(&format!("{list}.exists(a, {list}.exists_one(b, b == 1))"), &object);
    // What makes a condition true must not hide that it costs too much.
    is_too_expensive(&format!("{list}.all(a, {list}.all(b, true)) || true"), &object);
}

#[test]
fn regular_expressions_are_linear_and_bounded() {
    let object = json!({"text": "a".repeat(100_000), "list": vec!["a"; 1_000]});
    let fast =
        ["object.text.matches('^(a+)+$')", "!object.text.matches('(a|aa)+b')", "object.list.all(x, x.matches('^a$'))"];
    for source in fast {
        assert!(matches!(evaluate(source, Value::from(&object)), Ok(Value::Bool(true))), "{source}");
    }
    for pattern in [r"((a{1,50}){1,50}){1,50}", r"(\\pL{50}){50}", r"(\\w{3,300}\\s){500}"] {
        let error = evaluate(&format!("object.text.matches('{pattern}')"), Value::from(&object)).unwrap_err();
        assert!(error.to_string().contains("too large"), "{error}");
    }
    // Each of them is compiled.
    is_too_expensive(
        "object.list.map(x, object.list.size()).all(n, 'a'.matches(string(n) + 'a') || true) && object.list.map(x, [x, x].join()).all(x, object.list.all(y, object.text.matches(x + y + '[a-z]{500}$')))",
        &object,
    );
    is_too_expensive("object.text.findAll('a.*b|a').size() > 0", &object);
}

#[test]
fn deep_expressions_are_refused_and_those_that_are_just_deep_enough_have_a_value() {
    let nested =
        |open: &str, inner: &str, close: &str, times| [open.repeat(times), inner.into(), close.repeat(times)].concat();
    let too_deep = [
        nested("(", "1", ")", 40_000),
        nested("[", "", "]", 40_000),
        nested("{1:", "1", "}", 20_000),
        nested("[", "", "", 90_000),
        nested("true ? 1 : ", "1", "", 9_000),
        nested("[1].all(x, ", "true", ")", 5_000),
        nested("dyn(", "1", ")", 9_000),
        nested("", "1", "+1", 40_000),
        nested("", "object", ".a", 40_000),
        nested("", "object", "[0]", 30_000),
        nested("1 in ", "1", "", 1_000),
        nested("-(", "1", ")", 20_000),
    ];
    for source in too_deep {
        let error = evaluate(&source, Value::Null).unwrap_err();
        assert!(error.to_string().contains("levels deep"), "{} {error}", &source[..40]);
    }
    for source in [
        nested("[", "1", "]", 98),
        nested("dyn(", "1", ")", 98),
        nested("true ? (", "1", ") : 2", 45),
        nested("[1].map(x, ", "1", ")", 98),
    ] {
        assert!(evaluate(&source, Value::Null).is_ok(), "{}", &source[..40]);
    }
    assert!(evaluate(&nested("!", "true", "", 90_000), Value::Null).is_ok());
    assert!(evaluate(&nested("", "true", "&& true", 10_000), Value::Null).is_ok());
}

#[test]
fn an_expression_that_is_too_long_is_refused() {
    let error = evaluate(&format!("'{}'", "x".repeat(100_000)), Value::Null).unwrap_err();
    assert!(error.to_string().contains("at most 100000 are allowed"), "{error}");
}

#[test]
fn what_several_expressions_cost_together_is_bounded() {
    let program = Environment::new(["object"]).compile("object.all(x, x == 0)").unwrap();
    let object = Value::from(&json!(vec![0; 10]));
    let mut budget = Budget::new(200, 100);
    let evaluations: Vec<_> = (0..5).map(|_| program.evaluate([object.clone()], &mut budget).is_ok()).collect();
    assert_eq!(evaluations, [true, true, true, false, false]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_text_makes_the_compiler_panic(source in "\\PC{0,60}") {
        let _ = evaluate(&source, Value::Null);
    }

    #[test]
    fn no_mix_of_tokens_makes_the_evaluation_panic(tokens in prop::collection::vec(prop::sample::select(TOKENS), 0..14)) {
        let _ = evaluate(&tokens.concat(), Value::from(&json!({"a": [1, -1, "x", 1.5, null, {"b": true}], "t": "é"})));
    }
}

const TOKENS: &[&str] = &[
    "object",
    ".a",
    ".t",
    ".?b",
    "[0]",
    "[?1]",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    " + ",
    " - ",
    " * ",
    " / ",
    " % ",
    " == ",
    " < ",
    " && ",
    " || ",
    " in ",
    "!",
    "-",
    " ? ",
    "1",
    "-1",
    "0",
    "2u",
    "1.5",
    "'é'",
    "'%s'",
    "b'x'",
    "null",
    "true",
    "int",
    ".size()",
    ".map(x, x)",
    ".all(x, x)",
    ".filter(x, ",
    ".exists_one(x, ",
    "x",
    ".substring(1)",
    ".charAt(-1)",
    ".split('')",
    ".format(",
    ".reverse()",
    ".lastIndexOf('é', 1)",
    ".replace('', '')",
    "string(",
    "quantity('1E')",
    ".sub(",
    "duration('-1h')",
    "timestamp('9999-12-31T23:59:59Z')",
    ".getDayOfYear()",
    ".orValue(",
    "optional.of(",
    ".find('.')",
    ".sum()",
    ".min()",
    "cidr('::/0')",
    ".masked()",
    "9223372036854775807",
    "-9223372036854775808",
    "type(",
];

#[test]
fn a_long_regular_expression_is_refused_before_it_is_parsed() {
    let pattern = r"\\w".repeat(20_000);
    let source = format!("'a'.matches('{pattern}')");
    let program = Environment::new(["object"]).compile(&source).unwrap();
    let failed = program.evaluate([Value::Null], &mut Budget::new(10_000_000, 1_000_000)).unwrap_err().to_string();
    assert!(failed.contains("longer than 1024 bytes"), "{failed}");
}

/// What an expression costs, whether it has a value or not.
fn cost(source: &str, object: &serde_json::Value) -> u64 {
    let program = Environment::new(["object"]).compile(source).expect(source);
    let mut budget = Budget::new(10 * LIMIT, 10 * LIMIT);
    let _ = program.evaluate([Value::from(object)], &mut budget);
    10 * LIMIT - budget.left()
}

#[test]
fn what_is_compared_or_looked_up_is_paid_for() {
    let long = "k".repeat(1 << 20);
    let numbers: serde_json::Map<_, _> = (0..10_000).map(|n| (format!("key-{n:06}"), json!(n))).collect();
    let object =
        json!({"a": {long.as_str(): 1}, "b": {long.as_str(): 1}, "text": long, "keys": {"x": numbers, "y": numbers}});
    let megabyte = 1 << 20;
    for (source, bytes) in [
        ("object.a == object.b", megabyte),
        ("[object.a] == [object.b]", megabyte),
        ("object.a in [object.b]", megabyte),
        ("object.text == object.text", megabyte),
        ("object.text < object.text", megabyte),
        ("bytes(object.text) < bytes(object.text)", 3 * megabyte),
        ("[object.text, object.text].max()", megabyte),
        ("object.a[object.text]", megabyte),
        ("object.a[?object.text]", megabyte),
        ("object.text in object.a", megabyte),
        ("{object.text: 1}", megabyte),
        ("int(object.text)", megabyte),
        ("uint(object.text)", megabyte),
        ("object.keys.x == object.keys.y", 10_000 * 20),
        ("'%s'.format([[1e-308, 1e-308, 1e-308]])", 3 * 310),
        ("object.keys.x != object.keys.y", 10_000 * 20),
    ] {
        let units = cost(source, &object);
        assert!(units >= bytes / 10, "{source} costs {units}");
    }
    let field = format!("object.{}", "f".repeat(90_000));
    assert!(cost(&format!("has({field})"), &json!({})) >= 9_000);
    assert!(cost(&field.replace("object", "object.text"), &json!({"text": "a"})) >= 9_000);
}

#[test]
fn maps_that_are_compared_again_and_again_are_stopped() {
    let long = "k".repeat(1 << 20);
    let object = json!({"a": {long.as_str(): 1}, "b": {long.as_str(): 1}, "list": vec![0; 100]});
    is_too_expensive("object.list.all(x, object.list.all(y, object.a == object.b))", &object);
    is_too_expensive("object.list.all(x, object.list.all(y, object.a != {} && object == object))", &object);
    is_too_expensive(
        "object.list.exists(x, object.a in object.list + [object.b, object.b, object.b] && false)",
        &object,
    );
    is_too_expensive(&format!("object.list.map(x, object.list.all(y, !has(object.{})))", "f".repeat(90_000)), &object);
}
