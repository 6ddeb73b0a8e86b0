//! Values of expressions.

use std::{cmp::Ordering, collections::BTreeMap, net::IpAddr, sync::Arc};

use jiff::{SignedDuration, Timestamp};

use crate::functions::{cidr::Cidr, named::Format, semver::Semver, url::Url};

/// A value. Copies are cheap: what is large is shared.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the variants are CEL's types, by their names")]
pub enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Arc<str>),
    Bytes(Arc<[u8]>),
    List(Arc<[Self]>),
    Map(Arc<Map>),
    Optional(Option<Arc<Self>>),
    Duration(SignedDuration),
    Timestamp(Timestamp),
    /// A type, by its name.
    Type(&'static str),
    /// An amount in billionths.
    Quantity(i128),
    Ip(IpAddr),
    Cidr(Cidr),
    Url(Arc<Url>),
    Semver(Arc<Semver>),
    Format(Format),
}

/// The entries of a map, by their keys.
pub(crate) type Map = BTreeMap<Key, Value>;

/// The key of an entry of a map. Whole numbers are one type here, so that `1` and `1u` are the same key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the variants are CEL's types, by their names")]
pub enum Key {
    Bool(bool),
    Number(i128),
    String(Arc<str>),
}

/// The types that expressions can name.
const TYPES: [&str; 13] = [
    "bool",
    "int",
    "uint",
    "double",
    "string",
    "bytes",
    "list",
    "map",
    "null_type",
    "type",
    "optional_type",
    "google.protobuf.Duration",
    "google.protobuf.Timestamp",
];

pub(crate) fn type_named(name: &str) -> Option<&'static str> {
    TYPES.into_iter().find(|known| *known == name)
}

impl Value {
    /// A value of type string.
    pub fn string(text: impl Into<Arc<str>>) -> Self {
        Self::String(text.into())
    }

    /// An optional with a value.
    #[must_use]
    pub fn some(value: Self) -> Self {
        Self::Optional(Some(Arc::new(value)))
    }

    /// The name of its type.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::String(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Optional(_) => "optional_type",
            Self::Duration(_) => "google.protobuf.Duration",
            Self::Timestamp(_) => "google.protobuf.Timestamp",
            Self::Type(_) => "type",
            Self::Quantity(_) => "kubernetes.Quantity",
            Self::Ip(_) => "net.IP",
            Self::Cidr(_) => "net.CIDR",
            Self::Url(_) => "kubernetes.URL",
            Self::Semver(_) => "kubernetes.Semver",
            Self::Format(_) => "kubernetes.NamedFormat",
        }
    }

    /// The value of a field or key of a map; `None` if it has none, or is no map.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Map(map) => map.get(&Key::from(key)),
            _ => None,
        }
    }

    /// As the key of a map; `None` if it cannot be one.
    pub(crate) fn as_key(&self) -> Option<Key> {
        match self {
            Self::Bool(value) => Some(Key::Bool(*value)),
            Self::Int(value) => Some(Key::Number(i128::from(*value))),
            Self::Uint(value) => Some(Key::Number(i128::from(*value))),
            Self::Double(value) => whole(*value).map(Key::Number),
            Self::String(value) => Some(Key::String(value.clone())),
            _ => None,
        }
    }

    /// How it compares with another one; `None` if the two cannot be compared.
    pub(crate) fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => Some(a.cmp(b)),
            (Self::String(a), Self::String(b)) => Some(a.cmp(b)),
            (Self::Bytes(a), Self::Bytes(b)) => Some(a.cmp(b)),
            (Self::Duration(a), Self::Duration(b)) => Some(a.cmp(b)),
            (Self::Timestamp(a), Self::Timestamp(b)) => Some(a.cmp(b)),
            _ => self.compare_numbers(other),
        }
    }

    /// Compares numbers of any type by what they amount to.
    pub(crate) fn compare_numbers(&self, other: &Self) -> Option<Ordering> {
        match (self.as_whole(), other.as_whole()) {
            (Some(a), Some(b)) => Some(a.cmp(&b)),
            _ => self.as_double()?.partial_cmp(&other.as_double()?),
        }
    }

    fn as_whole(&self) -> Option<i128> {
        match self {
            Self::Int(value) => Some(i128::from(*value)),
            Self::Uint(value) => Some(i128::from(*value)),
            Self::Double(value) => whole(*value),
            _ => None,
        }
    }

    #[allow(clippy::cast_precision_loss, reason = "only compared with what is no whole number, or beyond 64 bits")]
    fn as_double(&self) -> Option<f64> {
        match self {
            Self::Int(value) => Some(*value as f64),
            Self::Uint(value) => Some(*value as f64),
            Self::Double(value) => Some(*value),
            _ => None,
        }
    }
}

