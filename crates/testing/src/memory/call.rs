//! Parses requests: the objects that they are for, and the form of the response.

use http::header::{ACCEPT, HeaderMap};
use http::request::Parts;

use super::answer::Shape;
use super::failure::Failure;
use super::kinds::Kind;
use super::store::Key;

/// The subresource that is served.
const STATUS: &str = "status";

/// A request for objects of one kind.
#[derive(Debug)]
pub(super) struct Call {
    /// The index of the kind among those that are served.
    pub(super) id: usize,
    pub(super) kind: Kind,
    /// Empty for all namespaces, and for kinds without.
    pub(super) namespace: String,
    pub(super) name: Option<String>,
    /// Whether it is for the status only.
    pub(super) status: bool,
    pub(super) query: Query,
    pub(super) shape: Shape,
}

impl Call {
    pub(super) fn read(kinds: &[Kind], head: &Parts) -> Result<Self, Failure> {
        let segments: Vec<_> = head.uri.path().trim_matches('/').split('/').map(decode).collect();
        let segments: Vec<_> = segments.iter().map(String::as_str).collect();
        let path = Path::read(&segments).ok_or(Failure::NoSuchPath)?;
        let id = kinds.iter().position(|kind| path.names(kind)).ok_or_else(|| path.unknown(kinds))?;
        let call = Self {
            id,
            kind: kinds[id],
            namespace: path.namespace.into(),
            name: path.name.map(str::to_owned),
            status: path.subresource == Some(STATUS),
            query: Query::read(head.uri.query().unwrap_or_default()),
            shape: shape(&head.headers),
        };
        match call.is_served(path.subresource) {
            true => Ok(call),
            false => Err(path.unknown(kinds)),
        }
    }

    fn is_served(&self, subresource: Option<&str>) -> bool {
        let one_without_namespace = self.kind.namespaced && self.namespace.is_empty() && self.name.is_some();
        let in_a_namespace = !self.kind.namespaced && !self.namespace.is_empty();
        let known = subresource.is_none() || (self.status && self.kind.status);
        known && !one_without_namespace && !in_a_namespace
    }

    pub(super) fn key(&self, name: &str) -> Key {
        Key { kind: self.id, namespace: self.namespace.clone(), name: name.into() }
    }

    pub(super) fn is_dry_run(&self) -> bool {
        self.query.get("dryRun").is_some()
    }
}

/// The parts of a resource's path.
struct Path<'a> {
    group: &'a str,
    version: &'a str,
    /// Empty if the path contains none.
    namespace: &'a str,
    plural: &'a str,
    name: Option<&'a str>,
    subresource: Option<&'a str>,
}

impl<'a> Path<'a> {
    fn read(segments: &[&'a str]) -> Option<Self> {
        let (group, version, rest) = match segments {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return None,
        };
        let (namespace, rest) = match rest {
            // A namespace is an object too, with a status of its own.
            ["namespaces", name, plural, ..] if *plural != STATUS => (*name, &rest[2..]),
            _ => ("", rest),
        };
        let (plural, name, subresource) = match rest {
            [plural] => (*plural, None, None),
            [plural, name] => (*plural, Some(*name), None),
            [plural, name, subresource] => (*plural, Some(*name), Some(*subresource)),
            _ => return None,
        };
        Some(Self { group, version, namespace, plural, name, subresource })
    }

    fn is_in(&self, kind: &Kind) -> bool {
        kind.group == self.group && kind.version == self.version
    }

    fn names(&self, kind: &Kind) -> bool {
        self.is_in(kind) && kind.plural == self.plural
    }

    /// API servers answer differently if the group has definitions of custom resources only.
    fn unknown(&self, kinds: &[Kind]) -> Failure {
        match kinds.iter().any(|kind| self.is_in(kind) && !kind.custom) {
            true => Failure::no_such_resource(),
            false => Failure::NoSuchPath,
        }
    }
}

/// The parameters of the query.
#[derive(Debug)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    fn read(text: &str) -> Self {
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        Self(pairs.map(|(key, value)| (decode(&key.replace('+', " ")), decode(&value.replace('+', " ")))).collect())
    }

    /// The value, unless it is empty or missing.
    pub(super) fn get(&self, key: &str) -> Option<&str> {
        let found = self.0.iter().find(|(name, _)| name == key);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    pub(super) fn flag(&self, key: &str) -> bool {
        matches!(self.get(key), Some("true" | "1"))
    }
}

/// Decodes the percent-encoding of a part of a URL.
fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, more @ ..] = rest {
        let coded = (*first == b'%').then(|| more.get(..2)).flatten();
        let coded = coded.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        bytes.push(coded.unwrap_or(*first));
        rest = if coded.is_some() { &more[2..] } else { more };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn shape(headers: &HeaderMap) -> Shape {
    let accept = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    match accept.contains("as=PartialObjectMetadata") {
        true => Shape::Metadata,
        false => Shape::Whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_encoding_is_decoded() {
        assert_eq!(decode("a%3Db%2Cc"), "a=b,c");
        assert_eq!(decode("100%"), "100%");
        assert_eq!(decode("%zz%C3%A4"), "%zzä");
    }
}
