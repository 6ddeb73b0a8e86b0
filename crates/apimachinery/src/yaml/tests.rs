use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::testing::documents;

fn read(text: &str) -> Value {
    from_str(text).unwrap()
}

#[test]
fn numbers_and_booleans_are_read_as_kubectl_reads_them() {
    let text = "mode: 0644\nyes: yes\non: On\nwhole: 1.0\nexp: 1e3\nhalf: 0.5\nhex: 0x1f\nnone:\nquoted: '0644'\n";
    let value = json!({
        "mode": 420, "yes": true, "on": true, "whole": 1, "exp": 1000, "half": 0.5, "hex": 31, "none": null,
        "quoted": "0644",
    });
    assert_eq!(read(text), value);
}

#[test]
fn a_time_is_a_string() {
    assert_eq!(read("at: 2026-11-21T16:08:42Z"), json!({ "at": "2026-11-21T16:08:42Z" }));
}

#[test]
fn empty_documents_are_left_out() {
    let documents: Vec<Value> = from_str_multi("---\n# nothing\n---\na: 1\n---\n\n---\nb: 2\n").unwrap();
    assert_eq!(documents, [json!({ "a": 1 }), json!({ "b": 2 })]);
}

#[test]
fn a_document_of_the_wrong_type_is_named_by_its_position() {
    let error = from_str_multi::<std::collections::BTreeMap<String, i32>>("a: 1\n---\na: x\n").unwrap_err();
    assert_eq!(error.to_string(), "failed to read YAML document 2");
}

#[test]
fn a_key_given_twice_is_an_error() {
    assert!(matches!(from_str::<Value>("a: 1\na: 2\n"), Err(Error::Parse(_))));
}

#[test]
fn a_kubeconfig_has_the_form_that_kubectl_writes() {
    let value = json!({
        "kind": "Config", "apiVersion": "v1", "current-context": "default-context",
        "clusters": [{ "name": "hub", "cluster": { "server": "https://127.0.0.1:16440", "certificate-authority-data": "LS0t=" } }],
        "contexts": [{ "name": "default-context", "context": { "user": "default-auth", "cluster": "hub", "namespace": "configuration" } }],
        "users": [{ "name": "default-auth", "user": { "client-key": "tls.key", "client-certificate": "tls.crt" } }],
    });
    let text = "\
apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: LS0t=
    server: https://127.0.0.1:16440
  name: hub
contexts:
- context:
    cluster: hub
    namespace: configuration
    user: default-auth
  name: default-context
current-context: default-context
kind: Config
users:
- name: default-auth
  user:
    client-certificate: tls.crt
    client-key: tls.key
";
    assert_eq!(to_string(&value).unwrap(), text);
}

#[test]
fn strings_are_quoted_only_where_a_reader_would_take_them_for_something_else() {
    for (text, written) in [
        ("plain", "plain"),
        ("two words", "two words"),
        ("a:b", "a:b"),
        ("it's", "it's"),
        ("", r#""""#),
        ("true", r#""true""#),
        ("Yes", r#""Yes""#),
        ("n", r#""n""#),
        ("null", r#""null""#),
        ("~", r#""~""#),
        ("1", r#""1""#),
        ("-1.5", r#""-1.5""#),
        ("0644", r#""0644""#),
        ("0x1f", r#""0x1f""#),
        ("1e3", r#""1e3""#),
        ("1_000", r#""1_000""#),
        ("12:30", r#""12:30""#),
        ("2026-11-21", r#""2026-11-21""#),
        ("2026-11-21T16:08:42Z", r#""2026-11-21T16:08:42Z""#),
        ("127.0.0.1", "127.0.0.1"),
        ("v1.36.3", "v1.36.3"),
        ("- item", "'- item'"),
        ("key: value", "'key: value'"),
        ("ends:", "'ends:'"),
        ("a #b", "'a #b'"),
        ("*star", "'*star'"),
        (" edge", "' edge'"),
        ("{a: 'b'}", "'{a: ''b''}'"),
        ("tab\there", r#""tab\there""#),
        ("trailing \nspace", r#""trailing \nspace""#),
    ] {
        assert_eq!(to_string(text).unwrap(), format!("{written}\n"), "{text:?}");
    }
}

#[test]
fn lines_are_written_as_a_block() {
    let value = json!({ "a": "x\ny\n", "b": ["x\n\ny", "x\n\n"], "c": " x\ny\n" });
    let text = "a: |\n  x\n  y\nb:\n- |-\n  x\n\n  y\n- |+\n  x\n\nc: |2\n   x\n  y\n";
    assert_eq!(to_string(&value).unwrap(), text);
}

#[test]
fn a_long_string_is_folded_at_a_space() {
    let text = "word ".repeat(30);
    let written = to_string(&json!({ "key": text.trim() })).unwrap();
    assert!(written.lines().count() > 1 && written.lines().all(|line| line.len() <= 90), "{written}");
    assert_eq!(read(&written), json!({ "key": text.trim() }));
}

#[test]
fn empty_collections_and_nested_lists_have_their_usual_form() {
    let value = json!({ "list": [], "map": {}, "deep": [[1, 2], [{ "a": 1, "b": [true] }], {}] });
    let text = "deep:\n- - 1\n  - 2\n- - a: 1\n    b:\n    - true\n- {}\nlist: []\nmap: {}\n";
    assert_eq!(to_string(&value).unwrap(), text);
}

#[test]
fn keys_are_sorted_with_numbers_by_value() {
    let value = json!({ "a10": 1, "a2": 1, "B": 1, "a.b": 1, "ab": 1, "a_": 1, "a1b": 1 });
    assert_eq!(to_string(&value).unwrap(), "B: 1\na.b: 1\na_: 1\na1b: 1\na2: 1\na10: 1\nab: 1\n");
}

fn value() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        any::<String>(),
        "[ -~\n]{0,12}",
        "[0-9eExXobT:. _+-]{0,8}",
        "([a-z:#'\"-]{1,9} {1,2}){10,20}",
        prop::sample::select(vec![
            "",
            "~",
            "y",
            "No",
            "TRUE",
            "null",
            "<<",
            ".inf",
            "=",
            "|",
            "---",
            "\u{feff}a",
            "\u{85}"
        ])
        .prop_map(str::to_owned),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        text.prop_map(Value::from),
    ];
    documents(leaf, "[ -~\n]{0,12}")
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(value in value()) {
        let text = to_string(&value).unwrap();
        prop_assert_eq!(read(&text), value, "{}", text);
    }
}
