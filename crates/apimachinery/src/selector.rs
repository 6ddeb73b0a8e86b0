//! Label selectors.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use kube_core::{Expression, SelectorExt as _};

use crate::labels;

/// Why a selector is not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The operator is none of the four.
    #[error(
        "failed to read label selector: key {key:?} has operator {operator:?}, use In, NotIn, Exists or DoesNotExist"
    )]
    UnknownOperator {
        /// Key of the requirement.
        key: String,
        /// The operator as written.
        operator: String,
    },
    /// `In` or `NotIn` without values.
    #[error("failed to read label selector: key {key:?} with operator {operator} needs at least one value")]
    MissingValues {
        /// Key of the requirement.
        key: String,
        /// The operator as written.
        operator: String,
    },
    /// `Exists` or `DoesNotExist` with values.
    #[error("failed to read label selector: key {key:?} with operator {operator} must have no values")]
    UnexpectedValues {
        /// Key of the requirement.
        key: String,
        /// The operator as written.
        operator: String,
    },
    /// No label can have that key.
    #[error(
        "failed to read label selector: {key:?} is no label key, use at most 63 letters, digits and -_. with an optional \
         DNS name and / before them"
    )]
    InvalidKey {
        /// The key as written.
        key: String,
    },
    /// No label can have that value.
    #[error(
        "failed to read label selector: {value:?} of key {key:?} is no label value, use at most 63 letters, digits and -_. \
         that begin and end with a letter or digit"
    )]
    InvalidValue {
        /// Key of the requirement.
        key: String,
        /// The value as written.
        value: String,
    },
}

/// A label selector, checked and ready to match: kube's, which leaves keys and values unchecked and cannot match nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selector(Option<kube_core::Selector>);

/// A requirement that an object does not meet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unmet {
    /// As kubectl writes it, such as `env in (dev,test)`.
    pub requirement: String,
    /// The key that it is about.
    pub key: String,
}

impl Selector {
    /// Matches every object.
    pub fn everything() -> Self {
        Self(Some(kube_core::Selector::default()))
    }

    /// Matches no object.
    pub fn nothing() -> Self {
        Self(None)
    }

    /// Reads a selector. An absent selector matches nothing, an empty one everything, as in Kubernetes.
    ///
    /// # Errors
    ///
    /// When an operator is unknown or has the wrong number of values, or no label can have a key or value.
    pub fn new(selector: Option<&LabelSelector>) -> Result<Self, Error> {
        let Some(selector) = selector else { return Ok(Self::nothing()) };
        let labels = selector.match_labels.iter().flatten().map(|(key, value)| equals(key, value));
        let expressions = selector.match_expressions.iter().flatten().map(expression);
        Ok(Self(Some(labels.chain(expressions).collect::<Result<_, _>>()?)))
    }

    /// Whether an object with these labels is selected.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.0.as_ref().is_some_and(|selector| selector.matches(labels))
    }

    /// The first requirement that an object with these labels does not meet, as kubectl writes it, and its key. `None` if the
    /// object is selected, and an empty requirement if nothing ever is.
    pub fn unmet(&self, labels: &BTreeMap<String, String>) -> Option<Unmet> {
        let Some(selector) = &self.0 else { return Some(Unmet::default()) };
        let expression = selector.clone().into_iter().find(|expression| !expression.matches(labels))?;
        Some(Unmet { requirement: expression.to_string(), key: key(expression) })
    }

    /// The smallest change of labels after which the selector matches: for each key that must change its new value, or `None`
    /// to remove it. No change if it matches already; `None` if it matches no labels at all.
    pub fn changes(&self, labels: &BTreeMap<String, String>) -> Option<BTreeMap<String, Option<String>>> {
        let mut by_key: BTreeMap<String, Vec<Expression>> = BTreeMap::new();
        for expression in self.0.clone()? {
            by_key.entry(key(expression.clone())).or_default().push(expression);
        }
        by_key.retain(|_, expressions| !expressions.iter().all(|expression| expression.matches(labels)));
        by_key.into_iter().map(|(key, expressions)| Some((key.clone(), value_for(&key, &expressions)?))).collect()
    }

    /// Whether an object with these labels is selected; absent labels are none.
    pub fn matches_optional(&self, labels: Option<&BTreeMap<String, String>>) -> bool {
        match labels {
            Some(labels) => self.matches(labels),
            None => self.matches(&BTreeMap::new()),
        }
    }
}

