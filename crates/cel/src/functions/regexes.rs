//! Regular expressions. Matching takes time in proportion to the text, as in RE2.

use std::collections::BTreeMap;

use regex_automata::meta::{BuildError, Regex};

use super::{Function, Outcome, excerpt, mismatch, re2};
use crate::{Meter, Problem, Value, budget::LIST};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::both("matches", 2..=2, matches),
    Function::method("find", 2..=2, find),
    Function::method("findAll", 2..=3, find_all),
];

/// The most bytes of a compiled expression, and of what it remembers while it matches.
const LARGEST: usize = 128 * 1024;
/// The longest expression: parsing takes kilobytes for each class of Unicode in it, before its size is checked.
const LONGEST: usize = 1024;
/// What compiling one costs, besides its length.
const COMPILED: usize = 20_000;
/// How many are kept for further uses in the same evaluation.
const KEPT: usize = 8;
/// The bytes of a compiled expression for which ten bytes of text cost a unit.
const SIMPLE: usize = 4 * 1024;

/// The regular expressions of an evaluation.
#[derive(Debug, Default)]
pub(crate) struct Regexes(BTreeMap<String, Regex>);

impl Regexes {
    fn get(&self, pattern: &str) -> Option<Regex> {
        self.0.get(pattern).cloned()
    }

    fn keep(&mut self, pattern: &str, regex: &Regex) {
        if self.0.len() < KEPT {
            self.0.insert(pattern.to_owned(), regex.clone());
        }
    }
}

/// The compiled pattern, and a text to match, which is paid for.
fn prepare<'a>(name: &str, meter: &mut Meter, args: &'a [Value]) -> Result<(Regex, &'a str), Problem> {
    let [Value::String(text), Value::String(pattern), ..] = args else {
        return Err(mismatch(name, args).err().unwrap_or_else(|| name.into()));
    };
    meter.charge_bytes(pattern.len())?;
    let regex = match meter.regexes.get(pattern) {
        Some(regex) => regex,
        None => compile(meter, pattern)?,
    };
    let weight = 1 + regex.memory_usage() / SIMPLE;
    meter.charge_bytes(text.len().saturating_mul(weight))?;
    Ok((regex, text))
}

fn compile(meter: &mut Meter, pattern: &str) -> Result<Regex, Problem> {
    if pattern.len() > LONGEST {
        return Err(format!("the regular expression {} is longer than {LONGEST} bytes", excerpt(pattern)).into());
    }
    meter.charge(COMPILED + pattern.len())?;
    let unreadable = || Problem::from(format!("{} is no regular expression", excerpt(pattern)));
    let translated = re2::translated(pattern).ok_or_else(unreadable)?;
    let config = Regex::config().nfa_size_limit(Some(LARGEST)).hybrid_cache_capacity(LARGEST).onepass(false).dfa(false);
    let regex = Regex::builder().configure(config).build(&translated).map_err(|error| invalid(pattern, &error))?;
    meter.regexes.keep(pattern, &regex);
    Ok(regex)
}

fn invalid(pattern: &str, error: &BuildError) -> Problem {
    let pattern = excerpt(pattern);
    match error.size_limit() {
        Some(_) => format!("the regular expression {pattern} is too large: it repeats or lists too much").into(),
        None => format!("{pattern} is no regular expression").into(),
    }
}

fn matches(meter: &mut Meter, args: &[Value]) -> Outcome {
    let (regex, text) = prepare("matches", meter, args)?;
    Ok(Value::Bool(regex.is_match(text)))
}

fn find(meter: &mut Meter, args: &[Value]) -> Outcome {
    let (regex, text) = prepare("find", meter, args)?;
    meter.charge_bytes(text.len())?;
    Ok(Value::string(regex.find(text).map(|found| &text[found.range()]).unwrap_or_default()))
}

fn find_all(meter: &mut Meter, args: &[Value]) -> Outcome {
    let (regex, text) = prepare("findAll", meter, args)?;
    let limit = match args.get(2) {
        None => usize::MAX,
        Some(Value::Int(limit)) => usize::try_from(*limit).unwrap_or(usize::MAX),
        Some(_) => return mismatch("findAll", args),
    };
    meter.charge(LIST)?;
    // Each match may read the whole text behind it.
    let weight = 1 + regex.memory_usage() / SIMPLE;
    let mut found = Vec::new();
    for part in regex.find_iter(text).take(limit) {
        meter.charge(3)?;
        meter.charge_bytes((text.len() - part.start()).saturating_mul(weight))?;
        found.push(Value::string(&text[part.range()]));
    }
    Ok(Value::List(found.into()))
}
