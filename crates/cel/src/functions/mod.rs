//! The functions of expressions.

pub mod cidr;
mod convert;
mod format;
mod ip;
mod lists;
pub mod named;
mod optional;
mod quantity;
mod re2;
mod regexes;
pub mod semver;
mod standard;
mod strings;
pub(crate) mod time;
pub mod url;

use std::ops::RangeInclusive;

pub(crate) use self::regexes::Regexes;
use crate::{Meter, Problem, Value};

/// What a function returns.
pub type Outcome = Result<Value, Problem>;

/// A function.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its name in expressions; it may contain a point, as in `optional.of`.
    pub name: &'static str,
    /// How it is called.
    pub style: Style,
    /// How many arguments it takes, with the value that a method is called on.
    pub arguments: RangeInclusive<usize>,
    /// Its value for these arguments. It pays for what it reads and writes beforehand, except for a few bytes.
    pub call: fn(&mut Meter, &[Value]) -> Outcome,
}

/// How a function is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// `f(a)`
    Global,
    /// `a.f()`
    Method,
    /// Either way.
    Both,
}

impl Function {
    /// A function that is called as `f(a)`.
    #[must_use]
    pub const fn global(
        name: &'static str,
        arguments: RangeInclusive<usize>,
        call: fn(&mut Meter, &[Value]) -> Outcome,
    ) -> Self {
        Self { name, style: Style::Global, arguments, call }
    }

    /// A function that is called as `a.f()`; `a` is the first argument.
    #[must_use]
    pub const fn method(
        name: &'static str,
        arguments: RangeInclusive<usize>,
        call: fn(&mut Meter, &[Value]) -> Outcome,
    ) -> Self {
        Self { name, style: Style::Method, arguments, call }
    }

    /// A function that is called as `f(a)` or `a.f()`.
    #[must_use]
    pub const fn both(
        name: &'static str,
        arguments: RangeInclusive<usize>,
        call: fn(&mut Meter, &[Value]) -> Outcome,
    ) -> Self {
        Self { name, style: Style::Both, arguments, call }
    }
}

/// All functions of this crate.
pub(crate) fn all() -> [&'static [Function]; 14] {
    [
        standard::FUNCTIONS,
        convert::FUNCTIONS,
        time::FUNCTIONS,
        optional::FUNCTIONS,
        strings::FUNCTIONS,
        format::FUNCTIONS,
        lists::FUNCTIONS,
        regexes::FUNCTIONS,
        quantity::FUNCTIONS,
        ip::FUNCTIONS,
        cidr::FUNCTIONS,
        url::FUNCTIONS,
        semver::FUNCTIONS,
        named::FUNCTIONS,
    ]
}

/// That a function has no value for arguments of these types.
///
/// # Errors
/// Always.
pub fn mismatch(name: &str, args: &[Value]) -> Outcome {
    let types: Vec<_> = args.iter().map(Value::type_name).collect();
    Err(format!("{name}() is not defined for ({})", types.join(", ")).into())
}

/// The start of a text, for a message.
pub(crate) fn excerpt(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{:?}...", &text[..end]),
        None => format!("{text:?}"),
    }
}
