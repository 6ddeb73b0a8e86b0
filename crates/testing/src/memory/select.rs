//! Label and field selectors of lists and watches.

use serde_json::Value;

use super::call::Query;
use super::failure::Failure;

/// The selection of objects in a request.
#[derive(Clone, Debug, Default)]
pub(super) struct Selection {
    labels: Vec<(String, Test)>,
    /// Pointers into the object, each with the value that must or, if `false`, must not be there.
    fields: Vec<(&'static str, bool, String)>,
}

/// The requirement for one label.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    Exists,
    Absent,
    In(Vec<String>),
    NotIn(Vec<String>),
}

impl Selection {
    pub(super) fn read(query: &Query) -> Result<Self, Failure> {
        let labels = query.get("labelSelector").map(requirements).unwrap_or_default();
        let labels = labels.into_iter().map(|text| label_test(text).ok_or_else(|| unreadable(text)));
        let fields = query.get("fieldSelector").into_iter().flat_map(|text| text.split(','));
        Ok(Self {
            labels: labels.collect::<Result<_, _>>()?,
            fields: fields.map(field_test).collect::<Result<_, _>>()?,
        })
    }

    pub(super) fn matches(&self, object: &Value) -> bool {
        let label = |key: &str| object["metadata"]["labels"].get(key).and_then(Value::as_str);
        let field = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        self.labels.iter().all(|(key, test)| test.passes(label(key)))
            && self.fields.iter().all(|(pointer, equal, value)| (field(pointer) == value) == *equal)
    }
}

impl Test {
    fn passes(&self, label: Option<&str>) -> bool {
        let among = |values: &[String]| label.is_some_and(|label| values.iter().any(|value| value == label));
        match self {
            Self::Exists => label.is_some(),
            Self::Absent => label.is_none(),
            Self::In(values) => among(values),
            Self::NotIn(values) => !among(values),
        }
    }
}

/// Splits at the commas outside parentheses.
fn requirements(text: &str) -> Vec<&str> {
    let mut depth = 0_u32;
    let at_commas = |character: char| {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        character == ',' && depth == 0
    };
    text.split(at_commas).map(str::trim).filter(|text| !text.is_empty()).collect()
}

fn label_test(text: &str) -> Option<(String, Test)> {
    let one = |key: &str, value: &str, test: fn(Vec<String>) -> Test| {
        (key.trim().to_owned(), test(vec![value.trim().to_owned()]))
    };
    if let Some((key, value)) = text.split_once("!=") {
        return Some(one(key, value, Test::NotIn));
    }
    if let Some((key, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        return Some(one(key, value, Test::In));
    }
    if let Some(key) = text.strip_prefix('!') {
        return Some((key.trim().to_owned(), Test::Absent));
    }
    let Some((left, values)) = text.strip_suffix(')').and_then(|text| text.split_once('(')) else {
        return (!text.contains(' ')).then(|| (text.to_owned(), Test::Exists));
    };
    let values = values.split(',').map(|value| value.trim().to_owned()).collect();
    match left.split_whitespace().collect::<Vec<_>>().as_slice() {
        [key, "in"] => Some(((*key).to_owned(), Test::In(values))),
        [key, "notin"] => Some(((*key).to_owned(), Test::NotIn(values))),
        _ => None,
    }
}

fn field_test(text: &str) -> Result<(&'static str, bool, String), Failure> {
    let negative = text.split_once("!=").map(|(field, value)| (field, false, value));
    let positive = || text.split_once("==").or_else(|| text.split_once('=')).map(|(field, value)| (field, true, value));
    let (field, equal, value) = negative.or_else(positive).ok_or_else(|| unreadable(text))?;
    let pointer = match field {
        "metadata.name" => "/metadata/name",
        "metadata.namespace" => "/metadata/namespace",
        other => return Err(Failure::bad_request(format!("field label not supported: {other}"))),
    };
    Ok((pointer, equal, value.to_owned()))
}

fn unreadable(text: &str) -> Failure {
    Failure::bad_request(format!("unable to parse requirement: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(text: &str) -> Option<(String, Test)> {
        label_test(text)
    }

    #[test]
    fn every_form_of_a_label_requirement_is_read() {
        let values = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>();
        assert_eq!(test("a=b"), Some(("a".into(), Test::In(values(&["b"])))));
        assert_eq!(test("a==b"), Some(("a".into(), Test::In(values(&["b"])))));
        assert_eq!(test("a!=b"), Some(("a".into(), Test::NotIn(values(&["b"])))));
        assert_eq!(test("a"), Some(("a".into(), Test::Exists)));
        assert_eq!(test("!a"), Some(("a".into(), Test::Absent)));
        assert_eq!(test("a in (b, c)"), Some(("a".into(), Test::In(values(&["b", "c"])))));
        assert_eq!(test("a notin (b)"), Some(("a".into(), Test::NotIn(values(&["b"])))));
        assert_eq!(test("a within (b)"), None);
    }

    #[test]
    fn commas_in_parentheses_do_not_separate() {
        assert_eq!(requirements("a in (b,c),d"), ["a in (b,c)", "d"]);
    }
}