/// A whole number that has a key or an index: up to 2^64.
#[allow(clippy::cast_possible_truncation, reason = "whole, and below 2^65")]
fn whole(value: f64) -> Option<i128> {
    (value.fract() == 0.0 && value.abs() < 36_893_488_147_419_103_232.0).then_some(value as i128)
}

impl From<&str> for Key {
    fn from(text: &str) -> Self {
        Self::String(text.into())
    }
}

impl From<&Key> for Value {
    fn from(key: &Key) -> Self {
        match key {
            Key::Bool(value) => Self::Bool(*value),
            Key::String(value) => Self::String(value.clone()),
            Key::Number(value) => match (i64::try_from(*value), u64::try_from(*value)) {
                (Ok(value), _) => Self::Int(value),
                (_, Ok(value)) => Self::Uint(value),
                _ => Self::Null,
            },
        }
    }
}

impl From<&serde_json::Value> for Value {
    /// As Kubernetes reads an object without a schema: whole numbers are ints.
    fn from(json: &serde_json::Value) -> Self {
        match json {
            serde_json::Value::Null => Self::Null,
            serde_json::Value::Bool(value) => Self::Bool(*value),
            serde_json::Value::Number(value) => match value.as_i64() {
                Some(value) => Self::Int(value),
                None => Self::Double(value.as_f64().unwrap_or_default()),
            },
            serde_json::Value::String(value) => Self::string(value.as_str()),
            serde_json::Value::Array(items) => Self::List(items.iter().map(Self::from).collect()),
            serde_json::Value::Object(fields) => {
                let entry = |(name, value): (&String, &serde_json::Value)| (Key::from(name.as_str()), value.into());
                Self::Map(Arc::new(fields.iter().map(entry).collect()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_compare_by_amount_whatever_their_type() {
        let cases = [
            (Value::Int(1), Value::Uint(1), Some(Ordering::Equal)),
            (Value::Int(-1), Value::Uint(u64::MAX), Some(Ordering::Less)),
            (Value::Double(1.5), Value::Int(1), Some(Ordering::Greater)),
            (Value::Double(9_007_199_254_740_993.0), Value::Int(9_007_199_254_740_993), Some(Ordering::Less)),
            (Value::Double(f64::NAN), Value::Int(1), None),
            (Value::Double(f64::INFINITY), Value::Uint(u64::MAX), Some(Ordering::Greater)),
            (Value::Int(1), Value::string("1"), None),
        ];
        for (a, b, expected) in cases {
            assert_eq!(a.compare(&b), expected, "{a:?} {b:?}");
        }
    }

    #[test]
    fn an_object_is_read_with_ints_for_whole_numbers() {
        let value = Value::from(&json!({"a": 1, "b": 1.5, "c": [null, true, "x"], "d": u64::MAX}));
        assert!(matches!(value.get("a"), Some(Value::Int(1))));
        assert!(matches!(value.get("b"), Some(Value::Double(_))));
        assert!(matches!(value.get("c"), Some(Value::List(items)) if items.len() == 3));
        assert!(matches!(value.get("d"), Some(Value::Double(_))));
        assert!(value.get("e").is_none() && Value::Null.get("a").is_none());
    }
}
