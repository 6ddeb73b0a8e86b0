use proptest::prelude::*;
use serde::Deserialize;
use serde_json::json;

use super::*;
use crate::testing::{documents, scalars};

/// What client-go 0.36 answers for paths that were put together at random.
const CLIENT_GO: &str = include_str!("testdata/client-go.json");

#[derive(Deserialize)]
struct Corpus {
    documents: Vec<Value>,
    cases: Vec<Case>,
}

#[derive(Debug, Deserialize)]
struct Case {
    /// Index of the document.
    doc: usize,
    path: String,
    #[serde(default)]
    strict: bool,
    #[serde(default)]
    template: bool,
    /// `parse` or `find`.
    error: Option<String>,
    results: Option<Vec<Vec<Value>>>,
    /// The order of the results is any.
    #[serde(default)]
    unordered: bool,
}

fn budget() -> Budget {
    Budget::new(PER_PATH, PER_PATH)
}

fn answer(case: &Case, document: &Value) -> Result<Vec<Vec<Value>>, &'static str> {
    let parse = if case.template { JsonPath::template } else { JsonPath::expression };
    let path = parse(&case.path).map_err(|_| "parse")?;
    let path = if case.strict { path } else { path.allow_missing_keys() };
    let found = path.find(document, &mut budget()).map_err(|_| "find")?;
    Ok(found.into_iter().map(|values| values.into_iter().cloned().collect()).collect())
}

/// Values by their text. Go writes 1.0 as 1.
fn texts(results: Vec<Vec<Value>>, unordered: bool) -> Vec<Vec<String>> {
    fn text(value: &Value) -> String {
        match value {
            Value::Number(number) => number.as_f64().unwrap().to_string(),
            Value::Array(list) => format!("{:?}", list.iter().map(text).collect::<Vec<_>>()),
            Value::Object(fields) => {
                format!("{:?}", fields.iter().map(|(key, value)| (key, text(value))).collect::<Vec<_>>())
            }
            other => other.to_string(),
        }
    }
    let texts = |values: Vec<Value>| {
        let mut texts: Vec<_> = values.iter().map(text).collect();
        if unordered {
            texts.sort();
        }
        texts
    };
    results.into_iter().map(texts).collect()
}

#[test]
fn paths_select_what_client_go_selects() {
    let corpus: Corpus = serde_json::from_str(CLIENT_GO).unwrap();
    assert!(corpus.cases.len() > 1000);
    for case in corpus.cases {
        let ours = answer(&case, &corpus.documents[case.doc]).map(|results| texts(results, case.unordered));
        let theirs = match (&case.error, &case.results) {
            (Some(error), _) => Err(error.as_str()),
            (None, results) => Ok(texts(results.clone().unwrap_or_default(), case.unordered)),
        };
        assert_eq!(ours, theirs, "{case:?}");
    }
}

fn found(path: &str, document: &Value) -> Result<Value, String> {
    let path = JsonPath::expression(path).map_err(|error| error.to_string())?.allow_missing_keys();
    let found = path.find(document, &mut budget()).map_err(|error| error.to_string())?;
    Ok(json!(found.concat()))
}

#[test]
fn what_people_write_is_selected() {
    let document = json!({
        "metadata": {"annotations": {"a.b/c": "x"}},
        "status": {"replicas": 3, "conditions": [{"type": "Ready", "status": "True"}, {"type": "Other"}], "hosts": ["a", "b", "c"]},
    });
    for (path, selected) in [
        (".status.replicas", json!([3])),
        ("$.status.replicas", json!([3])),
        (".status['replicas']", json!([3])),
        (".metadata.annotations.a\\.b/c", json!(["x"])),
        (".metadata.annotations['a\\.b/c']", json!(["x"])),
        (".status.conditions[?(@.type==\"Ready\")].status", json!(["True"])),
        (".status.conditions[?(@.type == 'Ready')].status", json!(["True"])),
        (".status.conditions[?(@.status)].type", json!(["Ready"])),
        (".status.conditions[*].type", json!(["Ready", "Other"])),
        (".status.hosts[0]", json!(["a"])),
        (".status.hosts[-1]", json!(["c"])),
        (".status.hosts[0:2]", json!(["a", "b"])),
        (".status.hosts[::2]", json!(["a", "c"])),
        (".status.hosts[0,2]", json!(["a", "c"])),
        (".status['replicas','hosts']", json!([3, ["a", "b", "c"]])),
        ("..type", json!(["Ready", "Other"])),
        (".spec.missing", json!([])),
        (".missing[0].x[?(@.y)]", json!([])),
    ] {
        assert_eq!(found(path, &document).unwrap(), selected, "{path}");
    }
}

