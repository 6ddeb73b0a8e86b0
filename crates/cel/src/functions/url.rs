//! URLs as Go reads those of requests: with a scheme, or an absolute path.

use std::{collections::BTreeMap, sync::Arc};

use super::{Function, Outcome, excerpt, mismatch};
use crate::{Key, Meter, Value, budget::MAP};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::global("url", 1..=1, url),
    Function::global("isURL", 1..=1, is_url),
    Function::method("getScheme", 1..=1, |meter, args| part("getScheme", meter, args, |url| url.scheme.clone())),
    Function::method("getHost", 1..=1, |meter, args| part("getHost", meter, args, |url| url.host.clone())),
    Function::method("getHostname", 1..=1, |meter, args| {
        part("getHostname", meter, args, |url| {
            let (name, _) = split_port(&url.host);
            name.trim_start_matches('[').trim_end_matches(']').to_owned()
        })
    }),
    Function::method("getPort", 1..=1, |meter, args| {
        part("getPort", meter, args, |url| split_port(&url.host).1.unwrap_or_default().to_owned())
    }),
    Function::method("getEscapedPath", 1..=1, |meter, args| {
        part("getEscapedPath", meter, args, |url| escaped(&url.path))
    }),
    Function::method("getQuery", 1..=1, query),
];

/// A URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    scheme: String,
    /// With its port.
    host: String,
    path: String,
    query: String,
}

impl Url {
    /// Its length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.scheme.len() + self.host.len() + self.path.len() + self.query.len()
    }

    /// A fragment is allowed, and ignored. In Kubernetes the text is read with it first, as that of a request.
    pub(super) fn parse(text: &str) -> Option<Self> {
        Self::read(text)?;
        Self::read(text.split('#').next()?)
    }

    fn read(text: &str) -> Option<Self> {
        if text.is_empty() || text.chars().any(|c| c.is_ascii_control()) {
            return None;
        }
        let (scheme, rest) = split_scheme(text)?;
        if scheme.is_empty() && !rest.starts_with('/') && text != "*" {
            return None;
        }
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = match rest.strip_prefix("//").filter(|_| !scheme.is_empty() || !rest.starts_with("///"))
        {
            Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
            // After a scheme, what does not begin with a slash is no path.
            None if rest.starts_with('/') || rest == "*" => ("", rest),
            None => ("", ""),
        };
        let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
        (is_user(user) && is_host(host) && decoded(path, false).is_some()).then(|| Self {
            scheme: scheme.to_ascii_lowercase(),
            host: host.replacen("%25", "%", 1),
            path: path.to_owned(),
            query: query.to_owned(),
        })
    }
}

/// The scheme, empty if there is none, and what follows.
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && !"+-.".contains(c)).unwrap_or(text.len());
    match text[end..].strip_prefix(':') {
        Some(rest) if text.starts_with(|c: char| c.is_ascii_alphabetic()) => Some((&text[..end], rest)),
        Some(_) => None,
        None => Some(("", text)),
    }
}

fn is_host(host: &str) -> bool {
    let (name, port) = split_port(host);
    let is_port = port.is_none_or(|port| port.chars().all(|c| c.is_ascii_digit()));
    let is_name = match name.strip_prefix('[').map(|name| name.strip_suffix(']')) {
        Some(address) => address.is_some_and(|address| {
            let address = address.split("%25").next().unwrap_or_default();
            address.parse::<std::net::Ipv6Addr>().is_ok()
        }),
        // Only what is no ASCII may be escaped.
        None => {
            !name.contains(|c: char| c.is_ascii_whitespace() || "#\\^`{}|[]".contains(c))
                && name.split('%').skip(1).all(|code| code.starts_with(|c: char| c.is_ascii_hexdigit() && c > '7'))
        }
    };
    is_port && is_name && decoded(name, false).is_some()
}

/// What may be in front of a host, and an @.
fn is_user(user: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
    user.chars().all(is_plain) && decoded(user, false).is_some()
}

/// The name of a host, and its port.
fn split_port(host: &str) -> (&str, Option<&str>) {
    let after_address = host.rfind(']').map_or(0, |end| end + 1);
    match host[after_address..].rfind(':') {
        Some(colon) => (&host[..after_address + colon], Some(&host[after_address + colon + 1..])),
        None => (host, None),
    }
}

/// Without escapes; `None` if one is malformed.
fn decoded(text: &str, plus_is_blank: bool) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        bytes.extend(before.as_bytes());
        let code = after.get(..2).filter(|code| code.chars().all(|c| c.is_ascii_hexdigit()))?;
        bytes.push(u8::from_str_radix(code, 16).ok()?);
        rest = &after[2..];
    }
    bytes.extend(rest.as_bytes());
    if plus_is_blank {
        // A plus that was escaped is none in the text.
        return decoded(&text.replace('+', "%20"), false);
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// With escapes for what may not be in a path.
fn escaped(path: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@!'()*%[]".contains(&byte);
    let escape = |byte: u8| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    path.bytes().map(escape).collect()
}

fn url(meter: &mut Meter, args: &[Value]) -> Outcome {
    let [Value::String(text)] = args else { return mismatch("url", args) };
    meter.charge_bytes(text.len().saturating_mul(4))?;
    match Url::parse(text) {
        Some(url) => Ok(Value::Url(url.into())),
        None => Err(format!("{} is no URL with a scheme, and no absolute path", excerpt(text)).into()),
    }
}

fn is_url(meter: &mut Meter, args: &[Value]) -> Outcome {
    let [Value::String(text)] = args else { return mismatch("isURL", args) };
    meter.charge_bytes(text.len().saturating_mul(4))?;
    Ok(Value::Bool(Url::parse(text).is_some()))
}

/// A part of a URL, which is at most three times as long as the URL.
fn part(name: &str, meter: &mut Meter, args: &[Value], part: impl Fn(&Url) -> String) -> Outcome {
    let [Value::Url(url)] = args else { return mismatch(name, args) };
    meter.charge_bytes((url.scheme.len() + url.host.len() + url.path.len()).saturating_mul(3))?;
    Ok(Value::string(part(url)))
}

/// The values of each parameter.
fn query(meter: &mut Meter, args: &[Value]) -> Outcome {
    let [Value::Url(url)] = args else { return mismatch("getQuery", args) };
    meter.charge(MAP)?;
    meter.charge_bytes(url.query.len().saturating_mul(3))?;
    let mut parameters: BTreeMap<Key, Vec<Value>> = BTreeMap::new();
    // One that is malformed is left out.
    for parameter in url.query.split('&').filter(|parameter| !parameter.is_empty() && !parameter.contains(';')) {
        meter.charge(MAP)?;
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        if let (Some(name), Some(value)) = (decoded(name, true), decoded(value, true)) {
            parameters.entry(Key::from(name.as_str())).or_default().push(Value::string(value));
        }
    }
    Ok(Value::Map(Arc::new(parameters.into_iter().map(|(name, values)| (name, Value::List(values.into()))).collect())))
}