impl TryFrom<&LabelSelector> for Selector {
    type Error = Error;

    fn try_from(selector: &LabelSelector) -> Result<Self, Error> {
        Self::new(Some(selector))
    }
}

fn key(expression: Expression) -> String {
    match expression {
        Expression::In(key, _)
        | Expression::NotIn(key, _)
        | Expression::Equal(key, _)
        | Expression::NotEqual(key, _)
        | Expression::Exists(key)
        | Expression::DoesNotExist(key) => key,
    }
}

/// A value of a key, or its absence, with which all requirements for the key are met.
fn value_for(key: &str, expressions: &[Expression]) -> Option<Option<String>> {
    let named = expressions.iter().flat_map(|expression| match expression {
        Expression::In(_, values) => values.iter().cloned().collect(),
        Expression::Equal(_, value) => vec![value.clone()],
        _ => Vec::new(),
    });
    let excluded: usize = expressions.iter().map(excluded).sum();
    let others = (0..=excluded).map(|number| if number == 0 { "true".to_owned() } else { format!("value{number}") });
    let mut candidates = named.map(Some).chain([None]).chain(others.map(Some));
    candidates.find(|value| {
        let labels: BTreeMap<_, _> = value.iter().map(|value| (key.to_owned(), value.clone())).collect();
        expressions.iter().all(|expression| expression.matches(&labels))
    })
}

/// How many values a requirement excludes.
fn excluded(expression: &Expression) -> usize {
    match expression {
        Expression::NotIn(_, values) => values.len(),
        Expression::NotEqual(..) => 1,
        _ => 0,
    }
}

fn equals(key: &str, value: &str) -> Result<Expression, Error> {
    check(key, [value])?;
    Ok(Expression::Equal(key.to_owned(), value.to_owned()))
}

fn expression(requirement: &LabelSelectorRequirement) -> Result<Expression, Error> {
    let (key, operator) = (requirement.key.clone(), requirement.operator.clone());
    let values: BTreeSet<String> = requirement.values.iter().flatten().cloned().collect();
    match operator.as_str() {
        "In" | "NotIn" if values.is_empty() => return Err(Error::MissingValues { key, operator }),
        "Exists" | "DoesNotExist" if !values.is_empty() => return Err(Error::UnexpectedValues { key, operator }),
        _ => check(&key, values.iter().map(String::as_str))?,
    }
    Ok(match operator.as_str() {
        "In" => Expression::In(key, values),
        "NotIn" => Expression::NotIn(key, values),
        "Exists" => Expression::Exists(key),
        "DoesNotExist" => Expression::DoesNotExist(key),
        _ => return Err(Error::UnknownOperator { key, operator }),
    })
}