#[test]
fn a_mistake_is_named_with_its_place() {
    for (path, problem) in [
        ("{.a}", "the path is written without braces, at character 1"),
        (".a[", "the closing bracket is missing, at character 3"),
        (".a[b]", "[b] is neither an index, a slice nor a key in single quotes, at character 4"),
        (".a[\"b\"]", "[\"b\"]: a key in brackets is written in single quotes, at character 4"),
        (".ä.b[?(@.c==1]", "the closing parenthesis of the filter is missing, at character 5"),
        (".a[?((@.b))]", "a bracket is missing behind the filter; parentheses are not nested, at character 11"),
        (".a[?(@.b==,)]", "unexpected ',': a field begins with a dot, an index with [, at character 11"),
        (".a[0,x]", "[x] is neither an index, a slice nor a key in single quotes, at character 6"),
        (".a['b[','c']", "the closing bracket is missing, at character 6"),
        ("..*", "unexpected '*': a field begins with a dot, an index with [, at character 3"),
        ("....a", "\"..\" follows another one, at character 3"),
        (".a 1.2.3", "\"1.2.3\" is not a number, at character 4"),
        (".a \"b", "the closing quote is missing, at character 4"),
        (".a\\", "the closing brace is missing, or escaped by a backslash, at character 4"),
        ("range .a", "the range has no {end}, at character 9"),
        (".a\n", "unexpected '\\n': a field begins with a dot, an index with [, at character 3"),
    ] {
        assert_eq!(JsonPath::expression(path).unwrap_err().to_string(), problem, "{path}");
    }
}

#[test]
fn what_cannot_be_selected_says_why() {
    let document = json!({"list": [1, 2], "text": "x", "items": [{"a": 1}, {"a": "x"}], "nulls": [{"a": null}]});
    for (path, problem) in [
        (".list[5]", "index 5 is out of bounds, the list has 2 elements"),
        (".list[-3]", "index -1 is out of bounds, the list has 2 elements"),
        (".list[1:0]", "the slice ends at 0, before its start at 1"),
        (".list[::0]", "the step of the slice is 0, and must be at least 1"),
        (".text[0]", "a string has no elements to select by their index"),
        (".text[?(@.a)]", "a string has no elements to filter"),
        (".items[?(@.a==\"x\")]", "cannot compare an integer with a string"),
        (".nulls[?(@.a==1)]", "cannot compare null with an integer"),
        (".items[?(@.a=1)]", "there is no operator \"=\"; use ==, !=, <, <=, > or >="),
        ("status", "\"status\" is neither a field nor text; put a dot before a field, and quotes around text"),
    ] {
        assert_eq!(found(path, &document).unwrap_err(), problem, "{path}");
    }
}

#[test]
fn templates_hold_text_and_ranges() {
    let document = json!({"items": [{"name": "a", "ports": [1, 2]}, {"name": "b", "ports": []}]});
    let template = "all: {range .items[*]}{.name}:{range .ports[*]} {@}{end};{end} done";
    let template = JsonPath::template(template).unwrap();
    let results = template.find(&document, &mut budget()).unwrap();
    let texts: Vec<_> =
        results.concat().into_iter().map(|value| value.as_str().map_or(value.to_string(), str::to_owned)).collect();
    assert_eq!(texts.concat(), "all: a: 1 2;b:; done");
}

#[test]
fn a_missing_key_is_an_error_unless_it_is_allowed() {
    let path = JsonPath::expression(".a.b").unwrap();
    assert_eq!(path.find(&json!({}), &mut budget()).unwrap_err(), FindError::Missing("a".into()));
    assert_eq!(path.allow_missing_keys().find(&json!({}), &mut budget()).unwrap(), [Vec::<&Value>::new()]);
}

#[test]
fn pointers_lead_to_what_was_selected() {
    let document = json!({"a/b": [{"~": 1}, {"~": 2}], "c": {"~": 3}});
    let path = JsonPath::expression("..['~']").unwrap().allow_missing_keys();
    assert_eq!(path.pointers(&document, &mut budget()).unwrap(), ["/a~1b/0/~0", "/a~1b/1/~0", "/c/~0"]);
}

#[test]
fn paths_are_limited_in_length_and_depth() {
    let long = JsonPath::expression(&format!(".{}", "a".repeat(MAX_LENGTH))).unwrap_err();
    assert!(long.to_string().contains("longer than"), "{long}");
    let nested = "{range .a}".repeat(MAX_DEPTH + 1);
    let deep = JsonPath::template(&nested).unwrap_err();
    assert!(deep.to_string().contains("nested too deeply"), "{deep}");
}

/// What it costs to select by a path, whether that succeeds or not.
fn cost(path: &str, document: &Value) -> u64 {
    let (path, mut budget) = (JsonPath::expression(path).unwrap().allow_missing_keys(), budget());
    let _ = path.find(document, &mut budget);
    PER_PATH - budget.left()
}

