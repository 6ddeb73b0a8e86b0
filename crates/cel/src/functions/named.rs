//! Formats with a name, such as that of a DNS label.

use super::{Function, Outcome, mismatch, time, url::Url};
use crate::{Meter, Value, budget::LIST};

macro_rules! formats {
    ($($name:literal => $format:ident),* $(,)?) => {
        pub(super) const FUNCTIONS: &[Function] = &[
            $(Function::global(concat!("format.", $name), 0..=0, |_, _| Ok(Value::Format(Format::$format))),)*
            Function::global("format.named", 1..=1, named),
            Function::method("validate", 2..=2, validate),
        ];

        fn find(name: &str) -> Option<Format> {
            match name {
                $($name => Some(Format::$format),)*
                _ => None,
            }
        }
    };
}

formats! {
    "dns1123Label" => Dns1123Label,
    "dns1123Subdomain" => Dns1123Subdomain,
    "dns1035Label" => Dns1035Label,
    "qualifiedName" => QualifiedName,
    "dns1123LabelPrefix" => Dns1123LabelPrefix,
    "dns1123SubdomainPrefix" => Dns1123SubdomainPrefix,
    "dns1035LabelPrefix" => Dns1035LabelPrefix,
    "labelValue" => LabelValue,
    "uri" => Uri,
    "uuid" => Uuid,
    "byte" => Byte,
    "date" => Date,
    "datetime" => DateTime,
}

/// A format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the variants are Kubernetes' formats, by their names")]
pub enum Format {
    Dns1123Label,
    Dns1123Subdomain,
    Dns1035Label,
    QualifiedName,
    Dns1123LabelPrefix,
    Dns1123SubdomainPrefix,
    Dns1035LabelPrefix,
    LabelValue,
    Uri,
    Uuid,
    Byte,
    Date,
    DateTime,
}

fn named(_: &mut Meter, args: &[Value]) -> Outcome {
    let [Value::String(name)] = args else { return mismatch("format.named", args) };
    Ok(find(name).map_or(Value::Optional(None), |format| Value::some(Value::Format(format))))
}

/// What is wrong with a text, if anything.
fn validate(meter: &mut Meter, args: &[Value]) -> Outcome {
    let [Value::Format(format), Value::String(text)] = args else { return mismatch("validate", args) };
    meter.charge(LIST)?;
    meter.charge_bytes(text.len().saturating_mul(2))?;
    match problem(*format, text) {
        None => Ok(Value::Optional(None)),
        Some(problem) => Ok(Value::some(Value::List([Value::string(problem)].into()))),
    }
}

fn problem(format: Format, text: &str) -> Option<&'static str> {
    // A prefix is followed by something, so it may end with a dash.
    let prefix = || text.strip_suffix('-').unwrap_or(text);
    match format {
        Format::Dns1123Label => label(text),
        Format::Dns1123LabelPrefix => label(prefix()),
        Format::Dns1123Subdomain => subdomain(text),
        Format::Dns1123SubdomainPrefix => subdomain(prefix()),
        Format::Dns1035Label => label_1035(text),
        Format::Dns1035LabelPrefix => label_1035(prefix()),
        Format::QualifiedName => qualified_name(text),
        Format::LabelValue => {
            if text.is_empty() {
                None
            } else {
                name(text)
            }
        }
        Format::Uri => Url::parse(text).is_none().then_some("must be a URI"),
        Format::Uuid => (!is_uuid(text)).then_some("must be a UUID, such as 123e4567-e89b-12d3-a456-426614174000"),
        Format::Byte => (!is_base64(text)).then_some("must be encoded with base64"),
        Format::Date => {
            let is_date = text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok();
            (!is_date).then_some("must be a date, such as 2024-01-31")
        }
        Format::DateTime => {
            // Unlike a timestamp, it may be written in lower case.
            let is_time = text.len() <= 100 && time::parse_timestamp(&text.to_ascii_uppercase()).is_some();
            (!is_time).then_some("must be a time, such as 2024-01-31T12:00:00Z")
        }
    }
}

fn begins_and_ends(text: &str, fits: impl Fn(char) -> bool) -> bool {
    text.starts_with(&fits) && text.ends_with(&fits)
}

fn is_lower(character: char) -> bool {
    character.is_ascii_lowercase() || character.is_ascii_digit()
}

fn label(text: &str) -> Option<&'static str> {
    let fits = begins_and_ends(text, is_lower) && text.chars().all(|c| is_lower(c) || c == '-');
    match (text.len() <= 63, fits) {
        (false, _) => Some("must be no more than 63 characters"),
        (true, false) => {
            Some("must consist of lower case letters, digits and -, and begin and end with a letter or digit")
        }
        (true, true) => None,
    }
}

fn label_1035(text: &str) -> Option<&'static str> {
    match text.starts_with(|c: char| c.is_ascii_lowercase()) {
        true => label(text),
        false => Some("must begin with a lower case letter"),
    }
}

fn subdomain(text: &str) -> Option<&'static str> {
    let is_part = |part: &str| begins_and_ends(part, is_lower) && part.chars().all(|c| is_lower(c) || c == '-');
    match (text.len() <= 253, text.split('.').all(is_part)) {
        (false, _) => Some("must be no more than 253 characters"),
        (true, false) => Some(
            "must consist of lower case letters, digits, - and ., and its parts begin and end with a letter or digit",
        ),
        (true, true) => None,
    }
}

fn name(text: &str) -> Option<&'static str> {
    let is_letter = |c: char| c.is_ascii_alphanumeric();
    let fits = begins_and_ends(text, is_letter) && text.chars().all(|c| is_letter(c) || "-_.".contains(c));
    match (text.len() <= 63, fits) {
        (false, _) => Some("must be no more than 63 characters"),
        (true, false) => Some("must consist of letters, digits, -, _ and ., and begin and end with a letter or digit"),
        (true, true) => None,
    }
}

fn qualified_name(text: &str) -> Option<&'static str> {
    match text.split_once('/') {
        Some((prefix, rest)) => subdomain(prefix).or_else(|| name(rest)),
        None => name(text),
    }
}

fn is_uuid(text: &str) -> bool {
    let plain: String = text.chars().filter(|c| *c != '-').take(33).collect();
    let is_grouped = text.len() == 32 || text.split('-').map(str::len).eq([8, 4, 4, 4, 12]);
    plain.len() == 32 && plain.chars().all(|c| c.is_ascii_hexdigit()) && is_grouped
}

fn is_base64(text: &str) -> bool {
    let content = text.trim_end_matches('=');
    let is_letter = |c: char| c.is_ascii_alphanumeric() || "+/".contains(c);
    !text.is_empty()
        && text.len().is_multiple_of(4)
        && text.len() - content.len() <= 2
        && content.chars().all(is_letter)
}