fn check<'a>(key: &str, values: impl IntoIterator<Item = &'a str>) -> Result<(), Error> {
    if !labels::is_key(key) {
        return Err(Error::InvalidKey { key: key.to_owned() });
    }
    match values.into_iter().find(|value| !labels::is_value(value)) {
        Some(value) => Err(Error::InvalidValue { key: key.to_owned(), value: value.to_owned() }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect()
    }

    fn selector(value: serde_json::Value) -> Result<Selector, Error> {
        Selector::new(Some(&serde_json::from_value(value).unwrap()))
    }

    #[test]
    fn an_absent_selector_matches_nothing_and_an_empty_one_everything() {
        assert!(!Selector::new(None).unwrap().matches(&labels(&[])));
        assert!(selector(json!({})).unwrap().matches(&labels(&[])));
        assert!(selector(json!({})).unwrap().matches_optional(None));
    }

    #[test]
    fn every_requirement_must_hold() {
        let selector = selector(json!({
            "matchLabels": { "env": "prod" },
            "matchExpressions": [
                { "key": "region", "operator": "In", "values": ["eu", "us"] },
                { "key": "tier", "operator": "NotIn", "values": ["edge"] },
                { "key": "vendor", "operator": "Exists" },
                { "key": "retired", "operator": "DoesNotExist" },
            ],
        }))
        .unwrap();
        let good = [("env", "prod"), ("region", "eu"), ("vendor", "")];
        assert!(selector.matches(&labels(&good)));
        for bad in [("env", "dev"), ("region", "ap"), ("tier", "edge"), ("retired", "no")] {
            let mut changed = labels(&good);
            changed.insert(bad.0.to_owned(), bad.1.to_owned());
            assert!(!selector.matches(&changed), "{bad:?}");
        }
        for missing in ["env", "region", "vendor"] {
            let mut changed = labels(&good);
            changed.remove(missing);
            assert!(!selector.matches(&changed), "{missing}");
        }
    }

    #[test]
    fn the_first_requirement_that_is_not_met_is_named_unless_all_are() {
        let in_eu = selector(json!({"matchLabels": {"env": "prod"},
            "matchExpressions": [{"key": "region", "operator": "In", "values": ["us", "eu"]}]}))
        .unwrap();
        let unmet = |pairs| in_eu.unmet(&labels(pairs)).map(|unmet| (unmet.requirement, unmet.key));
        assert_eq!(unmet(&[("env", "prod"), ("region", "eu")]), None);
        assert_eq!(unmet(&[("env", "dev")]), Some(("env=prod".into(), "env".into())));
        assert_eq!(unmet(&[("env", "prod")]), Some(("region in (eu,us)".into(), "region".into())));
        assert_eq!(Selector::nothing().unmet(&labels(&[])), Some(Unmet::default()));
        assert_eq!(Selector::everything().unmet(&labels(&[])), None);
    }

    #[test]
    fn a_wrong_operator_or_number_of_values_is_an_error_that_names_the_key() {
        for (operator, values) in
            [("in", json!(["a"])), ("In", json!([])), ("NotIn", json!(null)), ("Exists", json!(["a"]))]
        {
            let error =
                selector(json!({ "matchExpressions": [{ "key": "k1", "operator": operator, "values": values }] }))
                    .unwrap_err();
            assert!(error.to_string().contains("k1"), "{error}");
        }
    }

    #[test]
    fn a_key_or_value_that_no_label_can_have_is_an_error_that_names_it() {
        for (wrong, named) in [
            (json!({ "matchLabels": { "k 1": "a" } }), "k 1"),
            (json!({ "matchLabels": { "k1": "a b" } }), "a b"),
            (json!({ "matchExpressions": [{ "key": "-k1", "operator": "Exists" }] }), "-k1"),
            (
                json!({ "matchExpressions": [{ "key": "k1", "operator": "NotIn", "values": ["https://x"] }] }),
                "https://x",
            ),
        ] {
            let error = selector(wrong).unwrap_err();
            assert!(error.to_string().contains(named), "{error}");
        }
    }

    #[test]
    fn the_smallest_change_that_matches_is_found_for_each_key_and_none_where_requirements_contradict() {
        let changes = |expressions: serde_json::Value, present: &[(&str, &str)]| {
            selector(json!({ "matchExpressions": expressions })).unwrap().changes(&labels(present))
        };
        let one =
            |key: &str, operator: &str, values: &[&str]| json!({ "key": key, "operator": operator, "values": values });
        let set = |key: &str, value: &str| Some([(key.to_owned(), Some(value.to_owned()))].into());
        assert_eq!(changes(json!([one("a", "In", &["x", "y"])]), &[("a", "y")]), Some([].into()));
        assert_eq!(changes(json!([one("a", "In", &["x", "y"]), one("a", "NotIn", &["x"])]), &[]), set("a", "y"));
        assert_eq!(changes(json!([one("a", "Exists", &[])]), &[]), set("a", "true"));
        let neither = json!([one("a", "Exists", &[]), one("a", "NotIn", &["true", "value1"])]);
        assert_eq!(changes(neither, &[("a", "true")]), set("a", "value2"));
        assert_eq!(changes(json!([one("a", "NotIn", &["x"])]), &[("a", "x")]), Some([("a".to_owned(), None)].into()));
        assert_eq!(changes(json!([one("a", "Exists", &[]), one("a", "DoesNotExist", &[])]), &[]), None);
        assert_eq!(Selector::nothing().changes(&labels(&[])), None);
        assert_eq!(Selector::everything().changes(&labels(&[])), Some([].into()));
    }
}