#[test]
fn all_that_is_visited_selected_or_compared_is_paid_for() {
    let scalars = json!(vec![0; 1000]);
    let text = "x".repeat(10_000);
    let texts = json!({"list": vec![json!({"a": text}); 10], "text": text});
    let key = "k".repeat(1000);
    let cases = [
        ("..", scalars.clone(), 1000),
        (".*", json!(text), 10_000),
        ("[*]", scalars.clone(), 1000),
        ("[::2]", scalars.clone(), 500),
        ("[0,1,2]", json!([1, 2, 3]), 6),
        ("[*]['x','x','x']", scalars.clone(), 3000),
        ("[?(@)]", scalars, 1000),
        (".list[?(@.a==@.a)]", texts, 10_000),
        (&format!(".list[*].{key}"), json!({"list": vec![json!({}); 100]}), 10_000),
    ];
    for (path, document, least) in cases {
        let cost = cost(path, &document);
        assert!(cost >= least, "{path:.20} costs {cost}");
        assert!(cost <= 4 * least + 20, "{path:.20} costs {cost}");
    }
}

#[test]
fn hostile_paths_end_when_their_budget_is_spent() {
    let document = json!({"a": vec![json!({"a": [{"a": "x".repeat(1000)}]}); 100], "list": vec![vec![0; 100]; 100]});
    let hostile = [
        "...*".repeat(200),
        format!("..['a',{}'a'].*", "'a',".repeat(3000)),
        format!(".list[*][{}0]", "0,".repeat(7000)),
        format!(".list[{0}0:99][{0}0:99]", "0:99,".repeat(100)),
        format!(".list[?(@[{}0:99])]", "0:99,".repeat(300)),
        format!(".a}}{{range [{}'list']}}{{[*][*]}}{{end}}{{.b", "'list',".repeat(1000)),
    ];
    for path in hostile {
        let error = found(&path, &document).err().unwrap_or_default();
        assert!(error.contains("costs more than the 2000000 units"), "{path:.40}: {error}");
    }
}

#[test]
fn pointers_are_paid_for_by_their_length() {
    let mut document = json!(vec![vec![0]; 1000]);
    for _ in 0..50 {
        document = json!({"k".repeat(1000): document});
    }
    let path = JsonPath::expression("..").unwrap();
    assert!(matches!(path.pointers(&document, &mut budget()), Err(FindError::TooExpensive(_))), "50 MB of pointers");
    assert!(path.find(&document, &mut budget()).is_ok());
}

#[test]
fn the_largest_object_can_be_searched() {
    let document = json!({"list": vec![json!([{"a": 0}, [1], "text"]); 68_000]});
    assert!(document.to_string().len() > 1_400_000);
    assert!(found("..a", &document).is_ok());
}

fn document() -> impl Strategy<Value = Value> {
    documents(prop_oneof![Just(Value::Null), scalars()], "[a-c./ ']|x\\.y")
}

/// The path of every value in a document, and the value.
fn paths(value: &Value, here: &str, paths_of: &mut Vec<(String, Value)>) {
    paths_of.push((here.to_owned(), value.clone()));
    let escape = |key: &str| key.chars().flat_map(|letter| ['\\', letter]).collect::<String>();
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(key, inner)| paths(inner, &format!("{here}.{}", escape(key)), paths_of));
        }
        Value::Array(list) => {
            list.iter().enumerate().for_each(|(index, inner)| paths(inner, &format!("{here}[{index}]"), paths_of));
        }
        _ => {}
    }
}

proptest! {
    #[test]
    fn every_value_of_a_document_is_selected_by_its_path(document in document()) {
        let mut all = Vec::new();
        paths(&document, "", &mut all);
        for (path, value) in all {
            prop_assert_eq!(found(&path, &document).unwrap(), json!([value]), "{}", path);
        }
    }

    #[test]
    fn no_text_and_no_document_ends_in_a_panic(path in "[.a-c\\[\\]?()@'\"=<0-2:,*{}\\\\ -]{0,24}", document in document()) {
        for parsed in [JsonPath::expression(&path), JsonPath::template(&path)].into_iter().flatten() {
            let pointers = parsed.pointers(&document, &mut budget()).unwrap_or_default();
            prop_assert!(pointers.iter().all(|pointer| document.pointer(pointer).is_some()));
        }
    }

    #[test]
    fn the_position_of_a_mistake_is_in_the_text_or_just_behind_it(path in "\\PC{0,16}") {
        if let Err(error) = JsonPath::expression(&path) {
            prop_assert!((1..=path.chars().count() + 1).contains(&error.position), "{error} in {path}");
        }
    }
}
