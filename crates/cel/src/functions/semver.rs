//! Semantic versions.

use std::cmp::Ordering;

use super::{Function, Outcome, excerpt, mismatch};
use crate::{Meter, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::global("semver", 1..=2, semver),
    Function::global("isSemver", 1..=2, is_semver),
    Function::method("major", 1..=1, |_, args| number("major", args, 0)),
    Function::method("minor", 1..=1, |_, args| number("minor", args, 1)),
    Function::method("patch", 1..=1, |_, args| number("patch", args, 2)),
];

/// The longest version that is read.
const LONGEST: usize = 256;

/// A version. Its build, which does not matter in comparisons, is left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Semver {
    numbers: [u64; 3],
    prerelease: Vec<Identifier>,
}

/// A part of a pre-release. Numbers are less than texts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Identifier {
    Number(u64),
    Text(String),
}

impl Semver {
    fn parse(text: &str) -> Option<Self> {
        let (text, build) = text.split_once('+').map_or((text, None), |(text, build)| (text, Some(build)));
        let (numbers, prerelease) =
            text.split_once('-').map_or((text, None), |(numbers, prerelease)| (numbers, Some(prerelease)));
        let is_identifier =
            |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        if !build.is_none_or(|build| build.split('.').all(is_identifier)) {
            return None;
        }
        let numbers: Option<Vec<u64>> = numbers.split('.').map(whole).collect();
        let prerelease = prerelease.into_iter().flat_map(|prerelease| prerelease.split('.'));
        let prerelease: Option<Vec<_>> =
            prerelease.map(|part| identifier(part).filter(|_| is_identifier(part))).collect();
        Some(Self { numbers: numbers?.try_into().ok()?, prerelease: prerelease? })
    }

    /// Accepts also a leading `v`, leading zeros, and one or two numbers.
    fn parse_leniently(text: &str) -> Option<Self> {
        let text = text.trim().trim_start_matches('v');
        let end = text.find(['-', '+']).unwrap_or(text.len());
        let (numbers, rest) = text.split_at(end);
        let mut numbers: Vec<_> = numbers.split('.').map(without_zeros).collect();
        while numbers.len() < 3 {
            // A version without a patch has no pre-release.
            if !rest.is_empty() {
                return None;
            }
            numbers.push("0");
        }
        Self::parse(&format!("{}{rest}", numbers.join(".")))
    }
}

fn without_zeros(number: &str) -> &str {
    match number.trim_start_matches('0') {
        "" if !number.is_empty() => "0",
        significant => significant,
    }
}

/// A number without leading zeros.
fn whole(text: &str) -> Option<u64> {
    let is_plain = text == "0" || !text.starts_with(['0', '+']);
    text.parse().ok().filter(|_| is_plain)
}

fn identifier(text: &str) -> Option<Identifier> {
    match text.chars().all(|c| c.is_ascii_digit()) {
        true => whole(text).map(Identifier::Number),
        false => Some(Identifier::Text(text.to_owned())),
    }
}

impl Ord for Semver {
    fn cmp(&self, other: &Self) -> Ordering {
        let release = self.prerelease.is_empty().cmp(&other.prerelease.is_empty());
        let by_number = self.numbers.cmp(&other.numbers);
        by_number.then(release).then_with(|| self.prerelease.cmp(&other.prerelease))
    }
}

impl PartialOrd for Semver {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

fn parse(name: &str, args: &[Value]) -> Result<Option<Semver>, crate::Problem> {
    let (text, is_lenient) = match args {
        [Value::String(text)] => (text, false),
        [Value::String(text), Value::Bool(is_lenient)] => (text, *is_lenient),
        _ => return mismatch(name, args).map(|_| None),
    };
    let text = Some(text.as_ref()).filter(|text: &&str| text.len() <= LONGEST);
    Ok(text.and_then(if is_lenient { Semver::parse_leniently } else { Semver::parse }))
}

fn semver(_: &mut Meter, args: &[Value]) -> Outcome {
    match (parse("semver", args)?, args) {
        (Some(version), _) => Ok(Value::Semver(version.into())),
        (None, [Value::String(text), ..]) => Err(format!("{} is no semantic version", excerpt(text)).into()),
        (None, _) => mismatch("semver", args),
    }
}

fn is_semver(_: &mut Meter, args: &[Value]) -> Outcome {
    parse("isSemver", args).map(|version| Value::Bool(version.is_some()))
}

fn number(name: &str, args: &[Value], place: usize) -> Outcome {
    match args {
        [Value::Semver(version)] => {
            let number = version.numbers.get(place).copied().unwrap_or_default();
            i64::try_from(number).map(Value::Int).map_err(|_| format!("{name}() is no int").into())
        }
        _ => mismatch(name, args),
    }
}
