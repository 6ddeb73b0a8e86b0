use serde_json::{Value, json};

use super::*;

fn document() -> Value {
    json!({"kind": "Deployment", "spec": {"replicas": 3, "paused": null, "containers": [
        {"name": "web", "image": "web:1", "env": [{"name": "A"}, {"name": "B"}]},
        {"name": "side-car", "image": "side:1"},
        {"name": "log", "image": "log:1", "ports": [80, 443]}]}})
}

fn without(expression: &str) -> Result<Value, JqError> {
    let mut document = document();
    delete(expression, &mut document, &mut Limits::new()).map(|()| document)
}

fn names(expression: &str) -> Vec<String> {
    let left = without(expression).unwrap_or_else(|error| panic!("{expression}: {error}"));
    let containers = left["spec"]["containers"].as_array().unwrap();
    containers.iter().map(|container| container["name"].as_str().unwrap_or("-").to_owned()).collect()
}

#[test]
fn what_a_path_selects_is_deleted() {
    assert_eq!(without(".spec.replicas").unwrap()["spec"].get("replicas"), None);
    assert_eq!(without(".spec | .replicas, .paused").unwrap()["spec"].as_object().unwrap().len(), 1);
    assert_eq!(without(r#".["spec"]["replicas"]"#).unwrap()["spec"].get("replicas"), None);
    assert_eq!(without(".missing.field").unwrap(), document());
    assert_eq!(
        without(".spec.containers[].image").unwrap()["spec"]["containers"][2],
        json!({"name": "log", "ports": [80, 443]})
    );
    assert_eq!(names(".spec.containers[1]"), ["web", "log"]);
    assert_eq!(names(".spec.containers[-1]"), ["web", "side-car"]);
    assert_eq!(names(".spec.containers[1:]"), ["web"]);
    assert_eq!(names(".spec.containers[1:][0]"), ["web", "log"]);
    assert_eq!(names(".spec.containers[:-1][]"), ["log"]);
    assert_eq!(names(".spec.containers[0, 2]"), ["side-car"]);
    assert_eq!(without(".. | .name?").unwrap()["spec"]["containers"][0]["env"], json!([{}, {}]));
    assert_eq!(without(".spec.containers[].ports[]?").unwrap()["spec"]["containers"][2]["ports"], json!([]));
}

#[test]
fn conditions_select_as_in_jq() {
    for (condition, left) in [
        (r#".name == "web""#, vec!["side-car", "log"]),
        (r#".name != "web""#, vec!["web"]),
        (r#".name | startswith("s")"#, vec!["web", "log"]),
        (r#".name | endswith("g")"#, vec!["web", "side-car"]),
        (r#".name | test("^(web|log)$")"#, vec!["side-car"]),
        (r#".name | test("WEB"; "i")"#, vec!["side-car", "log"]),
        (r#".name | contains("ca")"#, vec!["web", "log"]),
        (r#".name | IN("web", "log")"#, vec!["side-car"]),
        (r#".name as $n | ["web", "log"] | any(. == $n)"#, vec!["side-car"]),
        (r#"has("ports")"#, vec!["web", "side-car"]),
        (r#"has("ports") | not"#, vec!["log"]),
        (r#".ports // [] | length > 1"#, vec!["web", "side-car"]),
        (r#"any(.env[]?; .name == "B")"#, vec!["side-car", "log"]),
        (r#"[.env[]?.name] | contains(["A"])"#, vec!["side-car", "log"]),
        (r#".name == "web" or .name == "log""#, vec!["side-car"]),
        (r#".name == "web" and (.env | length == 2)"#, vec!["side-car", "log"]),
        (r#"(.ports[0]? // 0) >= 80"#, vec!["web", "side-car"]),
        (r#"if .ports then true else false end"#, vec!["web", "side-car"]),
        (r#".name == "we\("b")""#, vec!["side-car", "log"]),
        (r#".image | split(":")[0] == "side""#, vec!["web", "log"]),
    ] {
        assert_eq!(names(&format!(".spec.containers[] | select({condition})")), left, "{condition}");
    }
    assert_eq!(names(r#"first(.spec.containers[])"#), ["side-car", "log"]);
    assert_eq!(names(r#".spec.containers | last"#), ["web", "side-car"]);
    assert_eq!(names(r#"getpath(["spec", "containers", 0])"#), ["side-car", "log"]);
    assert_eq!(names(r#"try error("x") catch empty"#), ["web", "side-car", "log"]);
}

#[test]
fn what_selects_no_field_says_why() {
    for (expression, expected) in [
        (".", JqError::Root),
        ("..", JqError::Root),
        ("1", JqError::NotAPath),
        (".spec.containers | map(.name)", JqError::NotAPath),
        (".spec[", JqError::Syntax),
        ("", JqError::Syntax),
        ("((", JqError::Syntax),
        (".a | $x", JqError::Unsupported("the variable $x, which is not set,".to_owned())),
        ("$ENV.PATH", JqError::Unsupported("the variable $ENV, which is not set,".to_owned())),
        (".spec.replicas |= 1", JqError::Unsupported("an assignment".to_owned())),
        ("input", JqError::Unsupported("the function `input`".to_owned())),
        ("range(10)", JqError::Unsupported("the function `range`".to_owned())),
        ("reduce .[] as $x (0; .)", JqError::Unsupported("`reduce`".to_owned())),
        ("def f: f; f", JqError::Unsupported("`def`".to_owned())),
        (".kind[]", JqError::Failed("string has no elements".to_owned())),
        (".kind.x", JqError::Failed("string has no \"x\"".to_owned())),
        (".spec.paused[]", JqError::Failed("null has no elements".to_owned())),
        (r#".kind | test("(")"#, JqError::Failed(String::new())),
    ] {
        let error = without(expression).unwrap_err();
        match (&error, &expected) {
            (JqError::Failed(_), JqError::Failed(text)) if text.is_empty() => {}
            _ => assert_eq!(error, expected, "{expression}"),
        }
    }
}

#[test]
fn a_hostile_expression_ends_soon_and_takes_little_memory() {
    let nested = |open: &str, close: &str, count: usize| format!("{}.{}", open.repeat(count), close.repeat(count));
    let mut hostile = vec![
        "recurse(.)".to_owned(),
        "recurse(., .)".to_owned(),
        vec!["(.,.,.,.)"; 60].join("|"),
        format!("{} | select(false)", vec!["(..)"; 30].join("|")),
        vec![".+."; 100].join("|").replacen('.', "\"aaaaaaaa\"", 1),
        format!("\"{}\"", "\\(1,2,3,4,5,6,7,8,9)".repeat(40)),
        vec!["[.,.]"; 100].join("|"),
        format!("({}) == ({})", vec!["."; 200].join(","), vec!["..,.."; 100].join(",")),
        "(..,..) == (..,..) == (..,..)".to_owned(),
        format!(".. | select({})", vec!["[..] == [..]"; 40].join(" and ")),
        ".list | test(\"(a{1,500}){1,500}\")".to_owned(),
        "[..] as $x | select($x | contains($x))".to_owned(),
        nested("(", ")", 490),
        nested("[", "]", 490),
        "-".repeat(990) + "1",
        "try ".repeat(240) + ".",
        "if ".repeat(300),
        ".a as $x | ".repeat(80) + ".",
        ".[".repeat(400),
        "\"\\(".repeat(300),
        "def f: ".repeat(100),
        "x".repeat(2000),
    ];
    hostile.push("{".repeat(900));
    for long in [vec![".a"; 300].join("|"), ".a//".repeat(200) + ".b"] {
        assert_eq!(delete(&long, &mut document(), &mut Limits::new()), Ok(()), "long is not hostile");
    }
    let large = json!({"list": vec![document(); 2000]});
    for expression in hostile {
        let shown: String = expression.chars().take(60).collect();
        assert!(delete(&expression, &mut large.clone(), &mut Limits::new()).is_err(), "{shown}");
    }
    assert_eq!(delete("recurse(.)", &mut large.clone(), &mut Limits::new()), Err(JqError::Limit));
}

#[test]
fn the_largest_manifest_can_be_searched() {
    let mut large = json!({"list": vec![document(); 1000]});
    delete(".. | objects | select(.name == \"web\") | .image", &mut large, &mut Limits::new()).unwrap();
    assert_eq!(large["list"][999]["spec"]["containers"][0].get("image"), None);
}

proptest::proptest! {
    #[test]
    fn no_expression_makes_the_agent_panic(expression in "[.|,()\\[\\]{}a-c\"\\\\0-2 :?*/<=$@-]{0,40}") {
        let _ = without(&expression);
    }
}
